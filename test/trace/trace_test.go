package trace_test

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestTraceCommand requires that a command has the same output as without reframe, and that the exits are written to a file or to standard error.
func TestTraceCommand(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 2})
	file := filepath.Join(t.TempDir(), "exits")
	r := clitest.Run(t, append([]string{"trace", "--ir", module, "-o", file, "--"}, command...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, clitest.OutputUntraced(t, command), r.Stdout)
	require.Regexp(t, `^4000 exits in \d+\.\d{3} s; the process exited with status 0\n  4000  tick\+0x[0-9a-f]+  record 1, stackmap\n$`, r.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, 4000)
	for _, line := range lines {
		require.Regexp(t, clitest.TickExitLine, line)
	}

	r = clitest.Run(t, append([]string{"trace", "--ir", module, "--limit", "2", "--"}, command...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, clitest.OutputUntraced(t, command), r.Stdout)
	lines = strings.Split(r.Stderr, "\n")
	require.Regexp(t, clitest.TickExitLine, lines[0])
	require.Regexp(t, clitest.TickExitLine, lines[1])
	require.Regexp(t, `^2 exits in .* s; the limit of 2 was reached$`, lines[2])
}

// TestTraceProcess requires that exits of a running process are written to standard output.
func TestTraceProcess(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 2})
	c := clitest.Command(t, "trace", "-p", clitest.PID(p), "--ir", module, "--stop-at", "%i == 3", "--log", "--color", "never")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	begin()
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, c.Wait())
	lines := strings.Split(string(text), "\n")
	for n := range 3 {
		require.Contains(t, lines[n], fmt.Sprintf("%%i=%d ", n))
	}
	require.Regexp(t, `^\d+\.\d{6}  \d+ obj_host  tick\+0x[0-9a-f]+  record 1 stackmap$`, lines[3])
	require.Regexp(t, `^  #0   jit     tick\+0x[0-9a-f]+ +record 1, stackmap, before   → tick, block %loop, at instruction \d+$`, lines[4])
	require.Regexp(t, `^        %i       i64    3  `, lines[5])
	require.Regexp(t, `^  #1   jit     entry\+0x`, lines[9])
	require.NoError(t, p.Wait())
	checksum, _ := livetest.CVersion(t, "tick.ll", livetest.ObjectHostOptions{Rounds: 2})
	require.Contains(t, p.Output(), checksum)
}

// TestTraceJSON requires that each line of the JSON matches its schema, and that the last line is the summary.
func TestTraceJSON(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	tick, module := clitest.TickObject(t)
	guards := livetest.PICObject(t, 19, "guards.ll", "-O2")
	state := livetest.PICObject(t, 19, "state.ll", "-O2")
	lines := func(t *testing.T, code int, host []string, args ...string) []string {
		file := filepath.Join(t.TempDir(), "exits.json")
		r := clitest.Run(t, append(append([]string{"trace", "--json", "-o", file}, args...), append([]string{"--"}, host...)...)...)
		require.Equal(t, code, r.Code, r.Stderr)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for n, line := range all {
			clitest.RequireValid(t, "trace.schema.json", line)
			require.Equal(t, n == len(all)-1, strings.HasPrefix(line, `{"schema":"reframe.trace.summary/v1",`), line)
		}
		return all
	}
	host := func(object string, rounds int) []string {
		return livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: rounds})
	}
	require.Len(t, lines(t, 0, host(tick, 1), "--ir", module, "--every", "100"), 11)
	require.Len(t, lines(t, 0, host(tick, 1), "--count"), 1)
	require.Len(t, lines(t, 0, host(tick, 1), "--full", "--limit", "2"), 3)
	require.Len(t, lines(t, 0, host(tick, 1), "--ir", module, "--stop-at", "%i >= 9 && %y != 0", "--log"), 11)
	require.Len(t, lines(t, 0, host(tick, 1), "--ir", module, "--stop-at", "%i >= 9 && %y != 0"), 2)
	require.Len(t, lines(t, 2, host(tick, 1), "--record", "77"), 1)
	lines(t, 0, host(state, 2), "--ir", livetest.IR(t, 19, "state.ll"))
	lines(t, 0, host(guards, 40), "--ir", livetest.IR(t, 19, "guards.ll"), "--layout", livetest.Testdata(t, "programs", "guards.layout.json"))
	lines(t, 0, host(guards, 40), "--at", "__llvm_deoptimize")
	lines(t, 0, host(guards, 40), "--at", "osr", "--full") // the exit's caller has no record, which does not count as missing

	all := lines(t, 0, host(tick, 1), "--ir", module, "--limit", "1")
	var exit struct {
		N        int
		Function string
		Record   struct {
			ID     uint64
			Moment string
		}
		Slots []struct{ Name, Value, Hex string }
	}
	require.NoError(t, json.Unmarshal([]byte(all[0]), &exit))
	require.Equal(t, 1, exit.N)
	require.Equal(t, "tick", exit.Function)
	require.Equal(t, "before", exit.Record.Moment)
	require.Equal(t, "%x 12345 0x3039", fmt.Sprintf("%s %s %s", exit.Slots[2].Name, exit.Slots[2].Value, exit.Slots[2].Hex))
	var sum struct {
		Exits, Told int
		Sites       []struct {
			Function, Site string
			Count          int
		}
		End struct{ Kind string }
	}
	require.NoError(t, json.Unmarshal([]byte(all[1]), &sum))
	require.Equal(t, "limit", sum.End.Kind)
	require.Equal(t, 1, sum.Sites[0].Count)
}

