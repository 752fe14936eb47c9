package frametest

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine/object"
)

// Remapped returns the path of a copy of an unlinked object with a changed stack map. The change must keep the size of the map.
func Remapped(t *testing.T, path string, change func(*stackmap.Blob)) string {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	img, err := object.New(path, bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	section, err := img.StackMaps()[0].Data()
	require.NoError(t, err)
	parsed, err := stackmap.Parse(section, stackmap.Options{Order: binary.LittleEndian})
	require.NoError(t, err)
	require.Len(t, parsed.Maps, 1)
	at := bytes.Index(data, section)
	require.Positive(t, at)
	blob := parsed.Maps[0].Blob()
	change(blob)
	changed, err := stackmap.AppendBlob(nil, binary.LittleEndian, blob)
	require.NoError(t, err)
	require.Len(t, changed, len(section))
	copy(data[at:], changed)
	out := filepath.Join(t.TempDir(), filepath.Base(path))
	require.NoError(t, os.WriteFile(out, data, 0o600))
	return out
}
