package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// StackPlace is an address in the frames of one function, relative to a value that is constant in the body of the function. That is the CFA or, on
// x86-64, the stack pointer after the prologue has rounded it down. Two places are equal if they are the same address in every frame.
type StackPlace struct {
	Offset int64 // from the CFA, unless the place is relative to a rounded stack pointer
	// aligned is the place if it is relative to the rounded stack pointer (x86-64).
	aligned origin
	start   machine.Addr // start of the function whose instructions were read
}

// String returns the place as a sum, such as CFA-24.
func (p StackPlace) String() string {
	if p.aligned.kind != unknownOrigin {
		return fmt.Sprintf("aligned sp%+d", p.aligned.add)
	}
	return fmt.Sprintf("CFA%+d", p.Offset)
}

// Near returns the distance in bytes from other to p, if it is known.
func (p StackPlace) Near(other StackPlace) (bytes int64, known bool) {
	if p.aligned.kind != unknownOrigin || other.aligned.kind != unknownOrigin {
		bytes, known = p.aligned.from(other.aligned)
		return bytes, known && p.start == other.start
	}
	return p.Offset - other.Offset, true
}

// StackPlaceOf returns the place of the address offset bytes above a register at pc. returned means that pc is a return address.
func (u *Unwinder) StackPlaceOf(code *Code, pc machine.Addr, returned bool, reg machine.DWARFReg, offset int64) (StackPlace, error) {
	f := &Frame{PC: pc, Return: returned, code: code}
	s, err := code.cfi(f.lookup())
	if err != nil {
		return StackPlace{}, err
	}
	if s != nil && !s.signal && s.row.CFA.Kind == cfi.CFARegister && s.row.CFA.Register == reg {
		return StackPlace{Offset: offset - s.row.CFA.Offset}, nil
	}
	switch u.Arch {
	case machine.AMD64:
		return u.readPlace(f, reg, offset)
	case machine.ARM64:
		return u.arm64Place(f, reg, offset)
	}
	return StackPlace{}, fmt.Errorf("how far %s is from the CFA is not known", u.Arch.RegisterName(reg))
}

// readPlace does the work of StackPlaceOf by x86-64 instructions.
func (u *Unwinder) readPlace(f *Frame, reg machine.DWARFReg, offset int64) (StackPlace, error) {
	m, start, err := u.momentOf(f)
	if err != nil {
		return StackPlace{}, err
	}
	if int(reg) >= len(m.regs) {
		return StackPlace{}, fmt.Errorf("%s is not a general register", u.Arch.RegisterName(reg))
	}
	at := m.regs[reg].plus(offset)
	if n, ok := at.from(initially(machine.AMD64.SP)); ok {
		return StackPlace{Offset: n - int64(u.Arch.Pointer)}, nil
	}
	if at.kind == fromAligned {
		return StackPlace{aligned: at, start: start}, nil
	}
	return StackPlace{}, frame.Errorf("the code does not give the distance of %s from the CFA at %v", u.Arch.RegisterName(reg), f.PC)
}

// momentOf returns the moment at the place of f, and the start of its function.
func (u *Unwinder) momentOf(f *Frame) (moment, machine.Addr, error) {
	if f.code.Functions == nil {
		return moment{}, 0, errors.New("the start of its function is not known")
	}
	start, end := f.code.Functions.Function(f.lookup())
	if start == 0 {
		return moment{}, 0, errors.New("the start of its function is not known")
	}
	if end <= f.lookup() {
		end = start + maxFunctionBytes
	}
	w := newWalk(u)
	rows, err := w.readFunction(f, start, end)
	if err != nil {
		return moment{}, 0, err
	}
	m, _, _, err := rows.moment(f.PC, f.Return)
	return m, start, err
}

// arm64Place does the work of StackPlaceOf by arm64 instructions.
func (u *Unwinder) arm64Place(f *Frame, reg machine.DWARFReg, offset int64) (StackPlace, error) {
	if f.code.Functions == nil || int(reg) > arm64SP {
		return StackPlace{}, errors.New("the start of its function is not known")
	}
	start, _ := f.code.Functions.Function(f.lookup())
	if start == 0 {
		return StackPlace{}, errors.New("the start of its function is not known")
	}
	m := u.arm64Function(start).at(f)
	if m == nil {
		return StackPlace{}, frame.Errorf("the instructions of its function do not lead to %v", f.PC)
	}
	n, ok := m.regs[reg].fromSP()
	if !ok {
		return StackPlace{}, frame.Errorf("the code does not give the distance of %s from the CFA at %v", u.Arch.RegisterName(reg), f.PC)
	}
	return StackPlace{Offset: n + offset}, nil
}

// AddressIn returns the address of a place in a frame. The frame must have been unwound by CFI or by instructions, because its CFA is not certain
// otherwise.
func (u *Unwinder) AddressIn(f *Frame, p StackPlace) (machine.Addr, error) {
	switch rule := f.Left().Rule; {
	case f.Overwritten != nil || f.Undecided() || f.code == nil:
		return 0, errors.New("the frame is in code that was written over its function's, or that other code jumps to")
	case f.NoCFA != "":
		return 0, frame.Because(frame.CFAUnknown, frame.Errorf("the frame has no CFA: %w", f.WhyNoCFA()))
	case rule != FromCFI && rule != FromCode:
		return 0, fmt.Errorf("the CFA of the frame is not certain: it was left by %s", rule.means())
	case p.aligned.kind == unknownOrigin:
		return f.CFA + machine.Addr(p.Offset), nil
	}
	m, start, err := u.momentOf(f)
	if err != nil {
		return 0, err
	}
	reg, offset, ok := m.reach(p.aligned)
	if !ok || start != p.start {
		return 0, errors.New("no register leads there: the stack pointer is not aligned yet, or not any more")
	}
	base, err := f.Registers.Addr(reg)
	return base + machine.Addr(offset), err
}