// TestTraceDryRun requires that the plan matches the code, and that a dry run writes nothing.
func TestTraceDryRun(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	p, _ := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{})
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", p.PID))
	require.NoError(t, err)
	defer memory.Close()
	r := clitest.Run(t, "trace", "-p", clitest.PID(p), "--ir", module, "--dry-run")
	require.Equal(t, 0, r.Code, r.Stderr)
	rows := regexp.MustCompile(`(?m)^0x([0-9a-f]+)  +0x([0-9a-f]+) → 0xcc  (\S+) +(.*)$`).FindAllStringSubmatch(r.Stdout, -1)
	require.Len(t, rows, strings.Count(r.Stdout, "\n"))
	require.Len(t, rows, 3)
	var what []string
	for _, row := range rows {
		var at, want int64
		_, err := fmt.Sscanf(row[1]+" "+row[2], "%x %x", &at, &want)
		require.NoError(t, err)
		var is [1]byte
		_, err = memory.ReadAt(is[:], at)
		require.NoError(t, err)
		require.EqualValues(t, want, is[0])
		what = append(what, regexp.MustCompile(`\+0x.*`).ReplaceAllString(row[3], "")+" "+row[4])
	}
	require.ElementsMatch(t, []string{"__jit_debug_register_code entry", "_dl_debug_state entry", "tick record 1, stackmap, before"}, what)

	r = clitest.Run(t, "trace", "-p", clitest.PID(p), "--dry-run", "--json")
	require.Equal(t, 0, r.Code, r.Stderr)
	for line := range strings.Lines(r.Stdout) {
		clitest.RequireValid(t, "trace.schema.json", line)
	}
	r = clitest.Run(t, "trace", "-p", clitest.PID(p), "--dry-run", "--site", "deoptimize")
	r.Fails(t, 2, "no record is selected (1 known)")
}

// TestTraceCorruptRegistry requires that an error in the list of registered objects is reported.
func TestTraceCorruptRegistry(t *testing.T) {
	t.Parallel()
	for how, want := range map[string]string{
		"loop":      "list of registered JIT objects is corrupt: entry 2 is again the entry at 0x",
		"wild":      "list of registered JIT objects is corrupt: entry 2 cannot be read: 32 bytes at 0x5ead00000000",
		"wildfile":  "cannot be used: it points outside of memory",
		"hugesize":  "cannot be used: it claims 9223372036854775807 bytes",
		"badmagic":  "cannot be used: it does not point to a 64-bit ELF object",
		"truncated": "cannot be used: its section headers lie outside of it",
	} {
		p := livetest.C(t, "corrupt.c", nil, how)
		r := clitest.Run(t, "trace", "-p", clitest.PID(p), "--dry-run")
		require.Equal(t, 2, r.Code)
		require.Contains(t, r.Stderr, want)
		require.Contains(t, r.Stderr, "no stack map")
		clitest.RequireUnharmed(t, p)
	}
}

