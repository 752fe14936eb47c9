package tinyvmtest

import (
	"os/exec"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// python returns the path of the Python executable. The python in PATH may be a pyenv script, whose lookup takes longer than the tests.
var python = sync.OnceValues(func() (string, error) {
	out, err := exec.Command("python3", "-c", "import sys; print(sys.executable)").Output()
	return strings.TrimSpace(string(out)), err
})

// Python returns the path of the Python executable.
func Python(t testing.TB) string {
	t.Helper()
	livetest.Tool(t, "python3")
	program, err := python()
	require.NoError(t, err)
	return program
}

// ServeInPython returns the command line of the interpreter in Python that resumes frames of a program.
func ServeInPython(t testing.TB, program string) string {
	t.Helper()
	return strings.Join(InPython(t, "--serve", program), " ")
}

// InPython returns the command of the interpreter in Python.
func InPython(t testing.TB, args ...string) []string {
	t.Helper()
	return append([]string{Python(t), livetest.Testdata(t, "..", "examples", "tinyvm", "tinyvm.py")}, args...)
}
