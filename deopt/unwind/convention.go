package unwind

import (
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Convention lists the differences between the callee-saved registers of another calling convention and those of C's.
type Convention struct {
	Name string
	// Keeps lists general registers that this convention preserves and C's does not.
	Keeps []machine.DWARFReg
	// Vectors lists vector registers of which this convention preserves the bytes that unwind information can restore.
	Vectors []machine.DWARFReg
	// Loses lists registers that C's convention preserves and this one does not.
	Loses []machine.DWARFReg
}

// conventional adds the registers to f that the function it called preserves by its convention, and removes those that the function does not
// preserve. It trusts only functions with call frame information: they save what they change, and describe where.
func (w *walk) conventional(callee, f *Frame) {
	s := callee.left
	if w.Conventions == nil || s == nil || s.signal {
		return
	}
	c := w.Conventions(callee, f)
	if c == nil {
		return
	}
	for _, reg := range c.Loses {
		if s.row.Rule(reg).Kind == cfi.RuleNone {
			f.Registers.Forget(reg, frame.Because(frame.Convention, c.Name, callee.Index, w.Arch.RegisterName(reg)))
		}
	}
	if s.rule != FromCFI || s.partial || s.guess != "" || f.Guess != "" {
		return
	}
	for _, reg := range c.Keeps {
		if s.row.Rule(reg).Kind != cfi.RuleNone { // restored by its rule
			continue
		}
		if v, err := callee.Registers.Uint(reg); err != nil {
			f.Registers.Forget(reg, err)
		} else {
			f.Registers.SetUint(reg, v)
		}
	}
	for _, reg := range c.Vectors {
		if s.row.Rule(reg).Kind != cfi.RuleNone {
			continue
		}
		if b, err := callee.Registers.Bytes(reg); err != nil {
			f.Registers.Forget(reg, err)
		} else {
			f.Registers.Set(reg, b[:min(len(b), w.savedSize(reg))])
		}
	}
}
