package unwind

import (
	"slices"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// A function that never returns, such as a stub of a runtime, need not save the link register before it makes a call. Then its return address is
// stored nowhere. The unwinder finds the caller by elimination among all calls and jumps in the code of the target. It keeps those that may lead
// to the function, and whose frame and callers agree with the stack (see arm64Entered). It assumes that the code has not changed since the
// function was entered.

// lostLink reports whether a row says that the return address of f is in the link register, although f has made a call that overwrote it.
func (u *codeReader) lostLink(f *Frame, row *cfi.Row) bool {
	kind := row.Rule(row.ReturnAddress).Kind
	return u.Arch == machine.ARM64 && f.Return && row.ReturnAddress == arm64Link && (kind == cfi.RuleNone || kind == cfi.RuleSameValue)
}

// linkStep returns the step from f to its caller and the start of its function, if f has lost the link register; otherwise nil. from is the start
// of the function, used if neither CFI nor a symbol gives it.
func (u *codeReader) linkStep(f *Frame, from machine.Addr) (s *step, start machine.Addr) {
	if u.Arch != machine.ARM64 || !f.Return {
		return nil, 0
	}
	at := *f
	at.Overwritten, at.code = nil, u.Finder.Code(f.PC-1)
	switch s, err := at.code.cfi(at.lookup()); {
	case err != nil || s != nil && (s.signal || !u.lostLink(&at, s.row)):
		return nil, 0
	case s != nil:
		return s, s.Start
	}
	if at.code.Functions != nil {
		if known, _ := at.code.Functions.Function(at.lookup()); known != 0 {
			from = known
		}
	}
	if from == 0 {
		return nil, 0
	}
	m := u.arm64.read(from).at(&at)
	if m == nil {
		return nil, 0
	}
	row, err := m.row(f.PC, true)
	if err != nil || !u.lostLink(&at, row) {
		return nil, 0
	}
	return u.fromRow(&at, row), from
}

// byCall finds the caller of f, which has lost the link register. Exactly one call must be known to lead to the function of f and agree with the
// stack. The caller is a guess if a call through a register may have led there as well. unsearched is the reason why the search for the call was
// not completed, or nil.
func (w *walk) byCall(f *Frame) (c caller, found bool, unsearched error) {
	s, start := w.linkStep(f, 0)
	if s == nil || f.Overwritten != nil || f.ambiguous || f.undecided != nil {
		return caller{}, false, nil
	}
	in := w.arm64Entered(f, s, start, w.floor)
	pc, certain := in.likely()
	if pc == 0 || !w.isCall(pc) {
		return caller{}, false, in.unsearched
	}
	by := *s
	by.rule = FromCode // CFI alone did not find the caller
	f.CFA, _ = w.cfa(f.Registers, s.row.CFA)
	f.NoCFA, w.floor = "", f.CFA
	if !certain {
		by.guess, by.kind = guessedLink+in.others(), guessedLink
	}
	return w.atCall(f, &by, pc), true, nil
}

// guessedLink is the beginning of the guess of a caller that was found by the only direct call which agrees with the stack.
const guessedLink = "frame #%d has lost the link register, and "

// atCall returns the registers of the caller of f at its call that returns to pc.
func (t trial) atCall(f *Frame, s *step, pc machine.Addr) caller {
	c := t.caller(f, s, pc)
	c.regs.SetUint(arm64Link, uint64(pc))
	return c
}

// isCall reports whether the branch that ends at pc is a call.
func (u *codeReader) isCall(pc machine.Addr) bool {
	called, err := u.callEndsAt(pc)
	return err == nil && called
}

// within reports whether an instruction that ends at an address is in one of the ranges.
func within(ranges []machine.Range, end machine.Addr) bool {
	return slices.ContainsFunc(ranges, func(r machine.Range) bool { return end > r.Start && end <= r.End })
}
