package tinyvmtest

import (
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// python is the program itself: what PATH has may be a script of pyenv's that looks for it, and takes longer than all that tests run in it.
var python = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
})

// Python is the path of the program that runs scripts.
func Python(t testing.TB) string {
	t.Helper()
	livetest.Tool(t, "python3")
	program, err := python()
	require.NoError(t, err)
	return program
}

// ServeInPython is the command line by which the interpreter in Python goes on in frames of a program.
func ServeInPython(t testing.TB, program string) string {
	t.Helper()
	return strings.Join(InPython(t, "--serve", program), " ")
}

// InPython is the command of the interpreter in Python.
func InPython(t testing.TB, args ...string) []string {
	t.Helper()
	return append([]string{Python(t), livetest.Testdata(t, "..", "examples", "tinyvm", "tinyvm.py")}, args...)
}
