package verify_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestVerifyCommand requires that a command has the same output as without reframe, and that exits which cannot be compared are reported and counted.
func TestVerifyCommand(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := livetest.PICObject(t, 19, "memory.ll", "-O2"), livetest.IR(t, 19, "memory.ll")
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 70})
	file := filepath.Join(t.TempDir(), "exits")
	r := clitest.Run(t, append([]string{"verify", "--all", "--ir", module, "-o", file, "--"}, host...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout)
	require.Regexp(t, `^140 exits verified in \d+\.\d{3} s: 140 same, 0 different, 0 not comparable; the process exited with status 0\n$`, r.Stderr)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	lines := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
	require.Len(t, lines, 140)
	seen := map[string]bool{}
	for _, line := range lines {
		require.Regexp(t, `^\d+  \d+ obj_host  rewrite\+0x[0-9a-f]+  record 3[12] stackmap  same, returns i64 -?\d+$`, line)
		number, _, _ := strings.Cut(line, " ")
		seen[number] = true
	}
	require.Len(t, seen, 140)

	// Without --all only differences are reported. This program has none.
	r = clitest.Run(t, append([]string{"verify", "--ir", module, "--limit", "10", "--"}, host...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `^10 exits verified in .*: 10 same, 0 different, 0 not comparable; the limit of 10 was reached\n$`, r.Stderr)
}

// TestVerifySame requires that programs with layouts, recursion, calls and threads have no differences.
func TestVerifySame(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for program, flags := range map[string][]string{
		"tick.ll": {"--every", "397"}, "state.ll": nil, "patch.ll": nil, "floats.ll": nil, "recursion.ll": nil,
		"guards.ll": {"--layout", livetest.Testdata(t, "programs", "guards.layout.json")},
	} {
		object, module := livetest.PICObject(t, 22, program, "-O2"), livetest.IR(t, 22, program)
		rounds, alone := livetest.Times(1, 3), ""
		if program == "guards.ll" {
			rounds = 3 // not every round reaches an exit
			alone = `  \d+  compared only after the exit, so a wrong bundle goes unseen: @total_opt and @total have different types; use --baseline NAME\n`
		}
		host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: rounds})
		r := clitest.Run(t, append(append([]string{"verify", "--ir", module}, flags...), append([]string{"--"}, host...)...)...)
		require.Equal(t, 0, r.Code, "%s: %s", program, r.Stderr)
		require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout, program)
		require.Regexp(t, ` 0 different, 0 not comparable; .*the process exited with status 0\n`+alone+"$", r.Stderr)
	}
}

// TestVerifyProcess requires that a running process continues as before.
func TestVerifyProcess(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	o := livetest.ObjectHostOptions{Rounds: 3}
	p, begin := livetest.ObjectHost(t, object, o)
	c := clitest.Command(t, "verify", "-p", clitest.PID(p), "--ir", module, "--every", "300", "--all")
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	c.Stderr = &stderr
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	begin()
	text, err := io.ReadAll(out)
	require.NoError(t, err)
	require.NoError(t, c.Wait(), stderr.String())
	require.Regexp(t, `^10 exits verified in .*: 10 same, 0 different, 0 not comparable; 2990 skipped; the process exited with status 0\n$`, stderr.String())
	for round := range 3 {
		require.Equal(t, []int{3, 3, 4}[round], strings.Count(string(text), fmt.Sprintf("same, returns i64 %d\n", clitest.TickAt(1+1000*round).Result())), "%s", text)
	}
	require.NoError(t, p.Wait())
	checksum, _ := livetest.CVersion(t, "tick.ll", o)
	require.Contains(t, p.Output(), checksum)
}

