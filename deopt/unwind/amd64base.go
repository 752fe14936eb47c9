package unwind

import (
	"reframe/deopt/machine"
	"reframe/deopt/unwind/cfi"
)

// Bounds of looking for frames above one that returns to the base of a stack.
const (
	maxAboveBase = 4 << 10 // bytes
	maxBaseWords = 16      // words that follow a call
)

// overwrittenReturn reports whether pc, to which f returns by the step s, was written over the return address of f: a runtime has written the
// address of code that looks like the base of a stack, as runtimes make it (see looksCalled). But above f, the stack goes on to the start of the
// thread. Go's stacks lie one after the other, so nothing above one of them belongs to it.
func (w *walk) overwrittenReturn(f *Frame, s *step, pc machine.Addr) bool {
	if called, err := w.callEndsAt(pc); err != nil || called || !w.looksCalled(pc) || w.Finder.Code(pc-1).NoneKept {
		return false
	}
	regs := w.caller(f, s, pc).regs
	goesOn := false
	words := 0
	_ = w.eachReturn(f.CFA, func(slot, pc machine.Addr) bool {
		if words++; words > maxBaseWords || slot-f.CFA > maxAboveBase {
			return false
		}
		at := regs.Clone()
		at.SetUint(w.Arch.PC, uint64(pc))
		at.SetUint(w.Arch.SP, uint64(slot)+uint64(w.Arch.Pointer))
		goesOn = w.leadsToStart(f, caller{pc: pc, regs: at, rule: FromCFI}, slot+1)
		return !goesOn
	})
	return goesOn
}

// leadsToStart reports whether CFI alone leads from the caller c of f to an outermost frame. Its frame lies above an address.
func (w *walk) leadsToStart(f *Frame, c caller, above machine.Addr) bool {
	look := walk{Unwinder: w.Unwinder, frames: []Frame{*f}, floor: above}
	for range maxAhead {
		to := look.enter(c)
		s, err := to.code.cfi(to.lookup())
		if err != nil || s == nil || s.signal {
			return false
		}
		next, end, err := look.apply(to, s)
		switch {
		case err != nil:
			return false
		case end != nil:
			return end.Complete && s.row.Rule(s.row.ReturnAddress).Kind == cfi.RuleUndefined
		}
		c = next
	}
	return false
}
