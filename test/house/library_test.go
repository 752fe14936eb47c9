//go:build linux && amd64

package house

import (
	"go/format"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/demo"
	"example.com/reframe/test/livetest"
)

// TestLibrary requires that the program of doc/user/library.md is complete, and that for the demo's process it prints the text that follows in the
// document.
func TestLibrary(t *testing.T) {
	livetest.NeedsTools(t)
	inRoot(t)
	text, err := os.ReadFile("doc/user/library.md")
	require.NoError(t, err)
	_, rest, found := strings.Cut(string(text), "\n```go\n")
	require.True(t, found)
	source, rest, found := strings.Cut(rest, "```\n")
	require.True(t, found)
	_, rest, found = strings.Cut(rest, "\n```\n")
	require.True(t, found)
	want, _, found := strings.Cut(rest, "```\n")
	require.True(t, found)

	dir := t.TempDir()
	file, program, module := filepath.Join(dir, "main.go"), filepath.Join(dir, "frames"), filepath.Join(dir, "target.ll")
	formatted, err := format.Source([]byte(source))
	require.NoError(t, err)
	require.Equal(t, string(formatted), source, "gofmt")
	require.NoError(t, os.WriteFile(file, []byte(source), 0o644))
	require.NoError(t, os.WriteFile(module, demo.IR, 0o644))
	out, err := exec.Command(livetest.Tool(t, "go"), "build", "-o", program, file).CombinedOutput()
	require.NoError(t, err, "%s", out)

	process, err := demo.Start()
	require.NoError(t, err)
	t.Cleanup(process.Kill)
	out, err = exec.Command(program, strconv.Itoa(process.PID), module).CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Equal(t, want, string(out))
}
