package unwind

import (
	"errors"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

var errNoOwner = errors.New("no function on its stack has the frame pointer")

// byOwner finds the return address of a frame that does not change the frame pointer, such as that of a stub or of a small function of a JIT. It
// uses the outer function that owns the frame pointer. The instructions of that function show the distance from its frame pointer to its stack
// pointer at a call, and the call pushes the return address there. This must be the first word on the stack that is the address after a call: an
// earlier such word may belong to another frame.
//
// A word left over from an earlier call is rejected if the call before it names another function, if the outer function may keep something else in
// the register, or if the call that returns to the frame pointer's return address does not call the outer function. If the outer function cannot be
// read from its start, the result is a guess.
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
		o := &Frame{PC: pc, Return: true, code: w.Finder.Code(pc - 1)}
		n, sure, ok := w.belowFramePointer(o)
		if !ok || slot+machine.Addr(word+n) != base || !w.mayCall(pc, f) || !w.ownerCalled(o, base) {
			return false
		}
		row := w.pushedRow(f.PC, int64(slot-sp)+word)
		row.SetRule(w.Arch.FP, cfi.RegisterRule{Kind: cfi.RuleSameValue})
		proof = &step{row: row, rule: FromFramePointer, partial: true}
		if !sure {
			proof.guess = "frame #%d was left by the frame pointer of its caller, whose code may keep something else in that register"
		}
		return false
	})
	if proof == nil {
		return c, nil, errNoOwner
	}
	return w.prove(f, proof)
}

// mayCall reports whether the call that returns to pc may have led to f: through a register or memory, or directly to its function or to stubs.
func (u *codeReader) mayCall(pc machine.Addr, f *Frame) bool {
	fit, _ := u.fits(pc, f)
	return fit != fitsNot && fit != fitsPerhaps
}

// ownerCalled reports whether the return address just above base, the frame pointer of o, follows a call that may have called the function of o.
func (t trial) ownerCalled(o *Frame, base machine.Addr) bool {
	pc, err := machine.ReadAddr(t.memory, t.Arch, base+machine.Addr(t.Arch.Chain.Return))
	if err != nil {
		return false
	}
	how, _ := t.fits(pc, o)
	return how != fitsNot
}

// belowFramePointer returns the distance from the frame pointer down to the stack pointer at the call of the frame o, by the instructions of its
// function. ok is false if they do not show it, and sure is false if the function may keep something else in the register there.
func (u *codeReader) belowFramePointer(o *Frame) (n int64, sure, ok bool) {
	s, _ := u.fromFunction(o)
	if s == nil {
		s, _ = u.fromReturn(o)
	} else if sure = u.keepsFramePointer(o); !sure {
		return 0, false, false
	}
	// A frame pointer points to the caller's frame pointer, which was pushed just below the return address.
	saved := cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -2 * int64(u.Arch.Pointer)}
	if s == nil || s.guess != "" || s.row.CFA.Kind != cfi.CFARegister || s.row.CFA.Register != u.Arch.SP || s.row.Rule(u.Arch.FP) != saved {
		return 0, false, false
	}
	return s.row.CFA.Offset + saved.Offset, sure, true
}

// keepsFramePointer reports whether the frame pointer register holds the frame's own frame pointer at its pending call. The function must have
// pushed the caller's frame pointer first, and the register must point to it.
func (u *codeReader) keepsFramePointer(o *Frame) bool {
	start, end := o.code.Functions.Function(o.lookup())
	if end <= o.lookup() {
		end = start + maxFunctionBytes
	}
	rows, err := u.readFunction(o, start, end)
	if err != nil {
		return false
	}
	m, _, _, err := rows.moment(o.PC, true)
	if err != nil {
		return false
	}
	n, known := m.regs[u.Arch.FP].from(initially(u.Arch.SP))
	return known && n == -int64(u.Arch.Pointer)
}