// TestTraceObjectInNoMemory requires, for an object that is registered during the trace and claims code at an unmapped address, an error for the
// breakpoint. The program must run to its end.
func TestTraceObjectInNoMemory(t *testing.T) {
	t.Parallel()
	const program = `#include "gdbjit.h"
#include <elf.h>
#include <stdio.h>
static char object[1 << 20];
static struct jit_code_entry entry = {0, 0, object, 0};
int main(int argc, char **argv) {
  entry.symfile_size = fread(object, 1, sizeof object, fopen(argv[1], "r"));
  Elf64_Ehdr *e = (Elf64_Ehdr *)object;
  Elf64_Shdr *s = (Elf64_Shdr *)(object + e->e_shoff);
  for (int i = 0; i < e->e_shnum; i++)
    if (s[i].sh_flags & SHF_EXECINSTR) s[i].sh_addr = 0x5ead00000000;
  jit_register(&entry);
  puts("done");
  return 0;
}
`
	object, _ := clitest.TickObject(t)
	dir := t.TempDir()
	source, path := filepath.Join(dir, "nowhere.c"), filepath.Join(dir, "nowhere")
	require.NoError(t, os.WriteFile(source, []byte(program), 0o600))
	header := filepath.Dir(livetest.Testdata(t, "..", "internal", "demo", "target", "gdbjit.h"))
	build := exec.Command(livetest.Tool(t, "gcc"), "-I"+header, "-o", path, source)
	out, err := build.CombinedOutput()
	require.NoError(t, err, "%s", out)
	r := clitest.Run(t, "trace", "--", path, object)
	require.Equal(t, 2, r.Code)
	require.Equal(t, "done\n", r.Stdout)
	require.Contains(t, r.Stderr, "cannot set a breakpoint")
	require.Contains(t, r.Stderr, "the process exited with status 0")
	require.Contains(t, r.Stderr, "no exit occurred")
}

// TestTraceInterrupted requires that a signal ends the trace, and that the process continues with its original code.
func TestTraceInterrupted(t *testing.T) {
	t.Parallel()
	object, _ := clitest.TickObject(t)
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		o := livetest.ObjectHostOptions{Threads: 2, Rounds: 50}
		p, begin := livetest.ObjectHost(t, object, o)
		c := clitest.Command(t, "trace", "-p", clitest.PID(p))
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		var stderr strings.Builder
		c.Stderr = &stderr
		require.NoError(t, c.Start())
		clitest.WaitTraced(t, p)
		begin()
		lines := bufio.NewReader(out)
		for range 20 {
			_, err := lines.ReadString('\n')
			require.NoError(t, err)
		}
		require.NoError(t, c.Process.Signal(signal))
		_, err = io.Copy(io.Discard, lines)
		require.NoError(t, err)
		_ = c.Wait() // the test checks its status
		require.Equal(t, want, c.ProcessState.ExitCode(), stderr.String())
		require.Regexp(t, `^\d+ exits in .*; interrupted\n`, stderr.String())
		require.NoError(t, p.Wait())
		checksum, _ := livetest.CVersion(t, "tick.ll", o)
		require.Contains(t, p.Output(), checksum)
	}
}

// TestTraceFailedWrite requires that a closed reader or a full disk ends the trace, and that the process continues.
func TestTraceFailedWrite(t *testing.T) {
	t.Parallel()
	object, _ := clitest.TickObject(t)
	o := livetest.ObjectHostOptions{Threads: 2, Rounds: 50}
	checksum, _ := livetest.CVersion(t, "tick.ll", o)
	for _, full := range []bool{false, true} {
		p, begin := livetest.ObjectHost(t, object, o)
		args := []string{"trace", "-p", clitest.PID(p)}
		if full {
			args = append(args, "-o", "/dev/full")
		}
		c := clitest.Command(t, args...)
		var stderr strings.Builder
		c.Stderr = &stderr
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		clitest.WaitTraced(t, p)
		require.NoError(t, out.Close())
		begin()
		_ = c.Wait() // the test checks its status
		require.Equal(t, 2, c.ProcessState.ExitCode(), stderr.String())
		want := syscall.EPIPE
		if full {
			want = syscall.ENOSPC
		}
		require.Contains(t, stderr.String(), want.Error())
		require.NoError(t, p.Wait())
		require.Contains(t, p.Output(), checksum)
	}
}

// TestTraceEndings requires that the end of a process is reported, and that the process behaves as without reframe.
func TestTraceEndings(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, _ := clitest.TickObject(t)
	for middle, want := range map[string]string{
		"fork": "the process exited with status 0", "spawn": "the process exited with status 0", "exec": "the process exited with status 0",
		"exit": "the process exited with status 3", "abort": "the process was killed by SIGABRT",
	} {
		o := livetest.ObjectHostOptions{Threads: 2, Rounds: 6, Middle: middle}
		host := livetest.ObjectHostCommand(t, object, o)
		r := clitest.Run(t, append([]string{"trace", "--every", "1000", "--"}, host...)...)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, "; "+want+"\n", middle)
		if middle != "exit" && middle != "abort" {
			require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout, middle)
		}
	}
}

