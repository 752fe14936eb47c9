package stackmap

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// boundaries describes the lengths and the alignment of an architecture's instructions.
type boundaries struct {
	align int                // alignment of every instruction, in bytes
	fixed bool               // all instructions are align bytes long
	size  func(b []byte) int // length of the instruction that b starts with, 0 if unknown; nil without a decoder
}

// boundariesOf returns the boundaries of an architecture, or nil if the lengths of its instructions are unknown.
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
