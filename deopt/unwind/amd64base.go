package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Bounds of the search for frames above a frame whose return address looks like the base of a stack.
const (
	maxAboveBase    = 4 << 10 // bytes
	maxBaseWords    = 16      // return addresses to try, and words that may point to another stack
	continuedFrames = 2       // number of frames that CFI must find
)

// overwrittenReturn reports whether a runtime has overwritten the return address of f with pc. Then pc looks like the base of a stack, as
// runtimes make it (see isStackBase), but frames of the thread continue above f. It returns false for Go's code: Go's stacks are adjacent, so
// frames above f may be on another stack.
func (w *walk) overwrittenReturn(f *Frame, s *step, pc machine.Addr) bool {
	if called, err := w.callEndsAt(pc); err != nil || called || !w.isStackBase(pc) || w.Finder.Code(pc-1).NoneKept {
		return false
	}
	return w.stackContinues(f, w.caller(f, s, pc).regs)
}

// enteredByOverwrittenReturn reports whether a runtime has overwritten the return address by which f was entered, although the CFI of f says that
// it has no caller. The evidence: the written address is still on the stack, and other frames are above it. The first function of a coroutine has
// no such word below its CFA, even if other frames are above its stack. It returns false for Go's code, for the same reason as overwrittenReturn.
func (w *walk) enteredByOverwrittenReturn(f *Frame, s *step) bool {
	if w.Arch != machine.AMD64 || w.looking || !f.Return || f.code.NoneKept || !w.returnedInto(f, s) {
		return false
	}
	at := *f
	look := w.lookAhead(&at, 0)
	look.looking = false // allow leadsAbove to look ahead from here
	return look.continuesAbove(&at, look.leadsAbove(&at, look.caller(&at, s, 0).regs))
}

// returnedInto reports whether a return has led into the middle of the function of f, to a place that follows no call. The word that holds this
// address is then just below the CFA, where a call would have left the return address. It is one word lower if the CFI counts the word as pushed
// by a call.
func (t trial) returnedInto(f *Frame, s *step) bool {
	sp, err := f.Registers.Addr(t.Arch.SP)
	if err != nil {
		return false
	}
	word := machine.Addr(t.Arch.Pointer)
	for slot := f.CFA - word; slot >= sp && slot+2*word >= f.CFA && slot < f.CFA; slot -= word {
		to, err := machine.ReadAddr(t.memory, t.Arch, slot)
		if err != nil || !s.Contains(to) || to == s.Start {
			continue
		}
		if called, err := t.callEndsAt(to); err == nil && !called {
			return true
		}
	}
	return false
}

// leadsAbove returns a function that reports whether unwinding continues from a return address in a slot. regs are the registers of the caller of f.
func (w *walk) leadsAbove(f *Frame, regs *machine.Registers) func(slot, pc machine.Addr) bool {
	return func(slot, pc machine.Addr) bool {
		at := regs.Clone()
		at.SetUint(w.Arch.PC, uint64(pc))
		at.SetUint(w.Arch.SP, uint64(slot)+uint64(w.Arch.Pointer))
		return w.cfiContinues(f, caller{pc: pc, regs: at, rule: FromCFI}, slot+1)
	}
}

// stackContinues reports whether the thread has frames further out than f: on the stack above the CFA of f, or on another stack. To find another
// stack, it follows each word just above the CFA that points to a return address. regs are the registers of the caller of f.
func (w *walk) stackContinues(f *Frame, regs *machine.Registers) bool {
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
	return w.continuesAbove(f, leads)
}

// continuesAbove reports whether a word above the CFA of f is a return address from which unwinding continues.
func (w *walk) continuesAbove(f *Frame, leads func(slot, pc machine.Addr) bool) bool {
	found := false
	words := 0
	_ = w.eachReturn(f.CFA, func(slot, pc machine.Addr) bool {
		if words++; words > maxBaseWords || slot-f.CFA > maxAboveBase {
			return false
		}
		found = leads(slot, pc)
		return !found
	})
	return found
}

// cfiContinues reports whether CFI alone unwinds from the caller c of f to an outermost frame, or through continuedFrames frames; the last of these
// may return to an address that follows no call. The CFA of each frame must exceed above.
func (w *walk) cfiContinues(f *Frame, c caller, above machine.Addr) bool {
	look := w.lookAhead(f, above)
	for n := range maxAhead {
		to := look.enter(c)
		s, err := to.code.cfi(to.lookup())
		if err != nil || s == nil || s.signal {
			return n >= continuedFrames
		}
		next, end, err := look.apply(to, s)
		switch {
		case err != nil:
			return false
		case end != nil:
			return n+1 >= continuedFrames && !end.Complete || end.Complete && s.row.Rule(s.row.ReturnAddress).Kind == cfi.RuleUndefined
		}
		c = next
	}
	return true
}
