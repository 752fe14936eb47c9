package stackmap

import (
	"encoding/binary"

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
	case machine.PPC64, machine.PPC64LE:
		return &instructions{align: 4, size: func(b []byte) int { return ppcLength(b, arch.Order) }}
	case machine.RISCV64:
		return &instructions{align: 2, size: riscvLength}
	case machine.S390X:
		return &instructions{align: 2, size: s390Length}
	}
	return nil
}

// ppcLength: an instruction whose primary opcode is 1 is the prefix of another (Power ISA
// 3.1, book I, section 1.6).
func ppcLength(b []byte, order binary.ByteOrder) int {
	switch {
	case len(b) < 4:
		return 0
	case order.Uint32(b)>>26 == 1:
		return 8
	}
	return 4
}

// riscvLength: the low bits of the first half-word tell the length (RISC-V Unprivileged
// ISA, section "Expanded Instruction-Length Encoding"). Those above 32 bits are not
// ratified, and so not known.
func riscvLength(b []byte) int {
	switch {
	case len(b) < 2, b[0]&0x1f == 0x1f, b[0] == 0 && b[1] == 0: // zeros are no instruction
		return 0
	case b[0]&3 == 3:
		return 4
	}
	return 2
}

// s390Length: the two high bits tell the length ("z/Architecture Principles of
// Operation", "Instruction Formats").
func s390Length(b []byte) int {
	if len(b) < 2 {
		return 0
	}
	return [...]int{2, 4, 4, 6}[b[0]>>6]
}
