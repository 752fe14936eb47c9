package unwind

import (
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// Switch describes a function of a language's run time that runs on another stack than its caller. CFI cannot describe that.
type Switch struct {
	Kind SwitchKind
	// The registers after the return, for kind Returned. FP is valid if KnownFP is set.
	PC, SP, FP machine.Addr
	KnownFP    bool
	// Left means that the function has left its caller's stack and does not return to it. The registers belong to another frame, and the CFA of
	// the function is unknown.
	Left bool
}

// SwitchKind says how a walk continues at a [Switch].
type SwitchKind int

// The kinds of [Switch].
const (
	// FirstOnStack means that the function begins the stack of a goroutine or of a thread.
	FirstOnStack SwitchKind = iota
	// Returned means that the registers after the function's return are known.
	Returned
	// FromC means that the function is called by C's convention, although the language of its code preserves no registers.
	FromC
)

// SwitchFinder returns the [Switch] for f, or nil if the function of f does not switch stacks. A walk calls it for its frames in order, innermost
// first.
type SwitchFinder func(f *Frame) (*Switch, error)

// switchAt returns the switch of f, or nil.
func (w *walk) switchAt(f *Frame) (*Switch, error) {
	if w.Switches == nil || !f.code.NoneKept {
		return nil, nil
	}
	if w.finder == nil {
		w.finder = w.Switches(w)
	}
	return w.finder(f)
}

// acrossStacks finds the caller of f, which has switched stacks.
func (w *walk) acrossStacks(f *Frame, s *Switch) (caller, *End) {
	switch s.Kind {
	case FirstOnStack:
		return caller{}, outermost(f.Index, "its stack begins in it")
	case FromC:
		c, end, err := w.calledFromC(f)
		if err != nil {
			return caller{}, cutShort(frame.Because(frame.StackSwitch, f.Index, frame.Errorf("its caller is a function of C: %w", err)))
		}
		return c, end
	}
	pc, err := w.called(s.PC, false)
	if err != nil || pc == 0 {
		return caller{}, cutShort(frame.Because(frame.StackSwitch, f.Index, frame.Errorf("it has switched stacks: its return address would be %v, which follows no call", s.PC)))
	}
	f.switched = true
	if s.Left {
		if !w.leaveStack(s.SP) {
			return caller{}, cutShort(frame.Because(frame.StackSwitch, f.Index, errors.New("it leaves its stack for the second time: a loop")))
		}
		w.floor, f.NoCFA = s.SP, "its caller's stack does not continue here"
	} else if end := w.setCFA(f, s.SP); end != nil {
		return caller{}, end
	}
	// The row has no rule for the CFA, because the Switch gives the registers.
	c := w.caller(f, &step{row: &cfi.Row{ReturnAddress: w.Arch.PC}, rule: FromCode, partial: true}, pc)
	c.regs.SetUint(w.Arch.SP, uint64(s.SP))
	if s.KnownFP {
		c.regs.SetUint(w.Arch.FP, uint64(s.FP))
	}
	return c, nil
}

// calledFromC finds the caller of f, whose instructions save the registers that C's convention preserves. CFI, if there is any, must give the same
// CFA.
func (w *walk) calledFromC(f *Frame) (caller, *End, error) {
	start, end := machine.Addr(0), machine.Addr(0)
	if f.code.Functions != nil {
		start, end = f.code.Functions.Function(f.lookup())
	}
	if start == 0 || w.Arch != machine.AMD64 {
		return caller{}, nil, errors.New("its function is unknown")
	}
	rows, err := w.readFunction(f, start, end)
	if err != nil {
		return caller{}, nil, err
	}
	row, err := rows.row(f.PC, false)
	if err != nil {
		return caller{}, nil, err
	}
	if way := w.way(f); way.cfi != nil {
		byCFI, err1 := w.cfa(f.Registers, way.cfi.row.CFA)
		byCode, err2 := w.cfa(f.Registers, row.CFA)
		if err := errors.Join(err1, err2); err != nil {
			return caller{}, nil, err
		}
		if byCFI != byCode {
			return caller{}, nil, frame.Errorf("its CFI gives the CFA %v, and its instructions %v", byCFI, byCode)
		}
	}
	return w.prove(f, &step{row: row, rule: FromCode, partial: true})
}
