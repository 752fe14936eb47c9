package livetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// NodeModules returns the directory of the packages from the npm registry that scripts/clients.sh has fetched.
func NodeModules(t testing.TB) string {
	t.Helper()
	NeedsTools(t)
	lock, err := os.ReadFile(filepath.Join(moduleRoot(t), "scripts", "clients", "package-lock.json"))
	require.NoError(t, err)
	dir := filepath.Join(CacheRoot(), "clients")
	fetched, err := os.ReadFile(filepath.Join(dir, "package-lock.json"))
	require.NoError(t, err, "run scripts/clients.sh")
	require.Equal(t, string(lock), string(fetched), "other releases were fetched: run scripts/clients.sh")
	return filepath.Join(dir, "node_modules")
}
