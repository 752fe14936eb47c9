package protocol_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
)

// TestFork requires that a write to a fork of an overlay is only in that fork, and that earlier writes are in both. Only writable memory accepts the
// write.
func TestFork(t *testing.T) {
	t.Parallel()
	o := host().Memory
	made, err := o.Allocate(16, 8)
	require.NoError(t, err)
	for _, at := range []machine.Addr{0x2000, made} {
		require.NoError(t, o.Write([]byte{1, 2}, at))
	}
	f := o.Fork()
	more, err := f.Allocate(16, 8)
	require.NoError(t, err)
	for _, at := range []machine.Addr{0x2001, 0x2800, made + 1, more} {
		require.NoError(t, f.Write([]byte{9}, at))
	}
	has := func(o *protocol.Overlay, at machine.Addr) byte {
		var b [1]byte
		require.NoError(t, o.ReadMemory(b[:], at))
		return b[0]
	}
	for at, want := range map[machine.Addr][2]byte{0x2000: {1, 1}, 0x2001: {2, 9}, 0x2800: {0, 9}, made: {1, 1}, made + 1: {2, 9}} {
		require.Equal(t, want, [2]byte{has(o, at), has(f, at)}, "%v", at)
	}
	require.Equal(t, byte(9), has(f, more))
	require.Equal(t, uint64(16), o.Allocated())
	_, known := o.Block(more)
	require.False(t, known)
	require.Equal(t, []int{2, 6}, []int{o.Writes(), f.Writes()})
	var stored []byte
	for p := range o.Stored() {
		stored = append(stored, p.Bits[0])
	}
	require.Equal(t, []byte{3}, stored)
}
