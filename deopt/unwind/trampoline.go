package unwind

import (
	"bytes"
)

// trampoline returns the step from a signal trampoline that is told by its instructions, or
// nil. Where its CFI says nothing of it, as in Go's and musl's, the handler's return address is
// all that leads to it.
func (w *walk) trampoline(f *Frame) *step {
	for _, t := range w.Arch.Trampolines {
		code := make([]byte, len(t.Code))
		if w.Memory.ReadMemory(code, f.PC) != nil || !bytes.Equal(code, t.Code) {
			continue
		}
		row := &Row{Start: f.PC, End: f.PC + 1, ReturnAddress: w.Arch.PC}
		for reg, at := range t.Saved {
			rule := RegisterRule{Kind: RuleExpression, Expression: plusRegister(w.Arch.SP, at)}
			if reg == w.Arch.SP {
				// The CFA of a signal frame is the stack pointer of what the signal interrupted.
				row.CFA = CFARule{Kind: CFAExpression, Expression: plusRegister(w.Arch.SP, at, opDeref)}
			}
			row.columns.set(reg, rule)
		}
		return &step{row: row, rule: FromTrampoline, signal: true}
	}
	return nil
}
