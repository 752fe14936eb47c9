package gostack

import (
	"cmp"
	"errors"
	"fmt"
	"maps"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
)

// maxSteps bounds the instructions from a call to the return of the function.
const maxSteps = 128

// register is the 64-bit name of a general register of x86-64, such as RAX.
type register = x86asm.Reg

const (
	rsp = x86asm.RSP
	rbp = x86asm.RBP
)

// emulator runs the instructions of one function from the return of a call to the function's own return.
type emulator struct {
	memory    *view
	g         uint64      // the only thread-local variable: the running goroutine
	local     *x86asm.Mem // the operand that refers to g; nil before the first one
	pc        uint64
	registers map[register]uint64 // the known registers
	equal     bool                // the result of the last comparison
	known     bool                // equal is known
	returned  bool
	steps     int
	forks     int
}

// run runs until the function has returned. An unknown value is an error only if the result depends on it. If an unknown value decides a jump, both
// branches must return to the same address with the same stack.
func (e *emulator) run() error {
	code := make([]byte, 15) // the longest instruction
	for e.steps < maxSteps {
		e.steps++
		b, err := machine.ReadSome(e.memory.Memory, machine.Addr(e.pc), code)
		if err != nil {
			return err
		}
		inst, err := x86asm.Decode(b, 64)
		if err != nil {
			return fmt.Errorf("cannot decode the instruction at %#x: %w", e.pc, err)
		}
		at := e.pc
		e.pc += uint64(inst.Len)
		if to, ok := e.undecided(&inst); ok {
			return e.bothWays(to)
		}
		if err := e.execute(&inst); err != nil {
			return fmt.Errorf("cannot follow the instruction %v at %#x: %w", inst, at, err)
		}
		if e.returned {
			return nil
		}
	}
	return fmt.Errorf("the function does not return within %d instructions", maxSteps)
}

// undecided returns the target of a conditional jump whose condition is unknown.
func (e *emulator) undecided(inst *x86asm.Inst) (to uint64, ok bool) {
	rel, ok := inst.Args[0].(x86asm.Rel)
	if !ok || e.known || inst.Op != x86asm.JE && inst.Op != x86asm.JNE {
		return 0, false
	}
	return e.pc + uint64(int64(rel)), true
}

// maxForks bounds the jumps with an unknown condition on one path.
const maxForks = 4

// bothWays runs both branches of a conditional jump to an address.
func (e *emulator) bothWays(to uint64) error {
	if e.forks++; e.forks > maxForks {
		return fmt.Errorf("more than %d conditions are unknown", maxForks)
	}
	other := *e
	other.registers, other.memory, other.pc = maps.Clone(e.registers), e.memory.clone(), to
	if err := e.run(); err != nil {
		return err
	}
	if err := other.run(); err != nil {
		return err
	}
	fp, known := e.registers[rbp]
	otherFP, otherKnown := other.registers[rbp]
	if e.pc != other.pc || e.registers[rsp] != other.registers[rsp] || known != otherKnown || fp != otherFP || e.g != other.g {
		return errors.New("the condition is unknown, and both branches return to different places")
	}
	return nil
}

func (e *emulator) execute(inst *x86asm.Inst) error {
	args := inst.Args
	switch inst.Op {
	case x86asm.NOP:
		return nil
	case x86asm.MOV:
		v, known, err := e.value(inst, args[1])
		if err != nil {
			return err
		}
		return e.assign(inst, args[0], v, known)
	case x86asm.LEA:
		addr, local, known, err := e.address(args[1].(x86asm.Mem))
		if err != nil || local {
			return cmp.Or(err, errors.New("not supported"))
		}
		return e.assign(inst, args[0], addr, known)
	case x86asm.ADD, x86asm.SUB, x86asm.XOR:
		return e.arithmetic(inst)
	case x86asm.CMP, x86asm.TEST:
		return e.compare(inst)
	case x86asm.POP:
		v, err := e.pop()
		if err != nil {
			return err
		}
		return e.assign(inst, args[0], v, true)
	case x86asm.RET:
		if args[0] != nil {
			return errors.New("not supported")
		}
		v, err := e.pop()
		e.pc, e.returned = v, err == nil
		return err
	case x86asm.JMP, x86asm.JE, x86asm.JNE:
		return e.jump(inst)
	case x86asm.CALL:
		// Functions of Go's run time preserve only the stack pointer and the frame pointer.
		for r := range e.registers {
			if r != rsp && r != rbp {
				delete(e.registers, r)
			}
		}
		e.known = false
		return nil
	}
	if onlyVectors(args) {
		return nil
	}
	return errors.New("not supported")
}

// onlyVectors reports whether all operands are vector registers, which the emulator does not have.
func onlyVectors(args x86asm.Args) bool {
	n := 0
	for _, a := range args {
		if a == nil {
			break
		}
		r, ok := a.(x86asm.Reg)
		if !ok || r < x86asm.X0 || r > x86asm.X15 {
			return false
		}
		n++
	}
	return n > 0
}

