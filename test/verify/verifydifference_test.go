package verify_test

import (
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// told removes the parts that vary between runs from the report of a difference.
func told(text string) string {
	for _, r := range []string{`exit \d+, hit \d+`, `thread \d+`, `0x7[0-9a-f]{8,}`, `  (core|script|reproduce): .*\n`, `\d+ exits? verified (.*\n)*`} {
		text = regexp.MustCompile(r).ReplaceAllString(text, "")
	}
	return strings.TrimSpace(text)
}

// TestVerifyDifference requires that a wrong stack map is found, shown and kept, and that the command in the report finds it again.
func TestVerifyDifference(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.WrongTick(t)
	// Suggested commands must quote an apostrophe for the shell.
	dir := filepath.Join(t.TempDir(), "it's here")
	require.NoError(t, os.Mkdir(dir, 0o755))
	clitest.CopyFile(t, module, filepath.Join(dir, "tick.ll"))
	cores := filepath.Join(dir, "cores", "today")
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
	// Exit 11 is in the first round, which has 1000 exits. Exit 1000 is its last, and exit 1011 is in the second round.
	for _, n := range []int{11, 1000, 1011} {
		r := clitest.Run(t, append([]string{"verify", "--ir", filepath.Join(dir, "tick.ll"), "--function", "^t(i|o)ck$", "--tail", "4", "--keep", cores, "--skip", fmt.Sprint(n - 1), "--limit", "1", "--"}, host...)...)
		require.Equal(t, 3, r.Code, r.Stderr)
		require.Equal(t, clitest.OutputUntraced(t, host), r.Stdout)
		native := clitest.TickAt(n)
		interpreter := native
		interpreter.X = native.Y
		require.Regexp(t, fmt.Sprintf(`^exit %d, hit %d of record 1, thread \d+ obj_host
  #0   jit     tick\+0x[0-9a-f]+ +record 1, stackmap, before   → tick, block %%loop, at instruction 5
        %%i       i64    %d +\w+
        %%acc     i64    %d +\w+
        %%x       i64    %d +\[\w+-?\d+\]
        %%y       i64    %d +\[\w+-?\d+\]
  different result, i64 in rax
        interpreter  %d
        native code  %d
  interpreter, the last of \d+ instructions:
           2\d tick:loop            br i1 %%c, label %%loop, label %%done
           2\d tick:done            %%s = add i64 %%acc1, %%x1  ; -?\d+
           2\d tick:done            %%t = xor i64 %%s, %%y1  ; %d
           2\d tick:done            ret i64 %%t
  native code, the last of \d+ instructions:
        tick\+.*
        tick\+.*
        tick\+.*
        tick\+0x[0-9a-f]+ retq
  core: .*/cores/today/verify-\d+-%d.core
  script: .*/cores/today/verify-\d+-%d.core.txtar
  reproduce: reframe verify --ir '.*/it'\\''s here/tick.ll' --function '\^t\(i\|o\)ck\$' --tail 4 --timeout 3m0s --record 1 --skip %d --limit 1 -- .*

1 exit verified in .*: 0 same, 1 different, 0 not comparable; .*the limit of 1 was reached
$`, n, n, native.I, int64(native.Acc), int64(native.Y), int64(native.Y), interpreter.Result(), native.Result(), interpreter.Result(), n, n, n-1), r.Stderr)
		found := clitest.RunSuggestion(t, r.Stderr)
		require.Equal(t, 3, found.Code, found.Stderr)
		require.Equal(t, told(r.Stderr), told(found.Stderr))
		require.Contains(t, found.Stderr, fmt.Sprintf("exit %d, hit %d of record 1, ", n, n))
	}
	list, err := filepath.Glob(filepath.Join(cores, "*.core"))
	require.NoError(t, err)
	require.Len(t, list, 3)
	for _, core := range list {
		r := clitest.Run(t, "maps", "--core", core)
		require.Contains(t, r.Stdout, "record 1 at ", r.Stderr)
		// The kept test consists of a small core of the difference and a first script. In it, the interpreter returns the same result.
		var n int
		_, err := fmt.Sscanf(core[strings.LastIndexByte(core, '-')+1:], "%d.core", &n)
		require.NoError(t, err)
		wrong := clitest.TickAt(n)
		wrong.X = wrong.Y
		script := core + ".small.txtar"
		r = clitest.Run(t, "record", "--core", core, "--ir", filepath.Join(dir, "tick.ll"), "-o", core+".small", "--script", script)
		require.Equal(t, 0, r.Code, r.Stderr)
		text, err := os.ReadFile(script)
		require.NoError(t, err)
		require.Contains(t, string(text), fmt.Sprintf("\nexpect %%x = %d\n", int64(wrong.X)))
		require.Contains(t, string(text), fmt.Sprintf("\nreturns i64 %d\n", wrong.Result()))
		r = clitest.Run(t, "replay", script)
		require.Equal(t, 0, r.Code, r.Stdout)
	}
}

// TestVerifyFindsAgain requires that the command in a report counts exits in the same way as the original run: including exits that are skipped, that
// are inside others, and that belong to other records.
func TestVerifyFindsAgain(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	tick, tickModule := clitest.WrongTick(t)
	memory, memoryModule := livetest.PICObject(t, 19, "memory.ll", "-O2"), livetest.IR(t, 19, "memory.ll")
	memory = clitest.WithChangedMap(t, memory, func(b *stackmap.Blob) { // records %length for %n, in the second of two records
		l := b.Functions[0].Records[1].Locations
		l[1] = l[3]
	})
	guards, guardsModule := livetest.PICObject(t, 19, "guards.ll", "-O2"), livetest.IR(t, 19, "guards.ll")
	// Records %acc for %i; the locations before them are the head and the reason of the exit.
	guards = clitest.WithChangedMap(t, guards, func(b *stackmap.Blob) {
		for _, f := range b.Functions {
			for _, r := range f.Records {
				r.Locations[stackmap.StatepointHead+2] = r.Locations[stackmap.StatepointHead+3]
			}
		}
	})
	layout := livetest.Testdata(t, "programs", "guards.layout.json")
	for _, c := range []struct {
		object string
		flags  []string
		least  int
	}{
		{tick, []string{"--ir", tickModule, "--every", "111"}, 20},
		{memory, []string{"--ir", memoryModule}, 10},
		{guards, []string{"--ir", guardsModule, "--layout", layout}, 10},
		{guards, []string{"--ir", guardsModule, "--layout", layout, "--at", "__llvm_deoptimize"}, 10},
	} {
		host := livetest.ObjectHostCommand(t, c.object, livetest.ObjectHostOptions{Rounds: 40})
		r := clitest.Run(t, append(append([]string{"verify", "--limit", "60"}, c.flags...), append([]string{"--"}, host...)...)...)
		require.Equal(t, 3, r.Code, r.Stderr)
		all := strings.SplitAfter(r.Stderr, "\n\n")
		all = all[:len(all)-1] // the last line is the summary
		require.GreaterOrEqual(t, len(all), c.least, "%v", c.flags)
		for n := 0; n < len(all); n += len(all) / livetest.Times(2, 4) {
			found := clitest.RunSuggestion(t, all[n])
			require.Equal(t, 3, found.Code, found.Stderr)
			require.Equal(t, told(all[n]), told(found.Stderr))
		}
	}
}

// TestVerifyProcessAgain requires that with -p the command in a report verifies the running process.
func TestVerifyProcessAgain(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.WrongTick(t)
	var all []string
	args := []string{"--every", "35", "--limit", "1"}
	for range 2 {
		p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 2})
		c := clitest.Command(t, append([]string{"verify", "-p", clitest.PID(p), "--ir", module}, args...)...)
		out, err := c.StdoutPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		clitest.WaitTraced(t, p)
		begin()
		text, err := io.ReadAll(out)
		require.NoError(t, err)
		_ = c.Wait() // the test checks its status
		require.Equal(t, 3, c.ProcessState.ExitCode())
		want := fmt.Sprintf("  reproduce: reframe verify -p %d --ir %s --timeout 3m0s --record 1 --skip 34 --limit 1\n", p.PID, module)
		require.Contains(t, string(text), want)
		all = append(all, told(string(text)))
		args = []string{"--record", "1", "--skip", "34", "--limit", "1"}
		require.NoError(t, p.Wait())
	}
	require.Equal(t, all[0], all[1])
}

