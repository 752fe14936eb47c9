package gohost

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestGrowingStack requires that no caller of runtime.morestack is shown for a thread in runtime.newstack, in a core. Such a thread runs on another
// stack than its goroutine.
func TestGrowingStack(t *testing.T) {
	t.Parallel()
	program, core := livetest.GoBinary(t, "testdata/grows"), filepath.Join(t.TempDir(), "core")
	c := exec.Command(livetest.Tool(t, "gdb"), "-nx", "-batch", "-ex", "handle SIGURG nostop noprint pass", "-ex", "break runtime.newstack",
		"-ex", "run", "-ex", "generate-core-file "+core, "-ex", "kill", program)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	r := clitest.Run(t, "frames", core, "--exe", program)
	require.Equal(t, 1, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^  #0   native  runtime\.newstack.*\n  #1   native  runtime\.morestack.*\n  cut short: frame #1: it has switched stacks: the stack of its goroutine is growing`, r.Stdout)
}

// TestPreemptedInNewstack requires a complete stack, in a core, for a thread that has preempted its goroutine in runtime.newstack and runs the
// scheduler. The thread's own stack ends in its first function; the goroutine's frames belong to the goroutine.
func TestPreemptedInNewstack(t *testing.T) {
	t.Parallel()
	program, core := livetest.GoBinary(t, "testdata/preempted"), filepath.Join(t.TempDir(), "core")
	c := exec.Command(livetest.Tool(t, "gdb"), "-nx", "-batch", "-ex", "handle SIGURG nostop noprint pass", "-ex", "set environment GODEBUG asyncpreemptoff=1",
		"-ex", `break runtime.goschedImpl if $_any_caller_is("runtime.newstack", 3)`, "-ex", "run", "-ex", "delete",
		"-ex", `python gdb.execute("tbreak runtime.schedule thread %d" % gdb.selected_thread().num)`, "-ex", "continue", "-ex", "generate-core-file "+core, "-ex", "kill", program)
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
	r := clitest.Run(t, "frames", core, "--exe", program)
	require.Zero(t, r.Code, "%s%s", r.Stdout, r.Stderr)
	require.Regexp(t, `(?s)  #0   native  runtime\.schedule.{1,500}  #\d+ +native  runtime\.newstack.{1,300}  #\d+ +native  runtime\.morestack.{1,300}  #\d+ +native  runtime\.mstart`, r.Stdout)
}
