package house

import (
	"os"
	"os/exec"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestModuleIsTidy requires that go.mod and go.sum are as `go mod tidy` leaves them.
func TestModuleIsTidy(t *testing.T) {
	inRoot(t)
	c := exec.Command(livetest.Tool(t, "go"), "mod", "tidy", "-diff")
	c.Env = append(os.Environ(), "GOFLAGS=-mod=mod")
	out, err := c.CombinedOutput()
	require.NoError(t, err, "%s", out)
}

// TestRenameModule requires that the module can be renamed: in a renamed copy of the files that git tracks, all imports must resolve, and gofmt must
// not change any file.
func TestRenameModule(t *testing.T) {
	livetest.Slow(t)
	inRoot(t)
	dir := t.TempDir()
	run := func(name string, args ...string) string {
		t.Helper()
		c := exec.Command(name, args...)
		c.Dir = dir
		out, err := c.CombinedOutput()
		require.NoError(t, err, "%s", out)
		return string(out)
	}
	copied := exec.Command("sh", "-c", `git ls-files -co --exclude-standard -z | tar --null --files-from=- --ignore-failed-read -c | tar -x -C "$1"`, "sh", dir)
	out, err := copied.CombinedOutput()
	require.NoError(t, err, "%s", out)

	require.Equal(t, strings.TrimSuffix(Module, "/")+" is now git.example.net/vm/reframe\n", run("scripts/rename-module.sh", "git.example.net/vm/reframe"))
	run(livetest.Tool(t, "go"), "list", "-deps", "-test", "./...") // resolves all imports
	require.Empty(t, run("gofmt", "-l", "cmd", "deopt", "internal", "test"))
	left := exec.Command("grep", "-rIlF", strings.TrimSuffix(Module, "/"), ".")
	left.Dir = dir
	out, _ = left.CombinedOutput() // grep exits with status 1 if it finds nothing
	require.Empty(t, string(out))

	refused := exec.Command("scripts/rename-module.sh", "reframe")
	refused.Dir = dir
	out, err = refused.CombinedOutput()
	require.Error(t, err)
	require.Contains(t, string(out), "its first element needs a dot")
}
