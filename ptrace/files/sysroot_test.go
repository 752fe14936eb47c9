package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSysroot requires that links are resolved as on the other machine, and do not lead out of the directory.
func TestSysroot(t *testing.T) {
	outside, root := t.TempDir(), t.TempDir()
	require.NoError(t, os.WriteFile(filepath.Join(outside, "secret"), []byte("secret"), 0o600))
	require.NoError(t, os.MkdirAll(filepath.Join(root, "usr/lib"), 0o755))
	require.NoError(t, os.WriteFile(filepath.Join(root, "usr/lib/real"), []byte("real"), 0o600))
	require.NoError(t, os.WriteFile(filepath.Join(root, "top"), []byte("top"), 0o600))
	require.NoError(t, syscall.Mkfifo(filepath.Join(root, "pipe"), 0o600))
	up := strings.Repeat("../", 20)
	for name, to := range map[string]string{
		"lib": "usr/lib", "usr/lib/absolute": "/usr/lib/real", "usr/lib/relative": "../lib/real", "usr/lib/twice": "absolute",
		"usr/lib/above": up + "top", "usr/lib/out": up + strings.TrimPrefix(outside, "/") + "/secret", "usr/lib/away": outside + "/secret",
		"self": "self", "ping": "pong", "pong": "/ping", "whole": "/", "usr/lib/proc": "/proc/self/exe", "gone": "nothing",
	} {
		require.NoError(t, os.Symlink(to, filepath.Join(root, name)))
	}
	s, err := OpenSysroot(root)
	require.NoError(t, err)
	defer s.root.Close()
	for _, c := range []struct{ name, Want, fails string }{
		{"/usr/lib/real", "real", ""}, {"usr/lib/real", "real", ""}, {"/lib/real", "real", ""}, {"/usr/lib/absolute", "real", ""},
		{"/lib/relative", "real", ""}, {"/lib/twice", "real", ""}, {"/whole/whole/lib/twice", "real", ""}, {"//usr/./lib//real", "real", ""},
		// On the other machine, the parent of the root is the root.
		{"/usr/lib/above", "top", ""}, {"/../../top", "top", ""},
		{"/usr/lib/out", "", "no such file"}, {"/usr/lib/away", "", "no such file"}, {"/usr/lib/proc", "", "no such file"}, {"/gone", "", "no such file"},
		{"/self", "", "too many symbolic links"}, {"/ping", "", "too many symbolic links"},
		{"/pipe", "", "not a regular file"}, {"/usr", "", "not a regular file"}, {"/", "", "not a regular file"}, {"/top/inner", "", "not a directory"},
	} {
		f, err := s.Open(c.name)
		if c.fails != "" {
			require.ErrorContains(t, err, c.fails, c.name)
			continue
		}
		require.NoError(t, err, c.name)
		b, err := io.ReadAll(f)
		require.NoError(t, err)
		require.NoError(t, f.Close())
		require.Equal(t, c.Want, string(b), c.name)
	}
	// A very long name in a hostile core must not make Open slow.
	_, err = s.Open("/" + strings.Repeat("whole/", 100000) + "x")
	require.Error(t, err)
}