// TestVerifyJSON requires that each line of the JSON matches its schema, and that the last line is the summary.
func TestVerifyJSON(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.WrongTick(t)
	memory, memoryModule := livetest.PICObject(t, 19, "memory.ll", "-O2"), livetest.IR(t, 19, "memory.ll")
	lines := func(code int, object, module string, rounds int, args ...string) []string {
		host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: rounds})
		file := filepath.Join(t.TempDir(), "exits.json")
		r := clitest.Run(t, append(append([]string{"verify", "--json", "-o", file, "--ir", module}, args...), append([]string{"--"}, host...)...)...)
		require.Equal(t, code, r.Code, r.Stderr)
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		all := strings.Split(strings.TrimSuffix(string(text), "\n"), "\n")
		for n, line := range all {
			clitest.RequireValid(t, "verify.schema.json", line)
			require.Equal(t, n == len(all)-1, strings.HasPrefix(line, `{"schema":"reframe.verify.summary/v1",`), line)
		}
		return all
	}
	require.Len(t, lines(0, memory, memoryModule, 70), 1)
	require.Len(t, lines(0, memory, memoryModule, 70, "--all"), 141)
	require.Len(t, lines(2, memory, memoryModule, 1, "--record", "77"), 1)
	all := lines(3, object, module, 1, "--skip", "5", "--limit", "1", "--tail", "2")
	require.Len(t, all, 2)
	var v struct {
		N, Hit    int
		Status    string
		Result    []struct{ Register, Interpreter, Native string }
		Slots     []struct{ Name, Value string }
		Native    struct{ Tail []string }
		Reproduce string
	}
	require.NoError(t, json.Unmarshal([]byte(all[0]), &v))
	require.Equal(t, []int{6, 6}, []int{v.N, v.Hit})
	require.Equal(t, "different", v.Status)
	require.Equal(t, strconv.FormatInt(clitest.TickAt(6).Result(), 10), v.Result[0].Native)
	require.Equal(t, v.Slots[2].Value, v.Slots[3].Value)
	require.Len(t, v.Native.Tail, 2)
	require.Contains(t, v.Reproduce, " --record 1 --skip 5 --limit 1 -- ")
	lines(3, clitest.WithChangedMap(t, memory, func(b *stackmap.Blob) {
		l := b.Functions[0].Records[0].Locations
		l[0], l[2] = l[1], l[0]
	}), memoryModule, 70, "--all", "--keep", t.TempDir())
}

// TestVerifyInterrupted requires that a signal ends verify, and that the process continues.
func TestVerifyInterrupted(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	for signal, want := range map[syscall.Signal]int{syscall.SIGINT: 130, syscall.SIGTERM: 143, syscall.SIGHUP: 129} {
		o := livetest.ObjectHostOptions{Threads: 2, Rounds: 50}
		p, begin := livetest.ObjectHost(t, object, o)
		c := clitest.Command(t, "verify", "-p", clitest.PID(p), "--ir", module, "--all")
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		var stderr strings.Builder
		c.Stderr = &stderr
		require.NoError(t, c.Start())
		clitest.WaitTraced(t, p)
		begin()
		one := make([]byte, 1)
		_, err = io.ReadFull(out, one)
		require.NoError(t, err)
		require.NoError(t, c.Process.Signal(signal))
		_, err = io.Copy(io.Discard, out)
		require.NoError(t, err)
		_ = c.Wait() // the test checks its status
		require.Equal(t, want, c.ProcessState.ExitCode(), stderr.String())
		require.Regexp(t, `^\d+ exits verified in .*; interrupted\n`, stderr.String())
		require.NoError(t, p.Wait())
		checksum, _ := livetest.CVersion(t, "tick.ll", o)
		require.Contains(t, p.Output(), checksum)
	}
}