func (e *emulator) arithmetic(inst *x86asm.Inst) error {
	e.known = false
	if a, b := inst.Args[0], inst.Args[1]; inst.Op == x86asm.XOR && a == b {
		return e.assign(inst, a, 0, true)
	}
	a, knownA, err := e.value(inst, inst.Args[0])
	if err != nil {
		return err
	}
	b, knownB, err := e.value(inst, inst.Args[1])
	if err != nil {
		return err
	}
	switch inst.Op {
	case x86asm.ADD:
		a += b
	case x86asm.SUB:
		a -= b
	default:
		a ^= b
	}
	return e.assign(inst, inst.Args[0], a, knownA && knownB)
}

func (e *emulator) compare(inst *x86asm.Inst) error {
	a, knownA, err := e.value(inst, inst.Args[0])
	if err != nil {
		return err
	}
	b, knownB, err := e.value(inst, inst.Args[1])
	if err != nil {
		return err
	}
	e.known = knownA && knownB
	e.equal = inst.Op == x86asm.CMP && a == b || inst.Op == x86asm.TEST && a&b == 0
	return nil
}

func (e *emulator) jump(inst *x86asm.Inst) error {
	to, ok := inst.Args[0].(x86asm.Rel)
	switch {
	case !ok:
		return errors.New("the target is unknown")
	case inst.Op == x86asm.JE && !e.equal, inst.Op == x86asm.JNE && e.equal:
		return nil
	}
	e.pc += uint64(int64(to))
	return nil
}

func (e *emulator) pop() (uint64, error) {
	sp, known := e.registers[rsp]
	if !known {
		return 0, errors.New("the stack pointer is unknown")
	}
	e.registers[rsp] = sp + 8
	return machine.ReadUint(e.memory, e.memory.arch, machine.Addr(sp), 8)
}

// value returns the value of an operand. known is false for a register that is unknown, and for a part of a register.
func (e *emulator) value(inst *x86asm.Inst, a x86asm.Arg) (v uint64, known bool, err error) {
	switch a := a.(type) {
	case x86asm.Imm:
		return uint64(int64(a)), true, nil
	case x86asm.Reg:
		v, known = e.registers[a]
		return v, known, nil
	case x86asm.Mem:
		addr, local, known, err := e.address(a)
		switch {
		case err != nil:
			return 0, false, err
		case local:
			return e.g, true, nil
		case !known || inst.MemBytes != 8:
			return 0, false, nil
		}
		v, err = machine.ReadUint(e.memory, e.memory.arch, machine.Addr(addr), 8)
		return v, err == nil, nil
	}
	return 0, false, fmt.Errorf("operand %v is not supported", a)
}

// address returns the address of a memory operand. local means that it is a thread-local variable.
func (e *emulator) address(m x86asm.Mem) (addr uint64, local, known bool, err error) {
	if m.Segment == x86asm.FS {
		// A position-independent executable reads the offset from memory first.
		if e.local != nil && e.local.Base == 0 && m.Base == 0 && e.local.Disp != m.Disp {
			return 0, false, false, errors.New("a second thread-local variable is not supported")
		}
		e.local = &m
		return 0, true, true, nil
	}
	if m.Segment != 0 && m.Segment != x86asm.DS && m.Segment != x86asm.SS {
		return 0, false, false, fmt.Errorf("segment %v is not supported", m.Segment)
	}
	addr, known = uint64(m.Disp), true
	for _, part := range []struct {
		reg   x86asm.Reg
		scale uint64
	}{{m.Base, 1}, {m.Index, uint64(m.Scale)}} {
		switch {
		case part.reg == 0:
		case part.reg == x86asm.RIP:
			addr += e.pc
		default:
			v, ok := e.registers[part.reg]
			addr, known = addr+v*part.scale, known && ok
		}
	}
	return addr, false, known, nil
}

// assign sets a register or memory. A write to an unknown address is an error: later reads could return wrong values.
func (e *emulator) assign(inst *x86asm.Inst, a x86asm.Arg, v uint64, known bool) error {
	switch a := a.(type) {
	case x86asm.Reg:
		full, whole := fullRegister(a)
		switch {
		case full == 0:
			return fmt.Errorf("register %v is not supported", a)
		case known && whole:
			e.registers[full] = v
		default:
			delete(e.registers, full)
		}
		return nil
	case x86asm.Mem:
		addr, local, at, err := e.address(a)
		switch {
		case err != nil:
			return err
		case local && !known, !local && !at:
			return errors.New("the value or the place is unknown")
		case local:
			e.g = v
		case inst.MemBytes > 8:
			return fmt.Errorf("%d bytes are not supported", inst.MemBytes)
		default:
			return e.memory.write(machine.Addr(addr), word{v, known && inst.MemBytes == 8})
		}
		return nil
	}
	return fmt.Errorf("operand %v is not supported", a)
}

// fullRegister returns the 64-bit register that contains r. whole means that r is that register.
func fullRegister(r x86asm.Reg) (full x86asm.Reg, whole bool) {
	switch {
	case x86asm.RAX <= r && r <= x86asm.R15:
		return r, true
	case x86asm.EAX <= r && r <= x86asm.R15L:
		return x86asm.RAX + r - x86asm.EAX, false
	}
	return 0, false
}
