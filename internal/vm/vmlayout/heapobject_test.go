package vmlayout

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

const describesObjects = `
def object(addr):
    if addr == 0x40:
        return heap_object(addr, 64, "listed", [8, 16, 24, 40, 56])
    low = read(address_of("low"))
    if addr < low:
        return None
    return heap_object(low, 1 << 20, 7, range(8, 1 << 20, 16), state = "freed", width = 4)

def class_name(c): return "class %d" % c
`

// TestObject requires that a layout without frames(site) describes the same objects, and no frames, in this process and in a process of its own.
func TestObject(t *testing.T) {
	here, err := Parse("a.star", []byte(describesObjects))
	require.NoError(t, err)
	target := &Target{Memory: zeros{}, Order: binary.LittleEndian, Symbol: func(name string) (machine.Addr, bool) { return 0x1000, name == "low" }}
	low := &footprint{memory: zeros{}}
	for _, l := range []*Layout{here, elsewhere(t, describesObjects)} {
		require.Same(t, l, DescribesObjects([]*Layout{l}))
		require.False(t, l.MakesFrames())
		from := ObjectSource(target, low)
		o, err := l.Object(from, 0x40)
		require.NoError(t, err)
		require.Equal(t, &HeapObject{Start: 0x40, Size: 64, Class: Class{Name: "listed"}, Refs: []RefRun{{8, 8, 3}, {40, 16, 2}}, Width: 8, State: LiveObject}, o)
		o, err = l.Object(from, 0x80)
		require.NoError(t, err)
		require.Equal(t, &HeapObject{Start: 0, Size: 1 << 20, Class: Class{Bits: 7}, Refs: []RefRun{{8, 16, 1 << 16}}, Width: 4, State: FreedObject}, o)
		require.Equal(t, "class 7", l.ClassName(from, o.Class))
		require.NotEmpty(t, low.parts)

		shape, err := l.Frames(&Site{Function: "f"})
		require.NoError(t, err)
		require.Nil(t, shape)
		require.Nil(t, Uncounted([]*Layout{l}, 3).Read(&Source{}))
	}
}