func TestVerifyUsage(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	clitest.RequireRefusals(t, []clitest.Refusal{
		{Args: "verify", Want: "verify requires a process: -p PID, or -- COMMAND"},
		{Args: "verify --no-self-description -- ls", Want: "verify requires the compiled module, which the interpreter runs: --ir FILE.ll"},
		{Args: "verify -p 1 -- ls", Want: "-p and a command to start cannot be combined"},
		{Args: "verify --ir x -t 5 -- ls", Want: "-t 5 cannot be combined with a command to start: its thread ids are unknown"},
		{Args: "verify --ir x --every 0 -- ls", Want: "--every 0: must be above 0"},
		{Args: "verify --ir x --limit 0 -- ls", Want: "--limit 0: must be above 0"},
		{Args: "verify --ir x --steps 0 -- ls", Want: "--steps 0: must be from 1 to 1099511627776"},
		{Args: "verify --ir x --timeout 0s -- ls", Want: "--timeout 0s: must be above 0"},
		{Args: "verify --ir x --tail 0 -- ls", Want: "--tail 0: must be from 1 to 65536"},
		{Args: "verify --ir x --memory 0 -- ls", Want: "--memory 0: expected a size such as 64M or 2G"},
		{Args: "verify --ir x --at f --record 3 -- ls", Want: "--at cannot be combined with"},
		{Args: "verify --ir x --stop-at %i>3 -- ls", Want: "--stop-at"},
	})
	host := strings.Join(livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{}), " ")
	clitest.RequireErrors(t, map[string]string{
		"verify --ir " + module + " -- /nothing/here":                      "/nothing/here",
		"verify --ir /nothing/here.ll -- ls":                               "/nothing/here.ll",
		"verify --ir " + module + " -p 4194303":                            "no such process",
		"verify --keep /dev/null/x --ir " + module + " -- true":            "/dev/null",
		"verify --ir " + module + " -- true":                               "no exit occurred",
		"verify --ir " + module + " --skip 5000 -- " + host:                "no exit was verified: all were skipped",
		"verify --ir " + module + " --limit 3 --memory 4K -- " + host:      "no exit could be verified",
		"verify --ir " + module + " --limit 1 -o /nothing/here -- " + host: "/nothing/here",
	})
}

// TestVerifyFailedWrite requires that a closed reader or a full disk ends verify, and that the process continues.
func TestVerifyFailedWrite(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 5})
	r := clitest.Run(t, append([]string{"verify", "--all", "--ir", module, "-o", "/dev/full", "--"}, host...)...)
	require.Equal(t, 2, r.Code, r.Stderr)
	require.Contains(t, r.Stderr, syscall.ENOSPC.Error())
	require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout)
}