func TestTraceUsage(t *testing.T) {
	livetest.NeedsTools(t)
	t.Parallel()
	clitest.RequireRefusals(t, []clitest.Refusal{
		{Args: "trace", Want: "trace requires a process: -p PID, or -- COMMAND"},
		{Args: "trace -p 1 -- ls", Want: "-p and a command to start cannot be combined"},
		{Args: "trace -p 0", Want: "-p 0: a process id must be above 0"},
		{Args: "trace --dry-run -- ls", Want: "--dry-run requires a running process: -p PID"},
		{Args: "trace -t 5 -- ls", Want: "-t 5 cannot be combined with a command to start: its thread ids are unknown"},
		{Args: "trace --every 0 -- ls", Want: "--every 0: must be above 0"},
		{Args: "trace --limit 0 -- ls", Want: "--limit 0: must be above 0"},
		{Args: "trace --count --full -- ls", Want: "it shows no exits"},
		{Args: "trace --count --every 5 -- ls", Want: "it shows no exits"},
		{Args: "trace --count --stop-at %i==3 --log -- ls", Want: "it shows no exits"},
		{Args: "trace --log -- ls", Want: "--log requires --stop-at"},
		{Args: "trace --for 0s -- ls", Want: "--for 0s: must be above 0"},
		{Args: "trace --for -1s -- ls", Want: "--for -1s: must be above 0"},
		{Args: "trace --at f --site stackmap -- ls", Want: "--at cannot be combined with"},
		{Args: "trace --site what -- ls", Want: "--site what: expected one of stackmap, patchpoint, statepoint, deoptimize, unknown"},
		{Args: "trace --record x -- ls", Want: "--record x: expected a 64-bit number, such as 2882400000 or 0xabcdef00"},
		{Args: "trace --function ( -- ls", Want: "--function (: error parsing regexp"},
		{Args: "trace --stop-at %i=3 -- ls", Want: `--stop-at: %i=3: at "=3": a comparison is written ==`},
		{Args: "trace --limit x -- ls", Want: `--limit "x": expected a whole number, 0 or more`},
	})
	clitest.RequireErrors(t, map[string]string{
		"trace -- /nothing/here":              "/nothing/here",
		"trace -p 4194303":                    "no such process",
		"trace -o /nothing/here -- ls":        "/nothing/here",
		"trace --ir /nothing/here.ll -- ls":   "/nothing/here.ll",
		"trace -- true":                       "no exit occurred",
		"trace --at no_such_function -- true": "no exit occurred",
	})
}

// TestTraceHelp requires that the help lists the flags, and that a shell can complete the kinds of sites.
func TestTraceHelp(t *testing.T) {
	t.Parallel()
	r := clitest.Run(t, "trace", "--help")
	require.Equal(t, 0, r.Code)
	for _, flag := range []string{"--record", "--function", "--site", "--at", "--full", "--count", "--limit", "--every", "--stop-at", "--output", "--dry-run", "--json", "--ir", "--layout"} {
		require.Contains(t, r.Stdout, flag)
	}
	r = clitest.Run(t, "__complete", "trace", "--site", "")
	require.True(t, strings.HasPrefix(r.Stdout, "stackmap\npatchpoint\nstatepoint\ndeoptimize\nunknown\n"), r.Stdout)
}

// TestTraceFlushes requires that a line is written immediately, even if no other follows.
func TestTraceFlushes(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "stop_at.ll", "mcjit")
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	c := exec.CommandContext(ctx, clitest.Binary(), "trace", "-p", clitest.PID(p), "-t", clitest.PID(p), "--ir", p.IR)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	lines := bufio.NewReader(out)
	for range 3 {
		p.AwaitPause(t)
		p.Signal(t, syscall.SIGUSR1)
		line, err := lines.ReadString('\n')
		require.NoError(t, err)
		require.Contains(t, line, "  work+0x2d  record 3001 stackmap  %v1=101 %v2=10500 %v3=-6 %v4=11 %d1=6.0 %d2=8.75 %t=10500 ")
	}
	require.NoError(t, c.Process.Signal(os.Interrupt))
	err = c.Wait()
	var exit *exec.ExitError
	require.True(t, errors.As(err, &exit))
	require.Equal(t, 130, exit.ExitCode())
	clitest.RequireUnharmed(t, p)
}
