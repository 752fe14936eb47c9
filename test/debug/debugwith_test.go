package debug_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
	"example.com/reframe/test/tinyvmtest"
)

// TestDebugStepsBytecodes requires that, at the exit of meter.tvm in hour 83, minute 1, each interpreter of tinyvm steps through the program's
// bytecodes forwards and backwards while the process stays stopped. Afterwards the process must print the same as without a debugger.
func TestDebugStepsBytecodes(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	vm, _, _ := clitest.TinyVM(t)
	meter := livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm")
	plain, err := exec.Command(vm, meter).Output()
	require.NoError(t, err)
	for name, command := range map[string]string{"tinyvm": vm + " --serve " + meter, "tinyvm.py": tinyvmtest.ServeInPython(t, meter)} {
		end := "Meter.hour returned i64 2147530759, says " + name + " after 1666 instructions\n"
		var commands, want []string
		for _, c := range [][2]string{
			{"step", "#0   vm      Meter.reading @ 5\n=>    5  const 41\n"},
			{"step 3", "#0   vm      Meter.reading @ 10\n=>   10  get 0\n"},
			{"list", "#0   vm      Meter.reading @ 10\n=>   10  get 0\n"},
			{"locals", "      vm Meter.reading @ 10, reexecute\n           local[0]         i32    83\n           local[1]         i32    1\n"},
			{"print local[0] - local[1]", "82\n"},
			{"up", "#1   vm      Meter.hour @ 11, in call\n=>   11  call Meter.reading\n"},
			{"print stack[0]", "i32 0\n"},
			{"down", "#0   vm      Meter.reading @ 10\n=>   10  get 0\n"},
			{"next 4", "#0   vm      Meter.reading @ 14\n=>   14  add\n"},
			{"x/s 0x100000000000", "0x100000000000:  \"Main.main\"\n"},
			{"finish", "#0   vm      Meter.hour @ 12\n=>   12  add\n"},
			{"print stack[0] + stack[1]", "831\n"},
			{"step 2", "#0   vm      Meter.hour @ 14\n=>   14  get 1\n"},
			{"next", "#0   vm      Meter.hour @ 15\n=>   15  const 60\n"},
			{"locals", "      vm Meter.hour @ 15, reexecute\n           local[0]         i32    83\n           local[1]         i32    1\n           local[2]         i32    831\n           stack[0]         i32    1\n           extra 2          i64    1\n"},
			{"back", "#0   vm      Meter.hour @ 14\n=>   14  get 1\n"},
			{"back 6", "#0   vm      Meter.reading @ 12\n=>   12  mul\n"},
			{"restart", "#0   vm      Meter.reading @ 4\n"},
			{"finish", "#0   vm      Meter.hour @ 12\n=>   12  add\n"},
			{"finish", end},
			{"output", ""},
			{"back 2", "#0   vm      Meter.hour @ 18\n=>   18  get 2\n"},
			{"step 5", end},
			// Minute 41 has the surge: 2147480000 instead of 831.
			{"set local[1] 41", "local[1] = i32 41\nthe interpreter starts again at the exit\n"},
			{"resume", "Meter.hour returned i64 4295009928, says " + name + " after 1662 instructions\n"},
		} {
			commands, want = append(commands, c[0]), append(want, c[1])
		}
		r := debug(t, "break deoptimize\ncontinue\n"+strings.Join(commands, "\n")+"\ndelete\ncontinue\n", "--with", command, "--", vm, meter)
		require.Zero(t, r.Code, r.Stderr)
		out := said(r.Stdout)[2:]
		require.Equal(t, want, out[:len(want)], name)
		require.Equal(t, string(plain)+"the process exited with status 0\n", out[len(out)-1], name)
	}
}

