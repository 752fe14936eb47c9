package files

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestBoundedReads requires that a bounded file has the same bytes and the same end as the file, when it is read in parts of any size.
func TestBoundedReads(t *testing.T) {
	content := strings.Repeat("0123456789abcde", boundedRead/10)
	path := filepath.Join(t.TempDir(), "file")
	require.NoError(t, os.WriteFile(path, []byte(content), 0o600))
	f, err := os.Open(path)
	require.NoError(t, err)
	b := &bounded{file: f}
	for _, size := range []int{0, 1, boundedRead - 1, boundedRead, boundedRead + 1, len(content)} {
		got := make([]byte, size)
		n, err := b.ReadAt(got, 0)
		require.NoError(t, err)
		require.True(t, string(got[:n]) == content[:size], size)
	}
	got := make([]byte, len(content))
	n, err := b.ReadAt(got, 7)
	require.Equal(t, io.EOF, err)
	require.True(t, string(got[:n]) == content[7:])
	CloseWithin(f)
	_, err = b.ReadAt(got, 0)
	require.ErrorIs(t, err, os.ErrClosed)
}

// TestLateCalls requires that a call which does not return is abandoned, and that its result is passed on if it returns later.
func TestLateCalls(t *testing.T) {
	release, done := make(chan struct{}), make(chan string, 1)
	_, err := within(closePatience, func() (string, error) {
		<-release
		return "late", nil
	}, func(s string, _ error) { done <- s })
	require.ErrorIs(t, err, ErrLate)
	close(release)
	require.Equal(t, "late", <-done)
}
