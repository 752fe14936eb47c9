package unwind

import (
	"errors"
	"math"
	"slices"

	"golang.org/x/arch/x86/x86asm"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// departure is a path out of a function through code that a runtime wrote over the function's own. The reading of a departure follows jumps to a
// constant, to an address in memory at a known place, or to a number that was pushed for a return.
type departure struct {
	memory machine.Memory
	arch   *machine.Arch
	// own is the range of the function, and written the range that the runtime wrote. Code in own is followed only inside written.
	own, written machine.Range
}

// Bounds of the reading of a departure.
const (
	maxDeparture = 2048 // instructions
	maxNear      = 256  // bytes from a call to its target within which both are assumed to be in the same stub
)

// follows reports whether the reading continues at an address: inside the written range, or outside the function.
func (d *departure) follows(at machine.Addr) bool {
	return !d.own.Contains(at) || d.written.Contains(at)
}

// enters reports whether the reading also follows the target of a call, because the target may pop the return address. That is assumed of a target of
// written code, which may be a stub, and of a nearby target.
func (r *reading) enters(i *instr) bool {
	if r.left == nil || i.op != opCall || i.to == 0 {
		return false
	}
	near := i.to-i.at < maxNear || i.at-i.to < maxNear
	return near || r.left.written.Contains(i.at)
}

// resolve adds to i the constant that inst loads or pushes, or the target of its jump.
func (d *departure) resolve(r *reading, i *instr, inst x86asm.Inst) {
	number, immediate := inst.Args[1].(x86asm.Imm)
	pushed, pushes := inst.Args[0].(x86asm.Imm)
	switch {
	case inst.Op == x86asm.MOV && immediate && i.op == opOther:
		loaded, ok := inst.Args[0].(x86asm.Reg)
		reg, size, general := amd64.Register(loaded)
		if ok && general && size >= 4 {
			i.op, i.dst, i.number = opNumber, uint8(reg), int64(number)
			if size == 4 {
				i.number = int64(uint32(number))
			}
		}
	case inst.Op == x86asm.PUSH && i.op == opPush && pushes:
		i.constant, i.number = true, int64(pushed)
	case i.op == opPush && i.to == i.next(): // calls the next instruction, to push its address
		i.constant, i.number = true, int64(i.next())
	case inst.Op == x86asm.JMP && i.op == opStop:
		if to := d.through(r, i.at, inst.Args[0], i.operandIn(inst.Args[0])); to != 0 {
			i.op, i.to, i.away = opJump, to, false
		}
	case i.op == opReturn:
		if before := r.previous(i.at); before != nil && before.constant {
			i.op, i.to = opReturnTo, machine.Addr(before.number)
		}
	}
}

// through returns the target of an indirect jump through a word of memory, or through a register that earlier instructions loaded.
func (d *departure) through(r *reading, at machine.Addr, arg x86asm.Arg, memory operand) machine.Addr {
	if memory.base == noBase {
		to, err := machine.ReadAddr(d.memory, d.arch, machine.Addr(memory.offset))
		if err != nil {
			return 0
		}
		return to
	}
	reg := wholeRegister(arg)
	for i := r.previous(at); i != nil && reg != noRegister; i = r.previous(i.at) {
		switch {
		case i.op == opNumber && i.dst == reg:
			return machine.Addr(i.number)
		case i.op == opLoad && i.dst == reg && i.memory.base == noBase:
			to, err := machine.ReadAddr(d.memory, d.arch, machine.Addr(i.memory.offset))
			if err != nil {
				return 0
			}
			return to
		case i.op == opCall, i.op != opPush && i.op != opStore && i.op != opNumber && !(i.op == opOther && !i.writes.Has(machine.DWARFReg(reg))):
			return 0
		}
	}
	return 0
}

// previous returns the instruction before an address, if it was decoded already.
func (r *reading) previous(at machine.Addr) *instr {
	for n := len(r.instrs) - 1; n >= 0; n-- {
		if i := &r.instrs[n]; i.next() == at {
			return i
		}
	}
	return nil
}

// departing makes a reading of the code at an address as a departure from a function.
func (u *Unwinder) departing(from machine.Addr, own, written machine.Range) *reading {
	r := newReading(u.Memory, 0, math.MaxUint64, maxDeparture)
	r.left = &departure{u.Memory, u.Arch, own, written}
	return r
}

// CallsFrom lists the return addresses of the calls in the code that is reached from an address, without the code of callees. It supports x86-64,
// and reads at most some thousand instructions. whole is false if the code also leads to code that was not read.
func (u *Unwinder) CallsFrom(from machine.Addr) (returns []machine.Addr, whole bool) {
	if u.Arch != machine.AMD64 {
		return nil, false
	}
	r := u.departing(from, machine.Range{}, machine.Range{})
	for queue := []machine.Addr{from}; len(queue) > 0; {
		queue = r.follow(queue...)
	}
	whole = len(r.instrs) > 0 && len(r.instrs) < r.limit
	for n := range r.instrs {
		i := &r.instrs[n]
		if i.calls() {
			returns = append(returns, i.next())
		}
		whole = whole && !i.away
	}
	slices.Sort(returns)
	return slices.Compact(returns), whole
}

// leave reads the code that ran from o.At, where a frame left its function, up to pc. pc is the end of a call or, if the frame made no call, an
// instruction or the end of a trap.
func (u *codeReader) leave(o *Overwritten, pc machine.Addr, own machine.Range) (r *reading, m moment, err error) {
	if u.Arch != machine.AMD64 {
		return nil, m, errors.New("code of " + u.Arch.Title + " is not followed")
	}
	r = u.departing(o.At, own, machine.Range{Start: o.At, End: max(o.End, o.At+1)})
	number := -1
	for queue := []machine.Addr{o.At}; len(queue) > 0 && number < 0; {
		queue = r.follow(queue...)
		number = slices.IndexFunc(r.instrs, func(i instr) bool {
			return !o.Trap && i.next() == pc && i.calls() || o.Trap && i.at == pc || o.Trap && i.next() == pc && i.op == opStop
		})
	}
	if number < 0 {
		return r, m, errors.New("nothing that is reached ends there")
	}
	r.divide()
	begin := atStart()
	begin.forgot = true
	if err := r.computeStates(begin); err != nil {
		return r, m, err
	}
	m, err = r.before(r.instrs[number].at)
	if o.Trap {
		m.loseBelow(redZone)
	} else {
		m.loseBelow(0)
	}
	return r, m, err
}
