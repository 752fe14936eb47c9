package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// TestLive requires that a new file is read once, a changed file again, and an unreadable file until it can be read.
func TestLive(t *testing.T) {
	dir := t.TempDir()
	l := NewLiveSet([]string{dir, filepath.Join(dir, "named.ll")})
	read := func(notes int, want ...string) {
		t.Helper()
		list, said := l.Read()
		require.Len(t, said, notes, said)
		var got []string
		for _, v := range list {
			require.True(t, v.Module.Found)
			got = append(got, filepath.Base(v.Path))
		}
		require.Equal(t, want, got)
	}
	read(0) // no file yet
	one := put(t, dir, "one.ll", fmt.Sprintf(plain, 1))
	read(0, "one.ll")
	read(0)
	put(t, dir, "two.ll", "define i32 @g() {\n  ret i3") // an incomplete file
	read(0)
	read(1) // two.ll is unchanged: its error is reported now
	read(0)
	put(t, dir, "two.ll", "define i32 @g() {\n  ret i32 2\n}\n")
	read(0, "two.ll")
	// Write the same size at the same time, as within a tick of the kernel.
	info, err := os.Stat(one)
	require.NoError(t, err)
	put(t, dir, "one.ll", fmt.Sprintf(plain, 3))
	require.NoError(t, os.Chtimes(one, time.Time{}, info.ModTime()))
	read(0, "one.ll")
	read(0)
	require.NoError(t, os.Remove(one))
	read(0)
}
