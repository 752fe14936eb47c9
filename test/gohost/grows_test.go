package gohost

import (
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestGrowingStack has a core of a thread in runtime.newstack, which runs on another stack than its goroutine. Nothing beyond runtime.morestack may be
// shown as its caller.
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
