package verify

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestLazyBinding requires that lazyBinding finds a slot of the procedure linkage table only if the code address in it became that of the entered
// function.
func TestLazyBinding(t *testing.T) {
	const data, code, entry = 0x10000, 0x40000, 0x7000_1230
	image := func(words ...uint64) *memoryImage {
		b := make([]byte, imageBlock)
		for n, w := range words {
			binary.LittleEndian.PutUint64(b[8*n:], w)
		}
		return &memoryImage{blocks: []memoryBlock{{addr: data, size: len(b), data: b}}}
	}
	maps := []machine.Mapping{
		{Start: data, End: data + imageBlock, Read: true, Write: true, Path: "/usr/bin/program"},
		{Start: code, End: code + 0x1000, Read: true, Exec: true, Path: "/usr/bin/program"},
		{Start: 0x90000, End: 0x92000, Read: true, Write: true, Path: "/lib64/ld-linux-x86-64.so.2"},
	}
	before := image(1, code+0x36, code+0x46, code+0x56, entry)
	now := image(entry, code+0x36, entry, code+0x66, entry)
	require.Equal(t, []machine.Range{{Start: data + 16, End: data + 24}, {Start: 0x90000, End: 0x92000}}, lazyBinding(before, now, entry, maps))
	require.Empty(t, lazyBinding(before, before, entry, maps))
	require.Empty(t, lazyBinding(before, now, entry+1, maps))
}
