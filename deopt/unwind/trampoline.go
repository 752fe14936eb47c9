package unwind

import (
	"bytes"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// trampoline returns the step from a signal trampoline that is recognized by its instructions, or nil. Trampolines without CFI, such as those of Go
// and musl, are reached only through the handler's return address.
func (u *codeReader) trampoline(pc machine.Addr) *step {
	for _, t := range u.Arch.Trampolines {
		code := make([]byte, len(t.Code))
		if u.Memory.ReadMemory(code, pc) != nil || !bytes.Equal(code, t.Code) {
			continue
		}
		row := &cfi.Row{Range: machine.Range{Start: pc, End: pc + 1}, ReturnAddress: u.Arch.PC}
		for reg, at := range t.Saved {
			rule := cfi.RegisterRule{Kind: cfi.RuleValExpression, Expression: cfi.RegisterPlus(u.Arch.SP, at).Deref()}
			if reg == u.Arch.SP {
				// The CFA of a signal frame is the interrupted stack pointer.
				row.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expression: cfi.RegisterPlus(u.Arch.SP, at).Deref()}
			}
			row.SetRule(reg, rule)
		}
		return &step{row: row, rule: FromTrampoline, signal: true}
	}
	return nil
}

// isSignalReturn reports whether pc is the start of a signal trampoline: the kernel makes it the return address of a signal handler.
func (u *codeReader) isSignalReturn(pc machine.Addr) bool {
	if u.trampoline(pc) != nil {
		return true
	}
	s, err := u.Finder.Code(pc - 1).cfi(pc - 1) // the FDE of a trampoline starts a byte early, for unwinders that look up pc-1
	return err == nil && s != nil && s.signal
}
