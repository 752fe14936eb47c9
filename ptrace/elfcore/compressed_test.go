package elfcore

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestHoles requires that writing more than the limit fails, and that zeros take no space.
func TestHoles(t *testing.T) {
	f, err := os.Create(filepath.Join(t.TempDir(), "holes"))
	require.NoError(t, err)
	t.Cleanup(func() { f.Close() })
	h := &holes{file: f, room: 3 * Page}
	for _, part := range [][]byte{make([]byte, Page+10), []byte("x"), make([]byte, Page)} {
		_, err := h.Write(part)
		require.NoError(t, err)
	}
	_, err = h.Write(make([]byte, Page))
	require.EqualError(t, err, "the decompressed core is too large")
	got, err := os.ReadFile(f.Name())
	require.NoError(t, err)
	require.Equal(t, append(make([]byte, Page+10), 'x'), got, "zeros at the end are not written")
	require.EqualValues(t, 2*Page+11, h.at)
}
