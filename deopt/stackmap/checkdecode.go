package stackmap

import (
	"reframe/deopt/isa"
	"reframe/deopt/machine"
	"reframe/deopt/x86"
)

// instructions says how the instructions of an architecture are told apart.
type instructions struct {
	align int                // of every instruction, in bytes
	fixed bool               // all of them have that length
	size  func(b []byte) int // of the one that b starts with; 0 where it is not known
}

// instructionsOf returns them; nil for an architecture whose instructions are not known here.
func instructionsOf(arch *machine.Arch) *instructions {
	switch arch {
	case machine.AMD64:
		return &instructions{align: 1, size: x86.Length}
	case machine.ARM64, machine.ARM64BE, machine.LOONG64:
		return &instructions{align: 4, fixed: true}
	}
	if set := isa.Of(arch); set != nil {
		return &instructions{align: set.Align, size: set.Length}
	}
	return nil
}
