package isa

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

var amd64Set = &Set{
	Longest: amd64.Longest, DirectCall: amd64.DirectCall, PatchpointSize: amd64Movabs + amd64CallR11,
	Length: amd64.Length, IsCall: amd64IsCall, Jump: amd64Jump, CallFrom: amd64.CallFrom, PatchpointCall: amd64PatchpointCall,
	CallTarget: amd64CallTarget, LoadedTarget: amd64LoadedTarget, Text: amd64.Text, Step: amd64Step,
}

// Lengths of the instructions of a patchpoint's call: movabs $target,%r11 and call *%r11.
const amd64Movabs, amd64CallR11 = 10, 3

func amd64IsCall(code []byte) bool {
	inst, known := amd64.Decode(code)
	return known && amd64.IsCall(inst)
}

// amd64CallTarget returns the target of a call rel32 that ends at pc.
func amd64CallTarget(m machine.Memory, pc machine.Addr) (to machine.Addr, ok bool) {
	const size, opcode = amd64.DirectCall, 0xe8
	var b [size]byte
	if pc < size || m.ReadMemory(b[:], pc-size) != nil || b[0] != opcode {
		return 0, false
	}
	return pc + machine.Addr(int64(int32(binary.LittleEndian.Uint32(b[1:])))), true
}

func amd64Jump(code []byte, at machine.Addr) (to machine.Addr, ok bool) {
	inst, _ := amd64.Decode(code)
	by, ok := inst.Args[0].(x86asm.Rel)
	return at + machine.Addr(inst.Len) + machine.Addr(int64(by)), ok && inst.Op != x86asm.CALL
}

func amd64PatchpointCall(code []byte) int {
	mov, known := amd64.Decode(code)
	if !known || mov.Op != x86asm.MOV || mov.Len != amd64Movabs || mov.Args[0] != x86asm.Arg(x86asm.R11) {
		return 0
	}
	jump, known := amd64.Decode(code[amd64Movabs:]) // cannot exceed code: the movabs has this length
	if !known || jump.Op != x86asm.CALL || jump.Len != amd64CallR11 || jump.Args[0] != x86asm.Arg(x86asm.R11) {
		return 0
	}
	return amd64Movabs + amd64CallR11
}

func amd64Step(code []byte, at machine.Addr) Step {
	inst, _ := amd64.Decode(code)
	s := Step{Size: inst.Len}
	by, direct := inst.Args[0].(x86asm.Rel)
	s.Target = at + machine.Addr(inst.Len) + machine.Addr(int64(by))
	if !direct {
		s.Target = 0
	}
	switch inst.Op {
	case x86asm.CALL, x86asm.LCALL:
		s.How = StepCall
	case x86asm.JMP, x86asm.LJMP:
		s.How = StepComputed
		if direct {
			s.How = StepJump
		}
	case x86asm.RET, x86asm.LRET, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
		s.How = StepReturn
	case x86asm.UD1, x86asm.UD2, x86asm.HLT:
		s.How = StepTrap
	default:
		if direct {
			s.How = StepBranch
		}
	}
	return s
}
