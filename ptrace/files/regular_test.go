package files

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

func TestOpenRegular(t *testing.T) {
	dir := t.TempDir()
	file, pipe, link := filepath.Join(dir, "file"), filepath.Join(dir, "pipe"), filepath.Join(dir, "link")
	require.NoError(t, os.WriteFile(file, []byte("text"), 0o600))
	require.NoError(t, unix.Mkfifo(pipe, 0o600))
	require.NoError(t, os.Symlink(pipe, link))
	inode := func(path string) uint64 {
		var st unix.Stat_t
		require.NoError(t, unix.Stat(path, &st))
		return st.Ino
	}
	f, err := OpenRegular(file, inode(file))
	require.NoError(t, err)
	b := make([]byte, 4)
	_, err = f.Read(b)
	require.NoError(t, err)
	require.Equal(t, "text", string(b))
	f.Close()
	for _, c := range []struct {
		path  string
		inode uint64
	}{{file, inode(file) + 1}, {pipe, inode(pipe)}, {link, inode(pipe)}, {"/dev/null", inode("/dev/null")}, {dir, inode(dir)}, {filepath.Join(dir, "none"), 1}} {
		_, err := OpenRegular(c.path, c.inode)
		require.Error(t, err, c.path)
	}
}
