package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// maxAbove bounds the frames that are examined above an assumed one.
const maxAbove = 5

// arm64Above grades how well the stack agrees with a frame whose registers are assumed: at is a place of its function, and s the CFI there. In
// that frame and in the frames above it, the stack pointer and the callee-saved registers must have the values that the code has put there. The
// return addresses must follow calls that may lead to the functions.
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
	if !t.arm64Placed(&first, from) { // this check is last, because it reads the whole function
		return excluded
	}
	return plausible
}

// arm64Sized reports whether the stack pointer of a frame has the distance from its CFA that the stack map of its function gives. It returns true if
// the function has no stack map.
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

// arm64Placed reports whether the registers of a frame have the values that its instructions have put there. The stack pointer must be at its
// distance from the CFA, and the callee-saved registers must hold the numbers and stack addresses that were loaded. arm64Placed returns true if
// these values are unknown, or if the function may have other paths.
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

// entersInside reports whether the code of a step may be entered at another place than its start. That is a landing pad, or any place in a part
// of a function that has an FDE of its own, because the other part may jump there. Such a part often begins with a frame.
func entersInside(s *step) bool {
	if s.fde == nil {
		return false
	}
	first, err := s.fde.Rules(s.Start)
	return err != nil || s.fde.Pads() || first.CFA.Kind != cfi.CFARegister || first.CFA.Register != arm64SP || first.CFA.Offset != 0
}

// arm64Holds reports whether the callee-saved registers of a frame agree with its instructions. A register must have the number or the stack
// address that was put there. Its upper half must be zero after an instruction of 32 bits. If an instruction has accessed memory through it, it
// must be a possible address of a process.
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