// TestVerifyFromEntry requires that a run from the entry of the function shows which side is wrong, in text and in JSON that matches the schema.
// Entries can also be verified alone.
func TestVerifyFromEntry(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	swapped := clitest.SwappedBundle(t)
	host := livetest.ObjectHostCommand(t, swapped+".o", livetest.ObjectHostOptions{Rounds: 2})
	on := func(args ...string) clitest.Result {
		return clitest.Run(t, append(append([]string{"verify", "--ir", swapped + ".ll"}, args...), append([]string{"--"}, host...)...)...)
	}
	described := livetest.Testdata(t, "programs", "baseline.layout.json")
	r := on("--layout", described, "--from-entry=false")
	require.Equal(t, 0, r.Code, "%s: from the exit on both sides are alike", r.Stderr)
	for _, by := range []string{"--from-entry", "--from-entry=true", "--all"} { // with --all the layout alone selects entries
		r = on("--layout", described, by)
		require.Equal(t, 3, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, "wrong: the bundle or the layout: the baseline's %i is in %acc, the baseline's %acc is in %i\n")
		require.Regexp(t, `(?m)^  reproduce: reframe verify .*--from-entry.* --record 95 --limit 1 `, r.Stderr)
		require.NotContains(t, r.Stderr, "compared only after the exit")
	}
	for _, args := range [][]string{{"--layout", described, "--from-entry"}, {"--entry", "plain_opt", "--baseline", "plain"}} {
		r = on(append(args, "--json", "-o", "-", "--all")...)
		require.Equal(t, 3, r.Code, r.Stderr)
		lines := strings.Split(strings.TrimSpace(r.Stdout), "\n")
		lines = slices.DeleteFunc(lines, func(line string) bool { return !strings.HasPrefix(line, "{") }) // removes the output of the program
		require.Len(t, lines, 3)
		for _, line := range lines {
			clitest.RequireValid(t, "verify.schema.json", line)
		}
		require.Contains(t, lines[0], `"wrong":"the `)
	}
	r = on("--entry", "resumed", "--all")
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^1  \d+ obj_host  entry of resumed  same, returns i64 \d+\n2 `, r.Stderr)
	require.Contains(t, r.Stderr, "2 entries verified in ")
	for _, c := range []struct {
		args []string
		says string
	}{
		{[]string{"--entry", "plain_opt", "--baseline", "plan"}, "--baseline plan: no module defines @plan; nearest: plain"},
		{[]string{"--baseline", "plain"}, "--baseline plain requires --from-entry or --entry"},
		{[]string{"--entry", "plain", "--from-entry"}, "--entry and --from-entry cannot be combined"},
		{[]string{"--entry", "plain", "--at", "plain"}, "--entry and --at cannot be combined"},
		{[]string{"--entry", "plain", "--record", "95"}, "--entry cannot be combined with --record or --site"},
	} {
		r := on(c.args...)
		require.Equal(t, 64, r.Code, r.Stderr)
		require.Contains(t, r.Stderr, c.says)
	}
}

// TestVerifyReduces requires that the reduction described in doc/user/verify.md keeps the fault and removes the rest of the module, and that its test
// rejects a module without the fault.
func TestVerifyReduces(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	dir := t.TempDir()
	doc, err := os.ReadFile("../../doc/user/verify.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(doc), "```sh\n")
	require.True(t, found)
	test, rest, _ := strings.Cut(rest, "```\n")
	require.Contains(t, test, " --for 2s ")
	test = strings.Replace(test, " --for 2s ", " --for 1m ", 1) // this machine may be slow
	_, reduce, _ := strings.Cut(rest, "\n    llvm-reduce-19 ")
	reduce, _, _ = strings.Cut(reduce, "\n")
	swapped := clitest.SwappedBundle(t)
	text, err := os.ReadFile(swapped + ".ll")
	require.NoError(t, err)
	more := "define i64 @needless(i64 %x) {\n  %y = mul i64 %x, 3\n  ret i64 %y\n}\n"
	require.NoError(t, os.WriteFile(filepath.Join(dir, "sum.ll"), append(text, more...), 0o600))
	clitest.CopyFile(t, livetest.Testdata(t, "programs", "baseline.ll"), filepath.Join(dir, "right.ll"))
	clitest.CopyFile(t, livetest.Testdata(t, "programs", "baseline.layout.json"), filepath.Join(dir, "sum.layout.json"))
	require.NoError(t, os.WriteFile(filepath.Join(dir, "interesting.sh"), []byte(test), 0o755))
	require.NoError(t, os.Symlink(livetest.ObjectHostCommand(t, swapped+".o", livetest.ObjectHostOptions{})[0], filepath.Join(dir, "host")))
	run := func(command string) int {
		c := exec.Command(livetest.Tool(t, "sh"), "-c", command)
		c.Dir, c.Env = dir, append(os.Environ(), "PATH="+filepath.Dir(clitest.Binary())+":"+os.Getenv("PATH"))
		out, err := c.CombinedOutput()
		if exit := (*exec.ExitError)(nil); !errors.As(err, &exit) {
			require.NoError(t, err, "%s", out)
		}
		return c.ProcessState.ExitCode()
	}
	require.Equal(t, 0, run("./interesting.sh sum.ll"))
	require.Equal(t, 1, run("./interesting.sh right.ll"))
	require.Equal(t, 0, run("timeout 300 llvm-reduce-19 "+strings.Replace(reduce, "function-bodies,basic-blocks,instructions", "function-bodies", 1)), "the pass with few runs")
	require.Equal(t, 0, run("./interesting.sh small.ll"))
	size := func(name string) int {
		m, err := ir.ParseFile(filepath.Join(dir, name))
		require.NoError(t, err)
		n := 0
		for _, f := range m.Funcs {
			if !f.Declared() {
				body, err := f.Body()
				require.NoError(t, err)
				for _, b := range body {
					n += len(b.Instrs)
				}
			}
		}
		return n
	}
	require.Less(t, size("small.ll"), size("sum.ll"))
}