// TestVerifyMemory requires that a difference in memory is shown with the mapping, stack or block that contains it, and that a run which cannot
// continue is also a difference.
func TestVerifyMemory(t *testing.T) {
	t.Parallel()
	object, module := livetest.PICObject(t, 19, "memory.ll", "-O2"), livetest.IR(t, 19, "memory.ll")
	run := func(change func(l []stackmap.Location), flags ...string) string {
		object := clitest.WithChangedMap(t, object, func(b *stackmap.Blob) { change(b.Functions[0].Records[0].Locations) })
		host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
		r := clitest.Run(t, append(append([]string{"verify", "--ir", module, "--record", "31", "--limit", "1"}, flags...), append([]string{"--"}, host...)...)...)
		require.Equal(t, 3, r.Code, r.Stderr)
		return r.Stderr
	}
	// %n gets the value of %string, which is not zero. The function stores it to *%heap, allocated by calloc.
	nIsString := func(l []stackmap.Location) { l[1] = l[2] }
	require.Regexp(t, `  different memory, \d+ bytes at 0x[0-9a-f]+, anonymous memory\+0x[0-9a-f]+
        before       0000000000000000 .*
        interpreter  [0-9a-f]{12}0000 .*
        native code  0000000000000000 .*
        and \d+ bytes more
  writes by native code alone are ignored: no IR given for (libc\.so\.6\+0x[0-9a-f]+|__mem).*
`, run(nIsString))
	require.Contains(t, run(nIsString, "--json"), `,"near":"last","size":`)
	// This map makes %heap point to the stack of the caller.
	require.Regexp(t, `  different memory, \d+ bytes at 0x[0-9a-f]+, the stack of #1 entry\+0x[0-9a-f]+, \d+ below its CFA\n`, run(func(l []stackmap.Location) {
		const rbp = 6
		l[0] = stackmap.Location{Kind: stackmap.Direct, Size: 8, Reg: rbp, Offset: 16}
	}))
	// This map makes %heap the number 0.
	require.Regexp(t, `  different: native code returns, and the interpreter does not
        @rewrite, block %entry, line \d+: store: write of 8 bytes at 0x0: not mapped
  interpreter, the last of 2 instructions:
`, run(func(l []stackmap.Location) { l[0] = l[1] }))
}

// TestVerifyQuotes requires that suggested commands quote words for a shell.
func TestVerifyQuotes(t *testing.T) {
	t.Parallel()
	object, module := clitest.WrongTick(t)
	dir := t.TempDir()
	odd := filepath.Join(dir, "a 'b' \"$HOME\" `c`\n\t\\*\x01.o")
	clitest.CopyFile(t, object, odd)
	host := livetest.ObjectHostCommand(t, odd, livetest.ObjectHostOptions{})
	r := clitest.Run(t, append([]string{"verify", "--ir", module, "--limit", "1", "--"}, host...)...)
	require.Equal(t, 3, r.Code, r.Stderr)
	m := regexp.MustCompile(`(?m)^  reproduce: (.*)$`).FindStringSubmatch(r.Stderr)
	require.NotNil(t, m, r.Stderr)
	out, err := exec.Command(livetest.Tool(t, "bash"), "-c", "printf '%s\\0' "+m[1]).Output()
	require.NoError(t, err)
	words := strings.Split(strings.TrimSuffix(string(out), "\x00"), "\x00")
	require.Equal(t, append([]string{"reframe", "verify", "--ir", module, "--timeout", "3m0s", "--record", "1", "--limit", "1", "--"}, host...), words)
}
