package livetest

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestAnswer requires that Answer runs a tool again if a file has changed, and that it caches a failure with its output. If a file is only a part of
// an argument, nothing is cached.
func TestAnswer(t *testing.T) {
	t.Setenv("XDG_CACHE_HOME", t.TempDir())
	path := filepath.Join(t.TempDir(), "file")
	for _, text := range []string{"one\n", "two\n", "one\n"} {
		require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		for range 2 {
			require.Equal(t, text, Printed(t, "cat", path))
			stdout, stderr, ok := Answer(t, "sh", "-c", `cat "$1"; echo no >&2; exit 1`, "sh", path)
			require.Equal(t, []any{text, "no\n", false}, []any{stdout, stderr, ok})
		}
	}
	kept, err := filepath.Glob(filepath.Join(CacheRoot(), "*", "answer"))
	require.NoError(t, err)
	require.Len(t, kept, 4)
	require.Equal(t, "one\n", Printed(t, "sh", "-c", "cat "+path))
	again, err := filepath.Glob(filepath.Join(CacheRoot(), "*", "answer"))
	require.NoError(t, err)
	require.Equal(t, kept, again)
}
