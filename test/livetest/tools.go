package livetest

import (
	"os"
	"os/exec"
	"testing"

	"github.com/stretchr/testify/require"
)

// withTools is the variable that the Makefile sets for tests that need more than Go.
const withTools = "REFRAME_TOOLS"

// NeedsTools skips a test that needs more than Go, such as a compiler, a debugger, ptrace or root, in a plain go test ./.... In make test, which sets
// REFRAME_TOOLS, such a test runs, and fails if a tool is missing. With FIDELITY=all, and in a go test -run, it runs too.
//
// All functions of this package that run a tool or start a process call it.
func NeedsTools(t testing.TB) {
	t.Helper()
	if os.Getenv(withTools) == "" && !named() && !Whole() {
		t.Skip("needs more than Go: make test runs it")
	}
}

// Tool returns the path of a program that the tests need, such as gdb or eu-stack.
func Tool(t testing.TB, name string) string {
	t.Helper()
	NeedsTools(t)
	path, err := exec.LookPath(name)
	require.NoError(t, err, "run scripts/setup.sh test")
	return path
}
