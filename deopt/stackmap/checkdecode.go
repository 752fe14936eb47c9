package stackmap

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// boundaries describes how to find the instruction boundaries of an architecture.
type boundaries struct {
	align int                // of every instruction, in bytes
	fixed bool               // all of them have that length
	size  func(b []byte) int // of the one that b starts with; 0 if unknown; nil if none is read
}

// boundariesOf returns them; nil for an architecture whose instructions are not known here.
func boundariesOf(arch *machine.Arch) *boundaries {
	b := &boundaries{align: arch.Align, fixed: arch.Fixed}
	if set := isa.Of(arch); set != nil {
		b.size = set.Length
	}
	if arch.Align == 0 || !b.fixed && b.size == nil {
		return nil
	}
	return b
}