// TestDebugWithSaysWhy requires that, at a prompt with a VM's interpreter, the error for an impossible command gives the reason and an alternative.
func TestDebugWithSaysWhy(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	p := livetest.Lli(t, 19, "vmsimple.ll", "orc")
	plain, _ := clitest.AnsweringInterpreter(t, clitest.Returned42)
	cannot, _ := clitest.AnsweringInterpreter(t, `{"unsupported":"no bytecode 0xba at Foo.bar @ 17"}`)
	threw, _ := clitest.AnsweringInterpreter(t, `{"threw":{"text":"\u001b[2J"}}`)
	for _, c := range []struct {
		with, commands string
		code           int
		says           string
	}{
		{plain, "resume", 0, "\nFoo.main returned i64 42, says sh after 3 instructions\n"},
		{plain, "resume\nstep", 2, "the run has ended; use back or restart"},
		{plain, "resume\nrestart", 0, "\n#0   vm      Foo.bar @ 17\n"},
		{plain, "step", 2, "sh cannot stop before its end (doc/user/protocol.md, step): use resume"},
		{plain, "restart\nfinish", 2, "sh cannot stop before its end"},
		{plain, "restart\nprint $rsp", 2, "the interpreter has no registers"},
		{plain, "until loop", 2, "sh cannot stop before its end"},
		{plain, "back", 2, "the interpreter has not run since the exit"},
		{plain, "result 7\nresume", 2, "its innermost VM frame has no pending call"},
		{cannot, "resume\nlist", 0, "\nsh cannot continue: no bytecode 0xba at Foo.bar @ 17\n#0   vm      Foo.bar @ 17\n"},
		{threw, "resume", 0, "\nFoo.main ended with an exception: \uFFFD[2J, says sh after 0 instructions\n"},
		{"exec ./no-such-vm", "resume", 2, "its answer to initialize (id 1): it has ended (exit status 127): sh has not found it"},
		{" ", "resume", 64, "the command of --with is empty"},
	} {
		r := debug(t, c.commands, "-p", clitest.PID(p), "--ir", p.IR, "--layout", "simple", "--with", c.with)
		require.Equal(t, c.code, r.Code, "%s\n%s%s", c.commands, r.Stdout, r.Stderr)
		require.Contains(t, r.Stdout+r.Stderr, c.says, c.commands)
		require.True(t, p.Alive(), c.commands)
	}
}

// TestDebugWithKeepsScript requires that a script which was written at the prompt repeats the session, with its interpreter, from any directory.
func TestDebugWithKeepsScript(t *testing.T) {
	t.Parallel()
	vm, _, _ := clitest.TinyVM(t)
	dir := t.TempDir()
	core, script := filepath.Join(dir, "exit.core"), filepath.Join(dir, "exit.txtar")
	meter := livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm")
	r := debug(t, "break deoptimize\ncontinue\nrecord "+core+"\nset local[1] 41\nresume\nscript "+script, "--with", vm+" --serve ../../examples/tinyvm/meter.tvm", "--", vm, meter)
	require.Zero(t, r.Code, r.Stderr)
	text, err := os.ReadFile(script)
	require.NoError(t, err)
	require.Regexp(t, `(?m)^set local\[1\] 41\nresume --with 'cd "\$SCRIPTDIR/\.\./.*" && .* --serve ../../examples/tinyvm/meter.tvm'\nreturns 4295009928$`, string(text))
	r = clitest.Run(t, "replay", script)
	require.Zero(t, r.Code, r.Stdout+r.Stderr)
}

// TestDebugPositions requires that breakpoints, conditions and until accept positions in methods of the virtual machine. A condition that no exit can
// meet must be an immediate error.
func TestDebugPositions(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	vm, _, _ := clitest.TinyVM(t)
	meter := livetest.Testdata(t, "..", "examples", "tinyvm", "meter.tvm")
	commands := []string{"break Meter.reading @ 4", "continue", "until 10", "until Meter.hour @ 12", `until method == "Meter.hour" and position > 14`, `print position + 1`}
	r := debug(t, strings.Join(commands, "\n")+"\n", "--with", vm+" --serve "+meter, "--", vm, meter)
	require.Zero(t, r.Code, r.Stderr)
	for _, says := range []string{
		`(reframe) break Meter.reading @ 4` + "\n" + `breakpoint 1: any exit, method == "Meter.reading" and position == 4 (pending: no such place yet)`,
		"\n      vm Meter.reading @ 4, reexecute\n",
		"(reframe) until 10\n#0   vm      Meter.reading @ 10\n",
		"(reframe) until Meter.hour @ 12\n#0   vm      Meter.hour @ 12\n",
		`(reframe) until method == "Meter.hour" and position > 14` + "\n#0   vm      Meter.hour @ 15\n",
		"(reframe) print position + 1\n16\n",
	} {
		require.Contains(t, r.Stdout, says)
	}
	r = debug(t, "break Meter.reading @ 4\ncontinue\nuntil positoin == 10\n", "--with", vm+" --serve "+meter, "--", vm, meter)
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stdout+r.Stderr, "the run has ended, and the condition could not be evaluated at any place: ")
	r = debug(t, `break if resume == "reexecutes"`+"\n", "--", vm, meter)
	require.Equal(t, 2, r.Code)
	require.Contains(t, r.Stdout+r.Stderr, `resume is never "reexecutes": it is reexecute, after, in-call or rethrow`)
}
