package unwind

import (
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// apply finds the caller of f by a row. It returns an error if the row cannot be used.
func (w *walk) apply(f *Frame, s *step) (caller, *End, error) {
	cfa, err := w.cfa(f.Registers, s.row.CFA)
	if err != nil {
		return caller{}, nil, fmt.Errorf("the CFA: %w", err)
	}
	cfa -= machine.Addr(s.late)
	if s.row.Rule(s.row.ReturnAddress).Kind == cfi.RuleUndefined && (f.Index == 0 || cfa >= w.floor) {
		// If calls push nothing, the CFA may equal that of the callee.
		f.CFA, f.NoCFA = cfa, ""
		if w.disowned(f, s) {
			return caller{}, cutShort(frame.Because(frame.StackContinues, f.Index, errOutermost)), nil
		}
		return caller{}, outermost(f.Index, errOutermost.Error()), nil
	}
	if end := w.setCFA(f, cfa); end != nil {
		return caller{}, end, nil
	}
	pc, err := w.returnAddress(f, s.row)
	switch {
	case errors.Is(err, errOutermost):
		return caller{}, outermost(f.Index, err.Error()), nil
	case err != nil:
		return caller{}, nil, err
	case pc == 0 && !s.signal:
		return caller{}, w.returnsToZero(f), nil
	case !s.signal:
		// A signal can interrupt any pc: a jump to a wild address is a common cause.
		if pc = w.unsigned(pc); !w.Executable(pc-1) && !(w.Executable(pc) && w.trampoline(pc) != nil) {
			return caller{}, cutShort(frame.Because(frame.ReturnToNoCode, f.Index, pc)), nil
		}
		if none := (*uncalled)(nil); s.rule == FromCFI {
			if _, err := w.called(pc, false); errors.As(err, &none) && !(w.Patchable != nil && w.Patchable(pc)) {
				return caller{}, cutShort(frame.Because(frame.ReturnToNoCall, f.Index, "returns", pc, "")), nil
			}
			if w.overwrittenReturn(f, s, pc) {
				return caller{}, cutShort(frame.Because(frame.ReturnToNoCall, f.Index, "returns", pc, ", and the stack continues above it")), nil
			}
		}
	}
	return w.caller(f, s, pc), nil, nil
}

// errOutermost reports that CFI declares a function to have no caller.
var errOutermost = errors.New("its CFI says that it has no return address")

// returnAddress finds the return address of f. If calls leave it in a register, a function that has made no call need not have saved it.
func (w *walk) returnAddress(f *Frame, row *cfi.Row) (machine.Addr, error) {
	rule := row.Rule(row.ReturnAddress)
	if f.undecided != nil {
		return 0, f.undecided
	}
	switch {
	case rule.Kind == cfi.RuleUndefined:
		return 0, errOutermost
	case rule.Kind == cfi.RuleNone && w.Arch.Link != w.Arch.PC && row.ReturnAddress == w.Arch.Link:
		rule.Kind = cfi.RuleSameValue
	case rule.Kind == cfi.RuleNone, rule.Kind == cfi.RuleSameValue && w.Arch.Link == w.Arch.PC:
		return 0, errors.New("no rule says where the return address is")
	}
	if rule.Kind == cfi.RuleSameValue && f.Return && f.Overwritten == nil {
		return 0, w.linkLost(f)
	}
	v, err := w.value(f, row.ReturnAddress, rule)
	if err != nil {
		return 0, fmt.Errorf("the return address: %w", err)
	}
	return machine.Addr(v), nil
}

// linkLost returns the reason why the return address of f is unknown: f has made a call and not saved the link register.
func (w *walk) linkLost(f *Frame) error {
	return fmt.Errorf("the return address: the CFI says that it is in %s, where the call that frame #%d has made left its own", w.Arch.RegisterName(w.Arch.Link), f.Index)
}

// unsigned removes the pointer-authentication code from a code address.
func (u *Unwinder) unsigned(pc machine.Addr) machine.Addr {
	if u.Arch.Code == 0 || u.Executable(pc-1) {
		return pc
	}
	return pc & machine.Addr(u.Arch.Code)
}

func (w *walk) cfa(regs *machine.Registers, rule cfi.CFARule) (machine.Addr, error) {
	switch rule.Kind {
	case cfi.CFARegister:
		base, err := regs.Uint(rule.Register)
		return machine.Addr(base + uint64(rule.Offset)), err
	case cfi.CFAExpression:
		v, err := rule.Expression.Evaluate(regs, w)
		return machine.Addr(v), err
	}
	return 0, errors.New("no rule defines it")
}

// caller computes the registers of the caller of f, whose CFA is known.
func (w *walk) caller(f *Frame, s *step, pc machine.Addr) caller {
	f.left = s
	regs := f.Registers.Caller(!s.partial, w.lost(f, s))
	if f.NoCFA == "" {
		regs.SetUint(w.Arch.SP, uint64(f.CFA)+uint64(w.Arch.CallerSP)) // by definition of the CFA
	} else {
		regs.Forget(w.Arch.SP, frame.Because(frame.CFAUnknown, f.NoCFA))
	}
	for _, reg := range w.Arch.Constant {
		if b, err := f.Registers.Bytes(reg); err == nil {
			regs.Set(reg, b)
		}
	}
	for _, reg := range s.unsaved {
		regs.Forget(reg, frame.Because(frame.NotSaved, f.Index, w.Arch.RegisterName(reg)))
	}
	for reg, rule := range s.row.Rules() {
		if reg != w.Arch.PC {
			w.restore(f, regs, reg, rule)
		}
	}
	if s.rule == FromCFI && s.partial && f.NoCFA == "" && w.Arch == machine.AMD64 && s.row.Rule(w.Arch.FP).Kind == cfi.RuleNone {
		w.goFramePointer(f, regs)
	}
	if s.signal {
		w.interruptedFloats(f, regs)
	}
	regs.SetUint(w.Arch.PC, uint64(pc))
	c := caller{pc: pc, regs: regs, rule: s.rule}
	if s.guess != "" {
		c.guess = fmt.Sprintf(s.guess, f.Index)
	}
	return c
}

// interruptedFloats sets the floating-point environment of the code that the signal of f interrupted. On x86-64 the kernel starts handlers with the
// default environment (fpu__clear_user_states in arch/x86/kernel/fpu/core.c).
func (w *walk) interruptedFloats(f *Frame, regs *machine.Registers) {
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err == nil {
		var c machine.FloatControl
		if c, err = machine.SignalFloatControl(w, w.Arch, sp); err == nil {
			regs.SetFloatControl(c)
			return
		}
	}
	regs.ForgetFloatControl(err)
}

// lost returns a function that gives the reason why a register without a rule is unavailable in the caller of f.
func (w *walk) lost(f *Frame, s *step) func(machine.DWARFReg) error {
	index, rule, signal, partial, arch, inner := f.Index, s.rule, s.signal, s.partial, w.Arch, f.Registers
	return func(reg machine.DWARFReg) error {
		name := arch.RegisterName(reg)
		switch {
		case slices.Contains(arch.Constant, reg):
			_, err := inner.Bytes(reg)
			return err
		case signal:
			return frame.Because(frame.SignalFrame, index, name)
		case arch.Kept(reg) > 0 && !partial: // f preserved the register, but its value was already unavailable
			_, err := inner.Bytes(reg)
			return err
		case arch.Kept(reg) > 0:
			return frame.Because(frame.LeftWithoutCFI, index, rule.means(), name)
		}
		return frame.Because(frame.CallerSaved, name, index)
	}
}

// restore sets a register of the caller of f by a rule.
func (w *walk) restore(f *Frame, regs *machine.Registers, reg machine.DWARFReg, rule cfi.RegisterRule) {
	if rule.Kind == cfi.RuleSameValue || rule.Kind == cfi.RuleRegister {
		from := reg
		if rule.Kind == cfi.RuleRegister {
			from = rule.Register
		}
		b, err := f.Registers.Bytes(from)
		if err != nil {
			regs.Forget(reg, err)
			return
		}
		regs.Set(reg, b)
		return
	}
	if n := w.savedSize(reg); n != len(w.word) && (rule.Kind == cfi.RuleOffset || rule.Kind == cfi.RuleExpression) {
		w.restoreSized(f, regs, reg, rule, n)
		return
	}
	v, err := w.value(f, reg, rule)
	if err != nil {
		regs.Forget(reg, err)
		return
	}
	regs.SetUint(reg, v)
}

// value evaluates a rule for an address-sized register.
func (w *walk) value(f *Frame, reg machine.DWARFReg, rule cfi.RegisterRule) (uint64, error) {
	switch rule.Kind {
	case cfi.RuleUndefined:
		return 0, frame.Because(frame.CFIUndefined, f.Index, w.Arch.RegisterName(reg))
	case cfi.RuleSameValue:
		return f.Registers.Uint(reg)
	case cfi.RuleRegister:
		return f.Registers.Uint(rule.Register)
	case cfi.RuleOffset:
		return w.saved(f, reg, f.CFA+machine.Addr(rule.Offset))
	case cfi.RuleValOffset:
		return uint64(f.CFA) + uint64(rule.Offset), nil
	}
	v, err := w.computed(f, reg, rule)
	if err != nil || rule.Kind == cfi.RuleValExpression {
		return v, err
	}
	return w.saved(f, reg, machine.Addr(v))
}

// computed evaluates the expression of a rule.
func (w *walk) computed(f *Frame, reg machine.DWARFReg, rule cfi.RegisterRule) (uint64, error) {
	v, err := rule.Expression.Evaluate(f.Registers, w, uint64(f.CFA))
	if err != nil {
		return 0, frame.Because(frame.CFIExpression, f.Index, w.Arch.RegisterName(reg), err)
	}
	return v, nil
}

// savedSize returns the number of bytes of a register that a save in unwind information covers; 0 if unknown. If only a part of the register is
// callee-saved, it is the size of that part.
func (w *walk) savedSize(reg machine.DWARFReg) int {
	if kept := w.Arch.Kept(reg); kept > 0 {
		return kept
	}
	info, ok := w.Arch.Register(reg)
	if ok && info.Class == machine.Vector && 0 < w.Arch.Vector && w.Arch.Vector < info.Size {
		return w.Arch.Vector
	}
	if ok && info.Size != w.Arch.Pointer {
		return 0
	}
	return w.Arch.Pointer
}

// saved reads an address-sized register from its save slot.
func (w *walk) saved(f *Frame, reg machine.DWARFReg, at machine.Addr) (uint64, error) {
	if err := w.ReadMemory(w.word[:], at); err != nil {
		return 0, w.unreadable(f, reg, err)
	}
	return w.Arch.Uint(w.word[:]), nil
}

func (w *walk) unreadable(f *Frame, reg machine.DWARFReg, err error) error {
	return frame.Because(frame.SaveUnreadable, f.Index, w.Arch.RegisterName(reg), err)
}

// restoreSized does the same as restore for a register whose saved size is not that of an address.
func (w *walk) restoreSized(f *Frame, regs *machine.Registers, reg machine.DWARFReg, rule cfi.RegisterRule, size int) {
	at := f.CFA + machine.Addr(rule.Offset)
	if rule.Kind == cfi.RuleExpression {
		v, err := w.computed(f, reg, rule)
		if err != nil {
			regs.Forget(reg, err)
			return
		}
		at = machine.Addr(v)
	}
	if size == 0 {
		regs.Forget(reg, frame.Because(frame.SaveSizeUnknown, f.Index, w.Arch.RegisterName(reg), at))
		return
	}
	b := make([]byte, size)
	if err := w.ReadMemory(b, at); err != nil {
		regs.Forget(reg, w.unreadable(f, reg, err))
		return
	}
	regs.Set(reg, b)
}
