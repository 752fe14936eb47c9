package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// maxAbove bounds the frames that are examined above an assumed one.
const maxAbove = 5

// arm64Above grades how well the stack agrees with a frame whose registers are assumed: at is a place of its function, and s the CFI there. In the
// frame and in those above it, the stack pointer and the callee-saved registers must have what the code has put there, and the return addresses must
// follow calls that may lead to the functions.
func (t trial) arm64Above(at Frame, s *step) evidence {
	first, from := at, s
	for level := range maxAbove {
		if !t.arm64Sized(&at, s) || level > 0 && !t.arm64Placed(&at, s) {
			return excluded
		}
		at.CFA, _ = t.cfa(at.Registers, s.row.CFA)
		pc, err := t.returnAddress(&at, s.row)
		if err != nil || pc == 0 {
			break
		}
		if pc, err = t.called(pc, false); err != nil {
			return excluded
		}
		to := t.arm64.callee(pc, s.Start)
		if to == callsAnother {
			return excluded
		}
		if to == callsIt && level > 0 {
			break
		}
		next := Frame{Index: at.Index + 1, PC: pc, Return: true, Registers: t.caller(&at, s, pc).regs, code: t.Finder.Code(pc - 1)}
		if s, err = next.code.cfi(pc - 1); err != nil || s == nil || s.signal || t.Overwritten != nil && len(t.Overwritten(&next, nil)) > 0 {
			break
		}
		at = next
	}
	if !t.arm64Placed(&first, from) { // last, because it reads the whole function
		return excluded
	}
	return plausible
}

// arm64Sized reports whether the stack pointer of a frame has the distance from its CFA that its stack map gives, if there is one.
func (t trial) arm64Sized(f *Frame, s *step) bool {
	cfa, err := t.cfa(f.Registers, s.row.CFA)
	sp, errSP := f.Registers.Addr(t.Arch.SP)
	if err != nil || errSP != nil || cfa <= sp {
		return false
	}
	if f.code.Functions == nil {
		return true
	}
	size, sized := f.code.Functions.FrameSize(f.lookup())
	return !sized || size <= maxFrame && sp+machine.Addr(size) == cfa
}

// arm64Placed reports whether the registers of a frame have what its instructions have put there: the stack pointer its distance from the CFA, and the
// callee-saved registers their numbers and addresses on the stack. It is true if they are unknown, or if there may be other paths through the function.
func (t trial) arm64Placed(f *Frame, s *step) bool {
	cfa, err := t.cfa(f.Registers, s.row.CFA)
	sp, errSP := f.Registers.Addr(t.Arch.SP)
	if err != nil || errSP != nil {
		return false
	}
	course := t.arm64.read(s.Start)
	m := course.at(f)
	if m == nil || course.partial || entersInside(s) {
		return true
	}
	if below, known := m.regs[arm64SP].fromSP(); known && cfa+machine.Addr(below) != sp {
		return false
	}
	return t.arm64Holds(f, m, cfa)
}

// entersInside reports whether the code of a step may be entered elsewhere than at its start: at a landing pad, or as the part of a function that has
// its own FDE, to which the other part jumps. Such a part often begins with a frame.
func entersInside(s *step) bool {
	if s.fde == nil {
		return false
	}
	first, err := s.fde.Rules(s.Start)
	return err != nil || s.fde.Pads() || first.CFA.Kind != cfi.CFARegister || first.CFA.Register != arm64SP || first.CFA.Offset != 0
}

// arm64Holds reports whether the callee-saved registers of a frame have the numbers and the addresses on its stack that its instructions have put
// there, are zero in the upper half after an instruction of 32 bits, and are addresses of a process if its instructions have accessed memory there.
func (t trial) arm64Holds(f *Frame, m *ARM64Moment, cfa machine.Addr) bool {
	const first = 19 // AAPCS64, "General-purpose Registers"
	for n := uint8(first); n <= arm64FP; n++ {
		has, err := f.Registers.Addr(machine.DWARFReg(n))
		if err != nil {
			continue
		}
		if by, onStack := m.regs[n].fromSP(); onStack && cfa+machine.Addr(by) != has {
			return false
		}
		if v := m.regs[n]; v.kind == arm64Number && v.reg != arm64Loaded && machine.Addr(v.n) != has {
			return false
		}
		if m.narrow.has(n) && has>>32 != 0 || m.based.has(n) && arm64Unmappable(has) {
			return false
		}
	}
	return true
}

// arm64Unmappable reports whether no process can have memory near an address: a process has at most 52 bits of addresses, and an access ignores the
// upper byte (Linux, "Memory Layout on AArch64 Linux" and "AArch64 Tagged Address ABI").
func arm64Unmappable(addr machine.Addr) bool {
	const bits, ignored = 52, 56
	at := addr & (1<<ignored - 1)
	return at >= 1<<bits+arm64Near && at < 1<<ignored-arm64Near
}
