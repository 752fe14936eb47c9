package unwind

import (
	"fmt"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Convention lists how the callee-saved registers of another calling convention differ from C's.
type Convention struct {
	Name string
	// Keeps are general registers that this convention preserves and C's does not.
	Keeps []machine.DWARFReg
	// Vectors are vector registers of which it preserves the first bytes, as many as unwind information restores of a saved one.
	Vectors []machine.DWARFReg
	// Loses are registers that C's convention preserves and this one does not.
	Loses []machine.DWARFReg
}

// conventional gives f the registers that the function it called preserves by its convention, and removes those which it does not preserve. It
// trusts only functions with call frame information: those save what they change, and describe where.
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
			f.Registers.Forget(reg, fmt.Sprintf("a function of %s, as frame #%d, does not keep %s", c.Name, callee.Index, w.Arch.RegisterName(reg)))
		}
	}
	if s.rule != FromCFI || s.partial || s.guess != "" || f.Guess != "" {
		return
	}
	for _, reg := range c.Keeps {
		if s.row.Rule(reg).Kind != cfi.RuleNone { // restored as any other
			continue
		}
		if v, err := callee.Registers.Uint(reg); err != nil {
			f.Registers.Forget(reg, err.Error())
		} else {
			f.Registers.SetUint(reg, v)
		}
	}
	for _, reg := range c.Vectors {
		if s.row.Rule(reg).Kind != cfi.RuleNone {
			continue
		}
		if b, err := callee.Registers.Bytes(reg); err != nil {
			f.Registers.Forget(reg, err.Error())
		} else {
			f.Registers.Set(reg, b[:min(len(b), w.savedSize(reg))])
		}
	}
}
