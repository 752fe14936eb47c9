package unwind

import (
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// arm64FromFunction returns a step from the instructions of the function of f, read from its start, where a call has left the return address in the
// link register. It returns nil and the reason if the start is unknown or the instructions do not determine a step.
func (u *codeReader) arm64FromFunction(f *Frame) (*step, error) {
	if f.code.Functions == nil {
		return nil, nil
	}
	start, _ := f.code.Functions.Function(f.lookup())
	if start == 0 {
		return nil, nil
	}
	m := u.arm64Function(start).at(f)
	if m == nil {
		return nil, frame.Errorf("%s: the function at %v: its instructions do not lead to the pc", FromCode, start)
	}
	row, err := m.row(f.PC, f.Return)
	if err != nil {
		return nil, frame.Errorf("%s: the function at %v: %w", FromCode, start, err)
	}
	if row.Rule(arm64Link).Kind == cfi.RuleNone {
		return nil, frame.Errorf("%s: the function at %v: %w", FromCode, start, errLinkLost)
	}
	return u.fromRow(f, row), nil
}

// arm64Function follows the code of a function from its entry.
func (u *Unwinder) arm64Function(start machine.Addr) *ARM64Course {
	return u.CourseARM64(machine.Range{Start: start, End: start}, machine.Range{})
}

// at returns the registers and the stack at the place of f, or nil if the course does not lead there.
func (c *ARM64Course) at(f *Frame) *ARM64Moment {
	if f.Return {
		return c.Returns[f.PC]
	}
	return c.At[f.PC]
}

var (
	errLinkLost = errors.New("it has not saved the link register, and has made a call")
	errMovedSP  = errors.New("the distance of its stack pointer from the first one is not known")
)

// row returns the rules at a moment. The CFA is the stack pointer at the start of the course. There is no rule for the link register if its value is
// lost.
func (m *ARM64Moment) row(pc machine.Addr, returned bool) (*cfi.Row, error) {
	row := &cfi.Row{Range: machine.Range{Start: pc, End: pc + 1}, ReturnAddress: arm64Link}
	for n := len(m.regs) - 1; n >= 19 && row.CFA.Kind != cfi.CFARegister; n-- {
		if by, of := m.regs[n].fromSP(); of && n != arm64Link {
			row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: machine.DWARFReg(n), Offset: -by}
		}
	}
	if row.CFA.Kind != cfi.CFARegister {
		return nil, errMovedSP
	}
	for n := uint8(19); n <= arm64Link; n++ {
		initial := arm64Value{arm64Initial, n, 0}
		if m.regs[n] == initial && !(n == arm64Link && returned) {
			row.SetRule(machine.DWARFReg(n), cfi.RegisterRule{Kind: cfi.RuleSameValue})
		} else if slot, ok := m.slotOf(initial); ok {
			row.SetRule(machine.DWARFReg(n), cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: slot})
		}
	}
	return row, nil
}

// slotOf returns the lowest slot with a value.
func (m *ARM64Moment) slotOf(v arm64Value) (slot int64, ok bool) {
	for at, has := range m.slots {
		if has == v && (!ok || at < slot) {
			slot, ok = at, true
		}
	}
	return slot, ok
}
