package verify

import (
	"bytes"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestChangesAreWords requires that changes are reported in whole words, including unchanged bytes next to changed ones.
func TestChangesAreWords(t *testing.T) {
	was, now := make([]byte, 36), make([]byte, 36)
	now[9], now[18], now[35] = 1, 2, 3
	list := appendDifferent(nil, 0x1000, was, now)
	require.Equal(t, []changed{{addr: 0x1008, data: now[8:24]}, {addr: 0x1020, data: now[32:36]}}, list)
	require.Empty(t, appendDifferent(nil, 0x1000, now, now))
}

// TestImageOfMappingsThatJoin requires that a mapping that has grown up to another mapping does not change the blocks of that one. In seed 16 of
// remap.c a mapping grew up to that of the dynamic linker.
func TestImageOfMappingsThatJoin(t *testing.T) {
	const start = 0x10000
	memory := flatPages{start: bytes.Repeat([]byte{1}, 4096), start + 0x2000: bytes.Repeat([]byte{3}, 4096)}
	apart := []machine.Mapping{{Start: start, End: start + 0x1000, Read: true, Write: true}, {Start: start + 0x2000, End: start + 0x3000, Read: true, Write: true}}
	before, err := copyImage(memory, apart, 0, nil)
	require.NoError(t, err)
	memory = memory.with(nil)
	memory[start+0x1000], memory[start+0x3000] = bytes.Repeat([]byte{2}, 4096), bytes.Repeat([]byte{4}, 4096)
	after, err := copyImage(memory, []machine.Mapping{{Start: start, End: start + 0x4000, Read: true, Write: true}}, 0, before)
	require.NoError(t, err)
	with := before.with(changes(before, after, memory), after)
	for n := range machine.Addr(4) {
		var b [16]byte
		require.Equal(t, len(b), with.read(b[:], start+n*0x1000+8))
		require.Equal(t, bytes.Repeat([]byte{byte(n + 1)}, 16), b[:])
	}
	for i := range with.blocks[1:] {
		require.LessOrEqual(t, with.blocks[i].addr+machine.Addr(with.blocks[i].size), with.blocks[i+1].addr)
	}
}
