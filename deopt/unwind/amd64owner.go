package unwind

import (
	"errors"

	"reframe/deopt/machine"
	"reframe/deopt/unwind/cfi"
)

var errNoOwner = errors.New("no function on its stack has the frame pointer")

// byOwner finds the return address of a frame that does not change the frame pointer, such as that of a stub or a small function of a JIT. It uses
// the outer function that owns the frame pointer: its instructions show how far below its frame pointer its stack pointer is at a call, and the
// call pushes the return address there. That must be the first word on the stack which follows a call: another one may belong to a frame between.
// If the call names another function, the return address is left over from that: its callee had the same place on the stack, and has returned.
func (w *walk) byOwner(f *Frame) (c caller, end *End, err error) {
	if w.Arch != machine.AMD64 {
		return c, nil, errNoOwner
	}
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err != nil {
		return c, nil, err
	}
	base, err := f.Registers.Addr(w.Arch.FP)
	if err != nil {
		return c, nil, err
	}
	word := int64(w.Arch.Pointer)
	var proof *step
	_ = w.eachReturn(sp, func(slot, pc machine.Addr) bool {
		if n, ok := w.belowFramePointer(pc); ok && slot+machine.Addr(word+n) == base && w.mayCall(pc, f) {
			row := w.pushedRow(f.PC, int64(slot-sp)+word)
			row.SetRule(w.Arch.FP, cfi.RegisterRule{Kind: cfi.RuleSameValue})
			proof = &step{row: row, rule: FromFramePointer, partial: true}
		}
		return false
	})
	if proof == nil {
		return c, nil, errNoOwner
	}
	return w.prove(f, proof)
}

// mayCall reports whether the call that returns to pc may have led to f: by a register or by memory, or
// to its function, if only by stubs.
func (w *walk) mayCall(pc machine.Addr, f *Frame) bool {
	fit, _ := w.fits(pc, f)
	return fit != fitsNot && fit != fitsPerhaps
}

// belowFramePointer returns how many bytes below its frame pointer a function has its stack pointer where a call returns to pc, according to its
// instructions; ok is false if they do not show that.
func (w *walk) belowFramePointer(pc machine.Addr) (n int64, ok bool) {
	f := &Frame{PC: pc, Return: true, code: w.Finder.Code(pc - 1)}
	s, _ := w.fromFunction(f)
	if s == nil {
		s, _ = w.fromReturn(f)
	}
	// A frame pointer points to the one that was pushed, below the return address.
	saved := cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -2 * int64(w.Arch.Pointer)}
	if s == nil || s.guess != "" || s.row.CFA.Kind != cfi.CFARegister || s.row.CFA.Register != w.Arch.SP || s.row.Rule(w.Arch.FP) != saved {
		return 0, false
	}
	return s.row.CFA.Offset + saved.Offset, true
}
