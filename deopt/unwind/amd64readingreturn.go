package unwind

import (
	"errors"
	"math"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/amd64"
)

// maxForward bounds the instructions on the paths to returns.
const maxForward = 1024

// readToReturn reads x86-64 code from pc up to the returns that it leads to. It follows both ways of each conditional jump, and jumps into other
// functions. At a return, the stack pointer is at the return address, and the function has restored the callee-saved registers that it changed.
// So a register that no path to a return writes holds the caller's value. ret means that pc is a return address.
//
// Only the returns with the fewest calls before them count. certain means that no call precedes them. Otherwise one of the calls may not return.
// Then other code follows it, and the row does not belong to this frame, although the calls there have the same stack alignment. Compilers pad
// after a call that does not return, so a return address with a no-op at it is not certain either. One case cannot be detected: gcc lets
// execution at __builtin_unreachable fall into the next code.
//
// Other ends of paths are ignored. The error reports that no return was reached, or that the returns do not agree on the CFA. A register without a
// rule is unknown, or the returns do not agree on it.
func readToReturn(m machine.Memory, pc machine.Addr, ret bool) (row *cfi.Row, certain bool, err error) {
	begin := atStart()
	if ret {
		begin.called = begin.regs[machine.AMD64.SP]
	}
	r := newReading(m, 0, math.MaxUint64, maxForward)
	r.aligned = true
	none := errors.New("it leads to no return")
	from := []machine.Addr{pc}
	for certain = !ret || !r.isFiller(pc); len(from) > 0; certain = false {
		seen := len(r.instrs)
		from = r.follow(from...)
		if !slices.ContainsFunc(r.instrs[seen:], func(i instr) bool { return i.op == opReturn }) {
			continue
		}
		r.divide()
		if err := r.computeStates(begin); err != nil {
			return nil, false, err
		}
		row, err := r.returned(pc)
		if row != nil || err != nil && !errors.Is(err, errNotOurs) {
			return row, certain, err
		}
		if err != nil {
			none = err
		}
	}
	return nil, false, none
}

// errNotOurs reports that all returns follow a call that is the last instruction of its function, or of a path in it: the code after it belongs to
// another function.
var errNotOurs = errors.New("its calls lead to returns that are not of this frame")

// isFiller reports whether the instruction at an address is a no-op, as in padding.
func (r *reading) isFiller(at machine.Addr) bool {
	inst, _ := amd64.Decode(r.bytes(at))
	return amd64.IsFiller(inst)
}

// returned returns the row at pc on which all returns agree; nil if no return was reached.
func (r *reading) returned(pc machine.Addr) (*cfi.Row, error) {
	var end moment // the state on which all returns agree
	var cfa origin
	var none error
	for n := range r.blocks {
		b := &r.blocks[n]
		last := r.last(b)
		if last.op != opReturn || !b.before.reached {
			continue
		}
		at, _ := r.after(b)
		top := at.regs[machine.AMD64.SP]
		if slices.ContainsFunc(at.slots, func(s slot) bool { return s.overlaps(top, 8) }) {
			continue // a jump to a pushed address, like an indirect jump
		}
		found := top.plus(8)
		switch distance, ok := found.from(at.called); {
		case found.kind != fromRegister && (found.kind != fromMemory || at.storedElsewhere(found) != 0):
			return nil, frame.Errorf("the stack pointer at the return at %v is unknown", last.at)
		case ok && distance%callAlignment != 0:
			none = errNotOurs
			continue
		case end.reached && cfa != found:
			return nil, frame.Errorf("the returns that it leads to do not agree where its frame ends: that at %v is one of them", last.at)
		}
		cfa = found
		end.meet(at)
	}
	if !end.reached {
		return nil, none
	}
	return readRow(pc, pc+1, cfaOf(cfa), func(reg machine.DWARFReg) cfi.RegisterRule { return end.ruleOf(reg, cfa) }), nil
}

// cfaOf returns the rule for a CFA that was computed from the registers and memory at the start of the reading.
func cfaOf(o origin) cfi.CFARule {
	if o.kind == fromMemory {
		return cfi.CFARule{Kind: cfi.CFAExpression, Expression: cfi.RegisterPlus(machine.DWARFReg(o.reg), int64(o.at)).Deref().Plus(int64(o.add))}
	}
	return cfi.CFARule{Kind: cfi.CFARegister, Register: machine.DWARFReg(o.reg), Offset: int64(o.add)}
}

// ruleOf returns the rule for a register by its value at the return.
func (m *moment) ruleOf(reg machine.DWARFReg, cfa origin) cfi.RegisterRule {
	o := m.regs[reg]
	switch {
	case o == initially(reg):
		return cfi.RegisterRule{Kind: cfi.RuleSameValue}
	case o.kind == fromRegister && o.add == 0:
		return cfi.RegisterRule{Kind: cfi.RuleRegister, Register: machine.DWARFReg(o.reg)}
	case o.kind != fromMemory || o.add != 0 || m.storedElsewhere(o).Has(reg):
		return cfi.RegisterRule{}
	}
	if n, ok := initially(machine.DWARFReg(o.reg)).plus(int64(o.at)).from(cfa); ok {
		return cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: n}
	}
	return cfi.RegisterRule{Kind: cfi.RuleExpression, Expression: cfi.RegisterPlus(machine.DWARFReg(o.reg), int64(o.at))}
}

// storedElsewhere returns the registers that were written to memory at addresses that are based on another register than o's address. Such a
// write may have overwritten o. For example, after the instruction that sets up a frame pointer, the save slots that are addressed from it are
// not written yet.
func (m *moment) storedElsewhere(o origin) amd64.Set {
	var s amd64.Set
	for reg := range m.stored {
		if reg != int(o.reg) {
			s |= m.stored[reg]
		}
	}
	return s
}
