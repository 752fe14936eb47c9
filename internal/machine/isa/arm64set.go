package isa

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

var arm64Set = &Set{
	Longest: arm64.Size, DirectCall: arm64.Size, PatchpointSize: arm64Patchpoint,
	Length: arm64.Length, IsCall: arm64.IsCall, Jump: arm64.Jump, CallFrom: arm64.CallFrom, PatchpointCall: arm64PatchpointCall,
	CallTarget: arm64CallTarget, Text: arm64.Text, Step: arm64Step,
}

// arm64Patchpoint is the length of a patchpoint's call: movz and two movk of x16, and blr x16 (AArch64AsmPrinter::LowerPATCHPOINT).
const arm64Patchpoint = 4 * arm64.Size

// arm64CallTarget returns the target of a bl that ends at pc.
func arm64CallTarget(m machine.Memory, pc machine.Addr) (to machine.Addr, ok bool) {
	var b [arm64.Size]byte
	if pc < arm64.Size || m.ReadMemory(b[:], pc-arm64.Size) != nil {
		return 0, false
	}
	s := arm64Step(b[:], pc-arm64.Size)
	return s.Target, s.How == StepCall && s.Target != 0
}

func arm64PatchpointCall(code []byte) int {
	if len(code) < arm64Patchpoint || !arm64.SetsWord(code, 16, 32, false) || !arm64.SetsWord(code[arm64.Size:], 16, 16, true) ||
		!arm64.SetsWord(code[2*arm64.Size:], 16, 0, true) || !arm64.CallThrough(code[3*arm64.Size:], 16) {
		return 0
	}
	return arm64Patchpoint
}

// arm64Step recognizes classes of branches by their bits (Arm Architecture Reference Manual for A-profile, C4.1, "Branches, Exception Generating and
// System instructions").
func arm64Step(code []byte, at machine.Addr) Step {
	s := Step{Size: arm64.Length(code)}
	if s.Size == 0 {
		return s
	}
	w := uint32(code[0]) | uint32(code[1])<<8 | uint32(code[2])<<16 | uint32(code[3])<<24
	to, direct := arm64.Jump(code, at)
	switch {
	case arm64.IsCall(code):
		s.How = StepCall
		if w&0xfc000000 == 0x94000000 { // bl encodes its target as b does
			b := [4]byte{code[0], code[1], code[2], code[3] &^ 0x80}
			s.Target, _ = arm64.Jump(b[:], at)
		}
	case direct && w&0xfc000000 == 0x14000000:
		s.How, s.Target = StepJump, to
	case direct:
		s.How, s.Target = StepBranch, to
	case w&0xfe000000 == 0xd6000000: // br, ret, eret and their authenticating forms; blr is a call
		s.How = StepComputed
		if w&0x00600000 == 0x00400000 {
			s.How = StepReturn
		}
	case w&0xffe00000 == 0xd4200000, w&0xffff0000 == 0: // brk, udf
		s.How = StepTrap
	}
	return s
}
