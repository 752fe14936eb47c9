package unwind

import (
	"reframe/deopt/isa/amd64"
	"reframe/deopt/machine"
	"reframe/deopt/unwind/cfi"
)

// maxUnsaved bounds how much code of a function is looked at; a longer one that saves nothing is believed to change everything.
const maxUnsaved = 64 << 10

// unsavedBy finds the registers that C's functions keep, which the code of a function changes though its CFI never says where it saved
// them. Conventions have such functions: ghccc, hhvmcc, preserve_nonecc, and cxx_fast_tlscc where it does not unwind. Nothing but a module
// tells their convention, but the code tells what it changes.
func (w *walk) unsavedBy(code *Code, pc machine.Addr, s *step) (unsaved []machine.DWARFReg) {
	if w.Arch != machine.AMD64 || s.signal || s.partial {
		return nil
	}
	fde, err := code.Table.Find(pc)
	if err != nil {
		return nil
	}
	var silent amd64.Set
	for _, reg := range w.Arch.Registers() {
		if reg != w.Arch.SP && reg != w.Arch.PC && reg < 16 && w.Arch.Kept(reg) > 0 && s.row.Rule(reg).Kind == cfi.RuleNone && !fde.Names(reg) {
			silent |= amd64.Of(reg)
		}
	}
	if silent == 0 {
		return nil
	}
	if size := s.end - s.start; size <= maxUnsaved {
		text := make([]byte, size)
		if w.Memory.ReadMemory(text, s.start) != nil {
			return nil // a core without its program: there is nothing to say that it is not C's convention
		}
		silent &= amd64.Clobbers(text)
	}
	for reg := machine.DWARFReg(0); reg < 16; reg++ {
		if silent.Has(reg) {
			unsaved = append(unsaved, reg)
		}
	}
	return unsaved
}
