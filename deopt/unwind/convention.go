package unwind

import (
	"fmt"

	"reframe/deopt/machine"
	"reframe/deopt/unwind/cfi"
)

// Convention is which registers a function of another calling convention than C's keeps.
type Convention struct {
	Name string
	// Keeps are general registers that C's functions need not keep.
	Keeps []machine.DWARFReg
	// Vectors are vector registers whose first bytes it keeps: as many as unwind information says of them where they were saved.
	Vectors []machine.DWARFReg
	// Loses are registers that C's functions keep.
	Loses []machine.DWARFReg
}

// conventional gives f the registers that the function it called keeps, by the convention of that, and takes those away which it does not. Only
// a function with call frame information is believed: it saves what it changes, and says where.
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
