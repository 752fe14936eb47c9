package unwind

import (
	"bytes"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// trampoline returns the step from a signal trampoline that is recognized by its instructions, or nil. If it has no CFI, as in Go's and musl's,
// only the handler's return address leads to it.
func (w *walk) trampoline(pc machine.Addr) *step {
	for _, t := range w.Arch.Trampolines {
		code := make([]byte, len(t.Code))
		if w.Memory.ReadMemory(code, pc) != nil || !bytes.Equal(code, t.Code) {
			continue
		}
		row := &cfi.Row{Range: machine.Range{Start: pc, End: pc + 1}, ReturnAddress: w.Arch.PC}
		for reg, at := range t.Saved {
			rule := cfi.RegisterRule{Kind: cfi.RuleValExpression, Expression: cfi.RegisterPlus(w.Arch.SP, at).Deref()}
			if reg == w.Arch.SP {
				// The CFA of a signal frame is the stack pointer of what the signal interrupted.
				row.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expression: cfi.RegisterPlus(w.Arch.SP, at).Deref()}
			}
			row.SetRule(reg, rule)
		}
		return &step{row: row, rule: FromTrampoline, signal: true}
	}
	return nil
}

// givesBack reports whether pc is the start of a signal trampoline, which the kernel gives to the
// handler as its return address.
func (w *walk) givesBack(pc machine.Addr) bool {
	if w.trampoline(pc) != nil {
		return true
	}
	s, err := w.Finder.Code(pc - 1).cfi(pc - 1) // such an FDE starts a byte early, for unwinders that look up pc-1
	return err == nil && s != nil && s.signal
}
