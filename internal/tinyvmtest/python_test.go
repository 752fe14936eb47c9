package tinyvmtest

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// python is the interpreter in Python, and whatever its first line needs is there.
func python(t testing.TB) string {
	t.Helper()
	livetest.Tool(t, "python3")
	return livetest.Testdata(t, "..", "examples", "tinyvm", "tinyvm.py")
}

// The interpreter in Python does what the plain one in C++ does.
func TestPython(t *testing.T) {
	livetest.Slow(t)
	script, binary := python(t), Binary(t, 19)
	files := []string{livetest.Testdata(t, "..", "examples", "tinyvm", "points.tvm")}
	for seed := range uint64(40) {
		files = append(files, File(t, seed))
	}
	stopped := 0
	for _, file := range files {
		want, got := Run(t, binary, "--interpret", file), Run(t, script, file)
		require.Equal(t, want.Output, got.Output, "%s: %s", filepath.Base(file), got.Errors)
		require.Equal(t, want.Status, got.Status, filepath.Base(file))
		if got.Status != 0 {
			stopped++
		}
	}
	require.Positive(t, stopped)
	require.Less(t, stopped, len(files)/2)
}
