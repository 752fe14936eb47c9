package unwind

import (
	"math"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// instr is an instruction, reduced to its effects on frames.
type instr struct {
	at     machine.Addr
	to     machine.Addr // opJump, opBranch, opCall: target; 0 if unknown
	memory operand      // memory that it reads or writes; opAddress only computes the address
	number int64        // opEnter: size of the stack area; opNumber, opAlign, opPush of a constant: the number
	writes amd64.Set    // opOther: registers with unknown values after it
	op     operation
	bytes  uint16 // opOther: number of bytes that it writes to memory
	size   uint8  // size of the instruction in bytes
	equal  outcome
	dst    uint8 // general registers; noRegister for none
	src    uint8
	filler bool // a nop
	away   bool // opStop: execution continues at an unknown place
	// constant means that an opPush pushes number.
	constant bool
}

// operand is memory at a register plus an offset.
type operand struct {
	base   uint8 // noRegister if the address cannot be computed
	offset int64
}

const noRegister = 0xff

// noBase is the base of an operand whose offset is the absolute address.
const noBase = 0xfe

// outcome is the effect of a conditional jump after a comparison that found its operands equal.
type outcome uint8

const (
	either outcome = iota
	jumps
	continues
)

type operation uint8

// The operations of instructions. All registers have eight bytes.
const (
	opOther    operation = iota // the registers in writes, and memory, become unknown
	opMove                      // dst = src
	opExchange                  // swaps dst and src
	opLoad                      // dst = memory
	opStore                     // memory = src
	opAddress                   // dst = address of memory
	opNumber                    // dst = number
	opAlign                     // rounds the stack pointer down: ANDs it with number
	opPush                      // pushes src, or memory if it has a base, or an unknown value
	opPop                       // pops to dst, or to memory if it has a base, or discards the value
	opEnter                     // reserves number bytes of stack
	opLeave
	opCompare // compares dst with src for equality
	opCall
	opSystem // a system call; it may end the process
	opJump   // jumps to a constant address
	opBranch // jumps to a constant address or continues with the next instruction
	opReturn
	opReturnTo // returns to an address that the previous instruction pushed
	opStop     // ends the reading: an indirect jump, a trap, an unknown instruction
)

// ends reports whether control never continues with the next instruction in memory.
func (i *instr) ends() bool {
	return i.op == opJump || i.op == opReturnTo || i.op == opReturn || i.op == opStop
}

// jumps reports whether i may jump to an address that i, or the instruction before i, contains.
func (i *instr) jumps() bool { return i.op == opJump || i.op == opBranch || i.op == opReturnTo }

// calls reports whether i is a call. It also returns true for a call of the next instruction. Such a call may enter a function that starts there, or
// only push the address of the code.
func (i *instr) calls() bool { return i.op == opCall || i.op == opPush && i.to == i.next() }

// mayEnd reports whether control may not continue with the next instruction.
func (i *instr) mayEnd() bool { return i.op == opCall || i.op == opSystem }

// next returns the address after the instruction.
func (i *instr) next() machine.Addr { return i.at + machine.Addr(i.size) }

// instrOf converts an instruction. known is false if its effect is unknown.
func instrOf(at machine.Addr, inst x86asm.Inst, known bool) instr {
	i := instr{at: at, size: uint8(inst.Len), dst: noRegister, src: noRegister, memory: operand{base: noRegister}}
	if !known {
		i.op, i.away = opStop, true
		return i
	}
	if i.flow(inst) || i.stack(inst) || i.moves(inst) {
		return i
	}
	i.op, i.writes, i.filler = opOther, amd64.Writes(inst), amd64.IsFiller(inst)
	if memory, size, ok := amd64.Stores(inst); ok {
		i.memory, i.bytes = i.operandOf(memory), uint16(min(size, math.MaxUint16))
	}
	return i
}

// flow converts an instruction that changes the control flow. It returns false for others.
func (i *instr) flow(inst x86asm.Inst) bool {
	rel, direct := inst.Args[0].(x86asm.Rel)
	if direct {
		i.to = i.next() + machine.Addr(int64(rel))
	}
	switch inst.Op {
	case x86asm.CALL:
		i.op = opCall
		if direct && i.to == i.next() { // only loads the address of the code
			i.op = opPush
		}
	case x86asm.RET:
		i.op = opReturn
	case x86asm.JMP:
		i.op = opJump
		if !direct {
			i.op, i.away = opStop, true
		}
	case x86asm.LCALL, x86asm.LRET, x86asm.LJMP, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ, x86asm.SYSEXIT, x86asm.SYSRET,
		x86asm.UD0, x86asm.UD1, x86asm.UD2, x86asm.HLT, x86asm.ICEBP, x86asm.RSM, x86asm.XABORT:
		i.op = opStop
		switch inst.Op {
		case x86asm.LRET, x86asm.LJMP, x86asm.IRET, x86asm.IRETD, x86asm.IRETQ:
			i.away = true
		}
	case x86asm.SYSCALL:
		i.op, i.writes = opSystem, amd64.Writes(inst)
	case x86asm.INT:
		i.op, i.writes = opSystem, amd64.Writes(inst)
		if inst.Args[0] == x86asm.Arg(x86asm.Imm(3)) { // a trap; also fills the space between functions
			i.op = opStop
		}
	default:
		if !direct {
			return false
		}
		i.op = opBranch
		i.writes = amd64.Writes(inst) // LOOP writes a counter
		switch inst.Op {
		case x86asm.JE:
			i.equal = jumps
		case x86asm.JNE:
			i.equal = continues
		}
	}
	return true
}

// stack converts an instruction that pushes or pops. It returns false for others.
func (i *instr) stack(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.PUSH, x86asm.POP, x86asm.PUSHFQ, x86asm.POPFQ, x86asm.ENTER, x86asm.LEAVE:
		if inst.DataSize == 16 {
			return false // a push or pop of two bytes; no compiler emits it
		}
	}
	switch inst.Op {
	case x86asm.PUSH:
		i.op = opPush
		i.src = wholeRegister(inst.Args[0])
		i.memory = i.operandIn(inst.Args[0])
	case x86asm.POP:
		i.op = opPop
		i.dst = wholeRegister(inst.Args[0])
		i.memory = i.operandIn(inst.Args[0])
	case x86asm.PUSHFQ:
		i.op = opPush
	case x86asm.POPFQ:
		i.op = opPop
	case x86asm.LEAVE:
		i.op = opLeave
	case x86asm.ENTER:
		size, _ := inst.Args[0].(x86asm.Imm)
		if inst.Args[1] != x86asm.Arg(x86asm.Imm(0)) { // ENTER with a nesting level; no compiler emits it
			return false
		}
		i.op, i.number = opEnter, int64(size)
	default:
		return false
	}
	return true
}

