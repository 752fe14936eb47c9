package unwind

import "example.com/reframe/internal/machine"

// maxAbove bounds the frames that are examined above an assumed one.
const maxAbove = 5

// arm64Above rates how well the stack agrees with an assumed frame: at is a place of its function, and s the CFI there. In the frame and in those
// above it, the stack pointer and the frame pointer must be where the code puts them, and the return addresses must follow calls that may lead to the
// functions. The frame is proven if it is linked by the frame pointer and the call to its function names it. A function entered through a pointer is
// not proven: another one with a similar frame may have been entered there.
func (w *walk) arm64Above(at Frame, s *step) evidence {
	for level := range maxAbove {
		links, ok := w.arm64Placed(&at, s)
		if !ok {
			return excluded
		}
		at.CFA, _ = w.cfa(at.Registers, s.row.CFA)
		pc, err := w.returnAddress(&at, s.row)
		if err != nil || pc == 0 {
			return plausible
		}
		if pc, err = w.called(pc, false); err != nil {
			return excluded
		}
		switch to := w.arm64Callee(pc, s.Start); {
		case to == callsAnother:
			return excluded
		case to == callsIt && level == 0 && links && w.arm64Target(pc) == s.Start:
			return proven
		case to == callsIt:
			return plausible
		}
		next := Frame{Index: at.Index + 1, PC: pc, Return: true, Registers: w.caller(&at, s, pc).regs, code: w.Finder.Code(pc - 1)}
		if s, err = next.code.cfi(pc - 1); err != nil || s == nil || s.signal || w.Overwritten != nil && len(w.Overwritten(&next, nil)) > 0 {
			return plausible
		}
		at = next
	}
	return plausible
}

// arm64Placed reports whether the stack pointer and the frame pointer of a frame have the distance from its CFA that its instructions and its stack
// map give. links is set if the frame has a frame pointer, and both distances are known and agree.
func (w *walk) arm64Placed(f *Frame, s *step) (links, ok bool) {
	cfa, err := w.cfa(f.Registers, s.row.CFA)
	sp, errSP := f.Registers.Addr(w.Arch.SP)
	if err != nil || errSP != nil || cfa <= sp {
		return false, false
	}
	if f.code.Functions != nil {
		if size, sized := f.code.Functions.FrameSize(f.lookup()); sized && (size > maxFrame || sp+machine.Addr(size) != cfa) {
			return false, false
		}
	}
	m := w.arm64Read(s.Start).at(f)
	if m == nil {
		return false, true
	}
	below, known := m.regs[arm64SP].fromSP()
	if known && cfa+machine.Addr(below) != sp {
		return false, false
	}
	if by, keeps := m.regs[arm64FP].fromSP(); keeps {
		fp, err := f.Registers.Addr(arm64FP)
		return known && err == nil, err != nil || cfa+machine.Addr(by) == fp
	}
	return false, true
}

// arm64Read does the same as arm64Function and caches the result for this walk.
func (w *walk) arm64Read(start machine.Addr) *ARM64Course {
	c := w.courses[start]
	if c == nil {
		if w.courses == nil {
			w.courses = map[machine.Addr]*ARM64Course{}
		}
		if c = w.arm64Function(start); len(w.courses) < maxRead {
			w.courses[start] = c
		}
	}
	return c
}
