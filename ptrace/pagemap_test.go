package ptrace

import (
	"bytes"
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestPagemapOfLargePages requires that each page of the kernel is listed as several pages of a core, wherever a read begins.
func TestPagemapOfLargePages(t *testing.T) {
	list, err := binary.Append(nil, binary.LittleEndian, []uint64{10, 11, 12, 13})
	require.NoError(t, err)
	for _, c := range []struct {
		page, first int64
		Want        []uint64
	}{
		{4 << 10, 1, []uint64{11, 12, 13}},
		{16 << 10, 0, []uint64{10, 10, 10, 10, 11, 11, 11, 11, 12}},
		{16 << 10, 3, []uint64{10, 11}},
		{16 << 10, 5, []uint64{11, 11}},
		{64 << 10, 47, []uint64{12, 13, 13}},
	} {
		b := make([]byte, 8*len(c.Want))
		n, err := (&pagemap{list: bytes.NewReader(list), page: c.page}).ReadAt(b, 8*c.first)
		require.NoError(t, err)
		require.Equal(t, len(b), n)
		got := make([]uint64, len(c.Want))
		_, err = binary.Decode(b, binary.LittleEndian, got)
		require.NoError(t, err)
		require.Equal(t, c.Want, got)
	}
	_, err = (&pagemap{list: bytes.NewReader(list), page: 16 << 10}).ReadAt(make([]byte, 16), 8*15)
	require.Error(t, err)
}
