package trace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestReached requires that the last breakpoint of the same activation determines the way in which a thread has reached a place.
func TestReached(t *testing.T) {
	point := &Tracepoint{Addr: 0x30, call: 0x20, jumps: []machine.Addr{0x10, 0x40}, computed: []machine.Addr{0x50}}
	l := &loaded{places: map[machine.Addr]*place{}, changed: map[machine.Addr]bool{}}
	l.add(&listing{points: []*Tracepoint{point}})
	require.Len(t, l.places, 5)
	type hit struct{ at, sp uint64 }
	const outer, inner = 0x9000, 0x8000
	for _, c := range []struct {
		name string
		hits []hit
		want reach
	}{
		{"the call returns", []hit{{0x20, outer}}, byCall},
		{"a jump", []hit{{0x10, outer}}, byJump},
		{"a branch that is not taken, and the call", []hit{{0x10, outer}, {0x20, outer}}, byCall},
		{"an exception leaves the call, and its handler jumps", []hit{{0x20, outer}, {0x40, outer}}, byJump},
		{"a jump through a table after an exception", []hit{{0x20, outer}, {0x50, outer}}, unknownReach},
		{"the call is recursive, and its callee jumps", []hit{{0x20, outer}, {0x10, inner}, {0x30, inner}}, byCall},
		{"only the callee has called", []hit{{0x20, inner}, {0x30, inner}}, unknownReach},
		{"the call has returned before", []hit{{0x20, outer}, {0x30, outer}}, unknownReach},
		{"nothing was seen", nil, unknownReach},
	} {
		r := reached{}
		at := func(h hit) reach {
			regs := machine.NewRegisters(machine.AMD64, "not set")
			regs.SetUint(machine.AMD64.SP, h.sp)
			return r.at(l.places[machine.Addr(h.at)], regs)[point]
		}
		for _, h := range c.hits {
			at(h)
		}
		require.Equal(t, c.want, at(hit{0x30, outer}), c.name)
	}
	l.drop(&listing{points: []*Tracepoint{point}})
	for addr, p := range l.places {
		require.Empty(t, p.points, addr)
		require.Empty(t, p.marks, addr)
	}
}
