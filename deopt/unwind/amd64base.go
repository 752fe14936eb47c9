package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Bounds of looking for frames above one that returns to the base of a stack.
const (
	maxAboveBase = 4 << 10 // bytes
	maxBaseWords = 16      // words that follow a call, and words that may point to another stack
	leadingOn    = 2       // frames
)

// overwrittenReturn reports whether pc, to which f returns by the step s, was written over the return address of f: a runtime has written the
// address of code that looks like the base of a stack, as runtimes make it (see looksCalled). But above f, the stack continues up to the start of
// the thread. Go's stacks are adjacent, so nothing above one of them belongs to it.
func (w *walk) overwrittenReturn(f *Frame, s *step, pc machine.Addr) bool {
	if called, err := w.callEndsAt(pc); err != nil || called || !w.looksCalled(pc) || w.Finder.Code(pc-1).NoneKept {
		return false
	}
	return w.goesOn(f, w.caller(f, s, pc).regs)
}

// disowned reports whether f was entered by a return address that a runtime has overwritten, although its CFI says that it has no caller. The evidence is
// that the written address is still on the stack and that other frames lie above it. The first function of a coroutine has no such word below its
// CFA, even where other frames lie above its stack. Go's stacks are adjacent.
func (w *walk) disowned(f *Frame, s *step) bool {
	if w.Arch != machine.AMD64 || w.looking || !f.Return || f.code.NoneKept || !w.returnedInto(f, s) {
		return false
	}
	at := *f
	look := walk{Unwinder: w.Unwinder, frames: []Frame{at}} // what it reads decides no frame
	return look.goesOnAbove(&at, look.leadsAbove(&at, look.caller(&at, s, 0).regs))
}

// returnedInto reports whether a return has led into the middle of the function of f, where no call ends: the word that was returned to lies where
// a call of the function would have left its return address. Where the CFI counts that word as if a call had left one, the word is one lower.
func (w *walk) returnedInto(f *Frame, s *step) bool {
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err != nil {
		return false
	}
	word := machine.Addr(w.Arch.Pointer)
	for slot := f.CFA - word; slot >= sp && slot+2*word >= f.CFA && slot < f.CFA; slot -= word {
		to, err := machine.ReadAddr(w, w.Arch, slot)
		if err != nil || !s.Contains(to) || to == s.Start {
			continue
		}
		if called, err := w.callEndsAt(to); err == nil && !called {
			return true
		}
	}
	return false
}

// leadsAbove returns a function that reports whether a return address in a slot leads on. regs are the registers of the caller of f.
func (w *walk) leadsAbove(f *Frame, regs *machine.Registers) func(slot, pc machine.Addr) bool {
	return func(slot, pc machine.Addr) bool {
		at := regs.Clone()
		at.SetUint(w.Arch.PC, uint64(pc))
		at.SetUint(w.Arch.SP, uint64(slot)+uint64(w.Arch.Pointer))
		return w.leadsOn(f, caller{pc: pc, regs: at, rule: FromCFI}, slot+1)
	}
}

// goesOn reports whether frames of the thread lie on the stack above the CFA of f, or on another stack, of which a word there is the stack
// pointer at the entry of code that has switched stacks. regs are the registers of the caller of f.
func (w *walk) goesOn(f *Frame, regs *machine.Registers) bool {
	if w.looking {
		return false
	}
	leads := w.leadsAbove(f, regs)
	word := machine.Addr(w.Arch.Pointer)
	for at := f.CFA; at < f.CFA+maxBaseWords*word; at += word {
		slot, err := machine.ReadAddr(w, w.Arch, at)
		if err != nil || slot%word != 0 || w.Executable(slot) {
			continue
		}
		pc, err := machine.ReadAddr(w, w.Arch, slot)
		if err != nil || pc == 0 || !w.Executable(pc-1) {
			continue
		}
		if called, err := w.callEndsAt(pc); err == nil && called && leads(slot, pc) {
			return true
		}
	}
	return w.goesOnAbove(f, leads)
}

// goesOnAbove reports whether a word above the CFA of f is a return address that leads on.
func (w *walk) goesOnAbove(f *Frame, leads func(slot, pc machine.Addr) bool) bool {
	goesOn := false
	words := 0
	_ = w.eachReturn(f.CFA, func(slot, pc machine.Addr) bool {
		if words++; words > maxBaseWords || slot-f.CFA > maxAboveBase {
			return false
		}
		goesOn = leads(slot, pc)
		return !goesOn
	})
	return goesOn
}

// leadsOn reports whether CFI alone leads from the caller c of f, whose frame lies above an address, to an outermost frame or through leadingOn
// frames, of which the last may return to no call.
func (w *walk) leadsOn(f *Frame, c caller, above machine.Addr) bool {
	look := walk{Unwinder: w.Unwinder, frames: []Frame{*f}, floor: above, looking: true}
	for n := range maxAhead {
		to := look.enter(c)
		s, err := to.code.cfi(to.lookup())
		if err != nil || s == nil || s.signal {
			return n >= leadingOn
		}
		next, end, err := look.apply(to, s)
		switch {
		case err != nil:
			return false
		case end != nil:
			return n+1 >= leadingOn && !end.Complete || end.Complete && s.row.Rule(s.row.ReturnAddress).Kind == cfi.RuleUndefined
		}
		c = next
	}
	return true
}
