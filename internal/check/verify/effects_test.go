package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestEffectsAreKept requires that the effects of calls are added to the memory and kept for a repeated run, unless they are too large. If they are,
// the run cannot be repeated.
func TestEffectsAreKept(t *testing.T) {
	const addr = 0x10000
	image := func(first byte) *memoryImage {
		data := make([]byte, imageBlock)
		data[0] = first
		return &memoryImage{blocks: []memoryBlock{{addr: addr, size: imageBlock, data: data}}}
	}
	first, after := image(1), image(2)
	var e effects
	e.start(first)
	e.add(callEffects{memory: []changed{{addr: addr, data: []byte{2, 0, 0, 0, 0, 0, 0, 0}}}, after: after})
	require.Len(t, e.calls, 1)
	for want, img := range map[byte]*memoryImage{1: e.first, 2: e.now} {
		var b [1]byte
		require.Equal(t, 1, img.read(b[:], addr))
		require.Equal(t, want, b[0])
	}
	e.add(callEffects{memory: []changed{{addr: machine.Addr(addr + imageBlock), data: make([]byte, maxEffects)}}, after: &memoryImage{}})
	require.True(t, e.tooLarge())
	require.Empty(t, e.calls)
}
