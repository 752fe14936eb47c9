package stackmap

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// boundaries describes how to find the instruction boundaries of an architecture.
type boundaries struct {
	align int                // alignment of every instruction, in bytes
	fixed bool               // all instructions are align bytes long
	size  func(b []byte) int // length of the instruction that b starts with, 0 if unknown; nil without a decoder
}

// boundariesOf returns the instruction boundaries of an architecture, or nil if its instructions are not supported.
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
