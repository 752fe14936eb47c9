package isa

import (
	"encoding/binary"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// calleeSaved holds the callee-saved general registers (System V ABI, AMD64 supplement, 3.2.1): rbx, rbp and r12 to r15.
var calleeSaved = amd64.Of(3, 6, 12, 13, 14, 15)

// amd64LoadedTarget follows the straight-line code from the last movabs of the call's register to the call. LLVM merges the ends of blocks, so a jump may
// reach the call from code that loads another number. So no jump in the function may lead between the two instructions, and no jump may be indirect.
func amd64LoadedTarget(code []byte, start machine.Addr, call int) (load int, to machine.Addr, ok bool) {
	if call < 0 || call >= len(code) {
		return 0, 0, false
	}
	inst, known := amd64.Decode(code[call:])
	through, isRegister := inst.Args[0].(x86asm.Reg)
	if !known || inst.Op != x86asm.CALL || !isRegister {
		return 0, 0, false
	}
	register, _, ok := amd64.Register(through)
	if !ok {
		return 0, 0, false
	}
	load = -1
	jumps := map[machine.Addr]bool{}
	for at := 0; at < len(code); at += inst.Len {
		inst, known = amd64.Decode(code[at:])
		if !known || inst.Len == 0 {
			return 0, 0, false
		}
		step := amd64Step(code[at:], start+machine.Addr(at))
		switch step.How {
		case StepComputed:
			return 0, 0, false
		case StepJump, StepBranch:
			jumps[step.Target] = true
		}
		if at >= call {
			continue
		}
		switch {
		case step.How == StepJump || step.How == StepReturn || step.How == StepTrap: // the code after it is reached only by jumps
			load = -1
		case step.How == StepCall && !calleeSaved.Has(register):
			load = -1
		case inst.Op == x86asm.MOV && inst.Len == amd64Movabs && inst.Args[0] == x86asm.Arg(through):
			load = at
		case amd64.Writes(inst).Has(register):
			load = -1
		}
	}
	if load < 0 {
		return 0, 0, false
	}
	for at := load + 1; at <= call; at++ {
		if jumps[start+machine.Addr(at)] {
			return 0, 0, false
		}
	}
	return load, machine.Addr(binary.LittleEndian.Uint64(code[load+2:])), true
}
