package unwind

import (
	"math"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// instr is an instruction, as far as it matters to frames.
type instr struct {
	at     machine.Addr
	to     machine.Addr // opJump, opBranch, opCall: its target; 0 if unknown
	memory operand      // what it reads or writes in memory; for opAddress only computes
	number int64        // opEnter: the bytes of stack; opNumber, opAlign, and opPush of a constant: the number
	writes amd64.Set    // opOther: registers that hold something unknown after it
	op     operation
	bytes  uint16 // opOther: how many it writes to memory
	size   uint8  // of the instruction, in bytes
	equal  outcome
	dst    uint8 // registers; noRegister for none
	src    uint8
	filler bool // it only takes up room
	away   bool // opStop: execution continues at an unknown place
	// constant is set of an opPush that pushes number.
	constant bool
}

// operand is memory at a register plus an offset.
type operand struct {
	base   uint8 // noRegister if the address cannot be computed
	offset int64
}

const noRegister = 0xff

// noBase is the base of an operand whose offset is the address itself.
const noBase = 0xfe

// outcome is the effect of a conditional jump after a comparison that found both equal.
type outcome uint8

const (
	either outcome = iota
	jumps
	goesOn
)

type operation uint8

// The operations of instructions. All registers have eight bytes.
const (
	opOther    operation = iota // writes and memory list what becomes unknown
	opMove                      // dst takes the value of src
	opExchange                  // dst and src change places
	opLoad                      // dst takes memory
	opStore                     // memory takes src
	opAddress                   // dst takes the address of memory
	opNumber                    // dst takes number
	opAlign                     // the stack pointer is combined with number, which rounds it down
	opPush                      // of src, or of what is in memory if it has a base, or of something unknown
	opPop                       // to dst, or to memory if it has a base, or to nowhere that matters
	opEnter                     // with number bytes of stack
	opLeave
	opCompare // dst with src, for whether they are equal
	opCall
	opSystem // a system call, which may be the one that ends the process
	opJump   // to an address that it names
	opBranch // the same, or to the next instruction
	opReturn
	opReturnTo // an address that the instruction in front of it has pushed
	opStop     // the reading ends: an indirect jump, a trap, an unknown instruction
)

// ends reports whether control never reaches the next instruction in memory from it.
func (i *instr) ends() bool {
	return i.op == opJump || i.op == opReturnTo || i.op == opReturn || i.op == opStop
}

// jumps reports whether it may lead to an address that it, or the instruction in front of it, names.
func (i *instr) jumps() bool { return i.op == opJump || i.op == opBranch || i.op == opReturnTo }

// calls reports whether it is a call. A call of the next instruction counts: it may call a function that lies there, and need not be the way to
// learn the address of the code.
func (i *instr) calls() bool { return i.op == opCall || i.op == opPush && i.to == i.next() }

// mayEnd reports whether control may never reach the next instruction from it.
func (i *instr) mayEnd() bool { return i.op == opCall || i.op == opSystem }

// next is the address after it.
func (i *instr) next() machine.Addr { return i.at + machine.Addr(i.size) }

// instrOf extracts from an instruction what the reading uses. known is false for an instruction of unknown effect.
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

// flow takes an instruction that may lead elsewhere.
func (i *instr) flow(inst x86asm.Inst) bool {
	rel, direct := inst.Args[0].(x86asm.Rel)
	if direct {
		i.to = i.next() + machine.Addr(int64(rel))
	}
	switch inst.Op {
	case x86asm.CALL:
		i.op = opCall
		if direct && i.to == i.next() { // to learn where the code is
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
		if inst.Args[0] == x86asm.Arg(x86asm.Imm(3)) { // a trap, and what fills the room between functions
			i.op = opStop
		}
	default:
		if !direct {
			return false
		}
		i.op = opBranch
		i.writes = amd64.Writes(inst) // LOOP counts
		switch inst.Op {
		case x86asm.JE:
			i.equal = jumps
		case x86asm.JNE:
			i.equal = goesOn
		}
	}
	return true
}

// stack takes an instruction that pushes or pops.
func (i *instr) stack(inst x86asm.Inst) bool {
	switch inst.Op {
	case x86asm.PUSH, x86asm.POP, x86asm.PUSHFQ, x86asm.POPFQ, x86asm.ENTER, x86asm.LEAVE:
		if inst.DataSize == 16 {
			return false // moves the stack pointer by two bytes: no compiler writes it
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
		if inst.Args[1] != x86asm.Arg(x86asm.Imm(0)) { // nested: no compiler writes it
			return false
		}
		i.op, i.number = opEnter, int64(size)
	default:
		return false
	}
	return true
}

// moves takes an instruction that computes an address, or moves eight bytes.
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

// wholeRegister is the general register of eight bytes that an operand is.
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

// operandOf returns a memory operand without an index, in the ordinary segments.
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
