package unwind

import "example.com/reframe/internal/machine"

// returnedByCode reports whether f, in code without CFI, was entered by a return to an address of its function that follows no call: a runtime
// has overwritten a return address. The evidence: the instructions of the function give the place of its return address, and the word below it
// still holds the address in the function. A return would have popped that word.
func (w *walk) returnedByCode(f *Frame, way *way) (to machine.Addr, returned bool) {
	if w.Arch != machine.AMD64 || w.looking || f.code.Functions == nil {
		return 0, false
	}
	start, end := f.code.Functions.Function(f.lookup())
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err != nil || start == 0 {
		return 0, false
	}
	for n := range way.other {
		s := &way.other[n]
		if s.rule != FromCode || s.guess != "" || s.switched {
			continue
		}
		cfa, err := w.cfa(f.Registers, s.row.CFA)
		slot := cfa - 2*machine.Addr(w.Arch.Pointer)
		if err != nil || slot < sp || slot > cfa {
			continue
		}
		to, err := machine.ReadAddr(w, w.Arch, slot)
		if err != nil || to < start || to >= end {
			continue
		}
		if called, err := w.callEndsAt(to); err == nil && !called {
			return to, true
		}
	}
	return 0, false
}
