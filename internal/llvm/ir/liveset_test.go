package ir

import (
	"fmt"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
)

// What is written to a folder is read once, what is overwritten again, and what cannot be read is read again until it can.
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
	read(0) // there is nothing yet
	one := put(t, dir, "one.ll", fmt.Sprintf(plain, 1))
	read(0, "one.ll")
	read(0)
	put(t, dir, "two.ll", "define i32 @g() {\n  ret i3") // it is being written
	read(0)
	read(1) // it is the same as before
	read(0)
	put(t, dir, "two.ll", "define i32 @g() {\n  ret i32 2\n}\n")
	read(0, "two.ll")
	// The same size at the same time, as within a tick of the kernel's.
	info, err := os.Stat(one)
	require.NoError(t, err)
	put(t, dir, "one.ll", fmt.Sprintf(plain, 3))
	require.NoError(t, os.Chtimes(one, time.Time{}, info.ModTime()))
	read(0, "one.ll")
	read(0)
	require.NoError(t, os.Remove(one))
	read(0)
}