// moves converts an instruction that computes an address or moves eight bytes. It returns false for others.
func (i *instr) moves(inst x86asm.Inst) bool {
	dst, src := wholeRegister(inst.Args[0]), wholeRegister(inst.Args[1])
	number, immediate := inst.Args[1].(x86asm.Imm)
	switch {
	case inst.Op == x86asm.MOV && dst != noRegister && src != noRegister:
		i.op = opMove
	case inst.Op == x86asm.XCHG && dst != noRegister && src != noRegister:
		i.op = opExchange
	case inst.Op == x86asm.CMP && dst != noRegister && src != noRegister:
		i.op = opCompare
	case inst.Op == x86asm.MOV && dst == uint8(machine.AMD64.SP) && immediate:
		i.op, i.number = opNumber, int64(number)
	case inst.Op == x86asm.MOV && dst != noRegister && i.operandIn(inst.Args[1]).base != noRegister:
		i.op, i.memory = opLoad, i.operandIn(inst.Args[1])
	case inst.Op == x86asm.MOV && src != noRegister && i.operandIn(inst.Args[0]).base != noRegister:
		i.op, i.memory = opStore, i.operandIn(inst.Args[0])
	case inst.Op == x86asm.LEA && dst != noRegister && i.operandIn(inst.Args[1]).base == noBase:
		i.op, i.number = opNumber, i.operandIn(inst.Args[1]).offset
	case inst.Op == x86asm.LEA && dst != noRegister:
		i.op, i.memory = opAddress, i.operandIn(inst.Args[1])
	case inst.Op == x86asm.ADD && dst != noRegister && immediate:
		i.op, i.memory = opAddress, operand{dst, int64(number)}
	case inst.Op == x86asm.SUB && dst != noRegister && immediate:
		i.op, i.memory = opAddress, operand{dst, -int64(number)}
	case inst.Op == x86asm.AND && dst == uint8(machine.AMD64.SP) && immediate && number < 0:
		i.op, i.number = opAlign, int64(number)
	default:
		return false
	}
	i.dst, i.src = dst, src
	return true
}

// wholeRegister returns the 64-bit general register of an operand, or noRegister.
func wholeRegister(arg x86asm.Arg) uint8 {
	r, _ := arg.(x86asm.Reg)
	if reg, size, ok := amd64.Register(r); ok && size == 8 {
		return uint8(reg)
	}
	return noRegister
}

func (i *instr) operandIn(arg x86asm.Arg) operand {
	if memory, ok := arg.(x86asm.Mem); ok {
		return i.operandOf(memory)
	}
	return operand{base: noRegister}
}

// operandOf converts a memory operand. The base is noRegister if the operand has an index or an FS or GS segment.
func (i *instr) operandOf(m x86asm.Mem) operand {
	switch {
	case m.Index != 0 || m.Segment == x86asm.FS || m.Segment == x86asm.GS:
		return operand{base: noRegister}
	case m.Base == x86asm.RIP:
		return operand{noBase, int64(i.next()) + m.Disp}
	case m.Base == 0:
		return operand{noBase, m.Disp}
	}
	return operand{wholeRegister(m.Base), m.Disp}
}
