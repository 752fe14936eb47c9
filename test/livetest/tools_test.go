package livetest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestToolsAreRequired requires that a test without its tool is skipped in a plain go test ./..., and fails in make test and if go test -run names it.
func TestToolsAreRequired(t *testing.T) {
	const inner = "LIVETEST_TOOLS"
	if os.Getenv(inner) != "" {
		Tool(t, "no-such-tool")
		return
	}
	program, err := os.Executable()
	require.NoError(t, err)
	for _, c := range []struct{ tools, choice, want string }{
		{"", "-test.skip=^Test([^T]|T[^o]|To[^o])", "SKIP"}, // skips all tests except this one
		{"1", "-test.skip=^Test([^T]|T[^o]|To[^o])", "FAIL"},
		{"", "-test.run=^TestToolsAreRequired$", "FAIL"},
	} {
		cmd := exec.Command(program, c.choice, "-test.v")
		cmd.Env = append(os.Environ(), inner+"=1", withTools+"="+c.tools, "FIDELITY=1")
		out, _ := cmd.CombinedOutput() // an error is expected in two cases
		require.Contains(t, string(out), "--- "+c.want+": TestToolsAreRequired", "%s %q", c.choice, c.tools)
	}
}