// TestVerifyKeeps requires that the files that are kept for a difference suffice to examine it, and that the kept script passes.
func TestVerifyKeeps(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	swapped, kept := clitest.SwappedBundle(t), filepath.Join(t.TempDir(), "it's kept")
	host := livetest.ObjectHostCommand(t, swapped+".o", livetest.ObjectHostOptions{Rounds: 2})
	r := clitest.Run(t, append([]string{"verify", "--keep", kept, "--from-entry", "--ir", swapped + ".ll", "--layout", livetest.Testdata(t, "programs", "baseline.layout.json"), "--"}, host...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^  core: .*/it's kept/verify-\d+-2.core\n  script: .*/it's kept/verify-\d+-2.core.txtar$`, r.Stderr)
	names, err := filepath.Glob(filepath.Join(kept, "*"))
	require.NoError(t, err)
	require.Len(t, names, 6, "two cores, two scripts, one module, one layout: %v", names)
	require.NoError(t, os.Remove(swapped+".ll")) // the kept files must suffice
	scripts, err := filepath.Glob(filepath.Join(kept, "*.txtar"))
	require.NoError(t, err)
	require.Len(t, scripts, 2)
	r = clitest.Run(t, append([]string{"replay"}, scripts...)...)
	require.Equal(t, 0, r.Code, "%s%s", r.Stdout, r.Stderr)
}

// TestVerifyShowsProgress requires that a terminal shows the progress, and that it is removed afterwards. If the program itself writes to the
// terminal, no progress is shown.
func TestVerifyShowsProgress(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 5})
	run := func(stdout func(slave *os.File) *os.File) string {
		c := clitest.Command(t, append([]string{"verify", "--ir", module, "-o", "-", "--"}, host...)...)
		master, slave := livetest.Terminal(t)
		defer master.Close()
		c.Stderr, c.Stdout = slave, stdout(slave)
		require.NoError(t, c.Start())
		require.NoError(t, slave.Close())
		var out strings.Builder
		_, _ = io.Copy(&out, master) // ends with EIO, because the other end is closed
		require.NoError(t, c.Wait())
		return out.String()
	}
	null, err := os.OpenFile(os.DevNull, os.O_WRONLY, 0)
	require.NoError(t, err)
	defer null.Close()
	shown := regexp.MustCompile(`\r\d+ exits?: \d+ same, 0 different, 0 not comparable\x1b\[K`)
	alone := run(func(*os.File) *os.File { return null })
	require.Regexp(t, shown, alone)
	require.Regexp(t, `\r\x1b\[K\d+ exits verified in `, alone)
	require.NotRegexp(t, shown, run(func(slave *os.File) *os.File { return slave }))
}

// raising is a program that sends itself a signal after each of five exits, and prints the signal's effect. fifth replaces the signal after the last
// exit.
const raising = `target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i32 @raise(i32)
declare i64 @pthread_self()
declare i32 @pthread_kill(i64, i32)
declare void @abort()
declare ptr @signal(i32, ptr)
declare i32 @printf(ptr, ...)
declare i32 @fflush(ptr)
@text = constant [4 x i8] c"%d\0A\00"
@sum = global i32 0
define void @handler(i32 %signal) {
  %old = load volatile i32, ptr @sum
  %new = add i32 %old, %signal
  store volatile i32 %new, ptr @sum
  ret void
}
define i32 @work(i32 %n) noinline {
  %m = add i32 %n, 100
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %m, i32 %n)
  %last = icmp eq i32 %n, 4
  br i1 %last, label %fifth, label %others
fifth:
  FIFTH
  br label %others
others:
  %r = call i32 @raise(i32 10)
  %f = load volatile i32, ptr @sum
  %s = add i32 %f, %m
  ret i32 %s
}
define i32 @main() {
entry:
  %h = call ptr @signal(i32 10, ptr @handler)
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %j, %loop ]
  %r = call i32 @work(i32 %i)
  %p = call i32 (ptr, ...) @printf(ptr @text, i32 %r)
  %x = call i32 @fflush(ptr null)
  %j = add i32 %i, 1
  %c = icmp slt i32 %j, 5
  br i1 %c, label %loop, label %out
out:
  ret i32 0
}
`

// TestVerifyOfRaisedSignals requires that a signal which a thread sends to itself is delivered while the thread runs alone, so that its handler has
// run when raise(3) returns. abort(3) must end the program as usual.
func TestVerifyOfRaisedSignals(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for name, c := range map[string]struct{ fifth, verdict string }{
		"raise":        {"", "5 exits verified in .*: 5 same, 0 different, 0 not comparable; the process exited with status 0"},
		"pthread_kill": {"%t = call i64 @pthread_self()\n  %k = call i32 @pthread_kill(i64 %t, i32 10)", "5 exits verified in .*: 5 same, 0 different, 0 not comparable; the process exited with status 0"},
		"abort":        {"call void @abort()", "5 exits verified in .*: 4 same, 0 different, 1 not comparable; the process was killed by SIGABRT"},
	} {
		module := livetest.Module(t, strings.ReplaceAll(raising, "FIFTH", c.fifth))
		program := livetest.ModuleBinary(t, 19, module)
		plain, _ := exec.Command(program).Output() // an error is expected: the program calls abort
		require.True(t, strings.HasPrefix(string(plain), "110\n121\n132\n143\n"), string(plain))
		for _, args := range [][]string{{"--from-entry=false"}, {"--from-entry"}} {
			r := clitest.Run(t, slices.Concat([]string{"verify", "--ir", module}, args, []string{"--", program})...)
			require.Regexp(t, c.verdict, r.Stderr, "%s %v", name, args)
			require.Equal(t, string(plain), r.Stdout, "%s %v", name, args)
		}
	}
}

// TestVerifyOfProcessesAndMappings requires that a program which starts processes, and maps and unmaps memory, after an exit behaves as without
// reframe. Its exits must be comparable.
func TestVerifyOfProcessesAndMappings(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	for name, want := range map[string]string{
		"processes.c": "2 1 8\n6 2 8\n12 3 8\n",
		"mappings.c":  "7 1 1\n9 2 2\n12 3 3\n16 4 4\n21 5 5\n",
	} {
		sites := clitest.ModuleWithSites(t, filepath.Join("testdata", name))
		program := livetest.ModuleBinary(t, 19, sites)
		for _, args := range [][]string{{"--from-entry=false"}, {"--from-entry"}} {
			r := clitest.Run(t, slices.Concat([]string{"verify", "--ir", sites}, args, []string{"--", program})...)
			require.Equal(t, 0, r.Code, "%s %v: %s", name, args, r.Stderr)
			require.Regexp(t, `^(\d\d+) exits verified in .*: (\d\d+) same, 0 different, 0 not comparable; (\d+ skipped; )?the process exited with status 0\n(  \d+  skipped: 16 exits were pending, and 4 of the same record among them\n)?$`, r.Stderr, "%s %v", name, args)
			require.Equal(t, want, r.Stdout, "%s %v", name, args)
		}
		// The interpreter alone cannot continue from many of these exits, but must report for none of them that the frame may be wrong.
		r := clitest.Run(t, "stress", "--probability", "1", "--seed", "1", "--ir", sites, "--", program)
		require.Equal(t, 0, r.Code, "%s: %s", name, r.Stderr)
		require.Contains(t, r.Stdout, "nothing differs: exit status 0", name)
		require.NotContains(t, r.Stderr, "may be wrong", name)
	}
}

// TestVerifyOfWaitingThreads requires that verify gives up immediately if native code waits for a thread that is stopped, and not only after its time
// limit, which is a minute here.
func TestVerifyOfWaitingThreads(t *testing.T) {
	t.Parallel()
	sites := clitest.ModuleWithSites(t, "testdata/answers.c")
	r := clitest.Run(t, "verify", "--timeout", "1m", "--ir", sites, "--", livetest.ModuleBinary(t, 19, sites))
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Equal(t, "1\n3\n6\n10\n", r.Stdout)
	require.Regexp(t, `^(?s)\d+ exits verified in .*, 0 different, .*\n  \d+  native code did not return: it waits for another thread, and the others are stopped while it runs alone\n`, r.Stderr)
	require.NotContains(t, r.Stderr, "took over")
}

// TestVerifyOfExceptions requires, for a program that catches exceptions of native code, that exits which do not rethrow are compared, also those in
// its handlers. For the others a reason must be given.
func TestVerifyOfExceptions(t *testing.T) {
	t.Parallel()
	sites := clitest.ModuleWithSites(t, "testdata/caught.cc")
	r := clitest.Run(t, "verify", "--ir", sites, "--", livetest.ModuleBinary(t, 19, sites, "-lstdc++"))
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Equal(t, strings.Repeat("stoi\n-1 3 12 5 1\n", 3), r.Stdout)
	found := regexp.MustCompile(`^(\d+) exits verified in .*: (\d+) same, 0 different, `).FindStringSubmatch(r.Stderr)
	require.NotNil(t, found, r.Stderr)
	all, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	same, err := strconv.Atoi(found[2])
	require.NoError(t, err)
	require.Greater(t, 3*same, 2*all, r.Stderr)
	require.NotContains(t, r.Stderr, "reaches outside")
	require.Regexp(t, `it calls @_ZSt24__throw_invalid_argumentPKc, which does not return: it throws`, r.Stderr)
}

// TestVerifyOfSanitizedProgram requires that a program can be verified whose sanitizer reserves terabytes of memory, of which only some pages are
// used.
func TestVerifyOfSanitizedProgram(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	sites := clitest.ModuleWithSites(t, "testdata/mappings.c")
	c := clitest.Command(t, "verify", "--ir", sites, "--", livetest.ModuleBinary(t, 19, sites, "-fsanitize=address"))
	c.Env = append(c.Environ(), "ASAN_OPTIONS=detect_leaks=0") // leak detection does not work under a tracer
	r := clitest.Finish(t, c)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Equal(t, "7 1 1\n9 2 2\n12 3 3\n16 4 4\n21 5 5\n", r.Stdout)
	require.Regexp(t, `^\d\d+ exits verified in .*: \d\d+ same, 0 different, 0 not comparable; `, r.Stderr)
}

// TestVerifyOfRandomMappings requires that the interpreter sees the memory that native code leaves, whatever native code maps, unmaps, moves,
// protects and discards.
func TestVerifyOfRandomMappings(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	sites := clitest.ModuleWithSites(t, "testdata/remap.c")
	program := livetest.ModuleBinary(t, 19, sites)
	for seed := range livetest.Times(1, 200) {
		plain, err := exec.Command(program, strconv.Itoa(seed)).Output()
		require.NoError(t, err)
		for _, args := range [][]string{{"--from-entry=false"}, {"--from-entry"}} {
			r := clitest.Run(t, slices.Concat([]string{"verify", "--ir", sites}, args, []string{"--", program, strconv.Itoa(seed)})...)
			require.Equal(t, 0, r.Code, "seed %d, %v: %s", seed, args, r.Stderr)
			require.Regexp(t, `^\d\d+ exits verified in .*: \d\d+ same, 0 different, 0 not comparable; `, r.Stderr, "seed %d, %v", seed, args)
			require.Equal(t, string(plain), r.Stdout, "seed %d, %v", seed, args)
		}
	}
}

// TestVerifyOfFunctionsThatAreNotModelled requires that functions which the interpreter does not model are called in the process: containers, dates,
// scanning, regular expressions, complex and random numbers. An exit after which a callee keeps a pointer to a local variable is not comparable, and
// the reason says so.
func TestVerifyOfFunctionsThatAreNotModelled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	sites := clitest.ModuleWithSites(t, "testdata/library.cc")
	r := clitest.Run(t, "verify", "--ir", sites, "--", livetest.ModuleBinary(t, 19, sites, "-lstdc++"))
	require.Equal(t, "-1980 343 197213 1.76777\n", r.Stdout)
	found := regexp.MustCompile(`^(\d+) exits verified in .*: (\d+) same, 0 different, `).FindStringSubmatch(r.Stderr)
	require.NotNil(t, found, r.Stderr)
	all, err := strconv.Atoi(found[1])
	require.NoError(t, err)
	same, err := strconv.Atoi(found[2])
	require.NoError(t, err)
	require.Greater(t, all, 100)
	require.Greater(t, 10*same, 9*all, r.Stderr)
	require.NotContains(t, r.Stderr, "cannot tell where a value of type ")
}
