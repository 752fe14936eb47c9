package unwind

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// rules computes the caller of a frame by the rules of a row, without checks.
type rules struct {
	arch   *machine.Arch
	memory *recorder
}

// returnAddress finds the return address of f. If calls leave it in a register, a function that has made no call need not have saved it.
func (r *rules) returnAddress(f *Frame, row *cfi.Row) (machine.Addr, error) {
	rule := row.Rule(row.ReturnAddress)
	if f.undecided != nil {
		return 0, f.undecided
	}
	switch {
	case rule.Kind == cfi.RuleUndefined:
		return 0, errOutermost
	case rule.Kind == cfi.RuleNone && r.arch.Link != r.arch.PC && row.ReturnAddress == r.arch.Link:
		rule.Kind = cfi.RuleSameValue
	case rule.Kind == cfi.RuleNone, rule.Kind == cfi.RuleSameValue && r.arch.Link == r.arch.PC:
		return 0, errors.New("no rule says where the return address is")
	}
	if rule.Kind == cfi.RuleSameValue && f.Return && f.Overwritten == nil {
		return 0, r.linkLost(f)
	}
	v, err := r.value(f, row.ReturnAddress, rule)
	if err != nil {
		return 0, frame.Errorf("the return address: %w", err)
	}
	return machine.Addr(v), nil
}

// linkLost returns the reason why the return address of f is unknown: f has made a call and not saved the link register.
func (r *rules) linkLost(f *Frame) error {
	return fmt.Errorf("the return address: the CFI says that it is in %s, where the call that frame #%d has made left its own", r.arch.RegisterName(r.arch.Link), f.Index)
}

// cfa evaluates the rule of a CFA.
func (r *rules) cfa(regs *machine.Registers, rule cfi.CFARule) (machine.Addr, error) {
	switch rule.Kind {
	case cfi.CFARegister:
		base, err := regs.Uint(rule.Register)
		return machine.Addr(base + uint64(rule.Offset)), err
	case cfi.CFAExpression:
		v, err := rule.Expression.Evaluate(regs, r.memory)
		return machine.Addr(v), err
	}
	return 0, errors.New("no rule defines it")
}

// caller computes the registers of the caller of f, whose CFA is known.
func (r *rules) caller(f *Frame, s *step, pc machine.Addr) caller {
	f.left = s
	regs := f.Registers.Caller(!s.partial, r.lost(f, s))
	if f.NoCFA == "" {
		regs.SetUint(r.arch.SP, uint64(f.CFA)+uint64(r.arch.CallerSP)) // the CFA is defined by this distance
	} else {
		regs.Forget(r.arch.SP, frame.Because(frame.CFAUnknown, f.WhyNoCFA()))
	}
	for _, reg := range r.arch.Constant {
		if b, err := f.Registers.Bytes(reg); err == nil {
			regs.Set(reg, b)
		}
	}
	for _, reg := range s.unsaved {
		regs.Forget(reg, frame.Because(frame.NotSaved, f.Index, r.arch.RegisterName(reg)))
	}
	for reg, rule := range s.row.Rules() {
		if reg != r.arch.PC {
			r.restore(f, regs, reg, rule)
		}
	}
	if s.rule == FromCFI && s.partial && f.NoCFA == "" && r.arch == machine.AMD64 && s.row.Rule(r.arch.FP).Kind == cfi.RuleNone {
		r.goFramePointer(f, regs)
	}
	if s.signal {
		r.interruptedFloats(f, regs)
	}
	regs.SetUint(r.arch.PC, uint64(pc))
	c := caller{pc: pc, regs: regs, rule: s.rule}
	if s.guess != "" {
		args := []any{f.Index}
		if s.noCallAt != 0 {
			args = append(args, s.noCallAt)
			c.why = frame.Errorf(s.guess, args...)
		}
		c.guess, c.kind = fmt.Sprintf(s.guess, args...), cmp.Or(s.kind, s.guess)
	}
	return c
}

// interruptedFloats sets the floating-point environment of the code that the signal of f interrupted. On x86-64 the kernel starts handlers with the
// default environment (fpu__clear_user_states in arch/x86/kernel/fpu/core.c).
func (r *rules) interruptedFloats(f *Frame, regs *machine.Registers) {
	sp, err := f.Registers.Addr(r.arch.SP)
	if err == nil {
		var c machine.FloatControl
		if c, err = machine.SignalFloatControl(r.memory, r.arch, sp); err == nil {
			regs.SetFloatControl(c)
			return
		}
	}
	regs.ForgetFloatControl(err)
}

// lost returns a function that gives the reason why a register without a rule is unavailable in the caller of f.
func (r *rules) lost(f *Frame, s *step) func(machine.DWARFReg) error {
	index, rule, signal, partial, arch, inner := f.Index, s.rule, s.signal, s.partial, r.arch, f.Registers
	return func(reg machine.DWARFReg) error {
		name := arch.RegisterName(reg)
		switch {
		case slices.Contains(arch.Constant, reg):
			_, err := inner.Bytes(reg)
			return err
		case signal:
			return frame.Because(frame.SignalFrame, index, name)
		case arch.Kept(reg) > 0 && !partial: // f preserved the register, whose value was already unavailable in f
			_, err := inner.Bytes(reg)
			return err
		case arch.Kept(reg) > 0:
			return frame.Because(frame.LeftWithoutCFI, index, rule.means(), name)
		}
		return frame.Because(frame.CallerSaved, name, index)
	}
}

// restore sets a register of the caller of f by a rule.
func (r *rules) restore(f *Frame, regs *machine.Registers, reg machine.DWARFReg, rule cfi.RegisterRule) {
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
	if n := r.savedSize(reg); n != len(r.memory.word) && (rule.Kind == cfi.RuleOffset || rule.Kind == cfi.RuleExpression) {
		r.restoreSized(f, regs, reg, rule, n)
		return
	}
	v, err := r.value(f, reg, rule)
	if err != nil {
		regs.Forget(reg, err)
		return
	}
	regs.SetUint(reg, v)
}

// value evaluates a rule for an address-sized register.
func (r *rules) value(f *Frame, reg machine.DWARFReg, rule cfi.RegisterRule) (uint64, error) {
	switch rule.Kind {
	case cfi.RuleUndefined:
		return 0, frame.Because(frame.CFIUndefined, f.Index, r.arch.RegisterName(reg))
	case cfi.RuleSameValue:
		return f.Registers.Uint(reg)
	case cfi.RuleRegister:
		return f.Registers.Uint(rule.Register)
	case cfi.RuleOffset:
		return r.saved(f, reg, f.CFA+machine.Addr(rule.Offset))
	case cfi.RuleValOffset:
		return uint64(f.CFA) + uint64(rule.Offset), nil
	}
	v, err := r.computed(f, reg, rule)
	if err != nil || rule.Kind == cfi.RuleValExpression {
		return v, err
	}
	return r.saved(f, reg, machine.Addr(v))
}

// computed evaluates the expression of a rule.
func (r *rules) computed(f *Frame, reg machine.DWARFReg, rule cfi.RegisterRule) (uint64, error) {
	v, err := rule.Expression.Evaluate(f.Registers, r.memory, uint64(f.CFA))
	if err != nil {
		return 0, frame.Because(frame.CFIExpression, f.Index, r.arch.RegisterName(reg), err)
	}
	return v, nil
}

// savedSize returns the number of bytes of a register that its save slot holds by unwind information; 0 if unknown. If only a part of the
// register is callee-saved, that is the size of the part.
func (r *rules) savedSize(reg machine.DWARFReg) int {
	if kept := r.arch.Kept(reg); kept > 0 {
		return kept
	}
	info, ok := r.arch.Register(reg)
	if ok && info.Class == machine.Vector && 0 < r.arch.Vector && r.arch.Vector < info.Size {
		return r.arch.Vector
	}
	if ok && info.Size != r.arch.Pointer {
		return 0
	}
	return r.arch.Pointer
}

// saved reads an address-sized register from its save slot.
func (r *rules) saved(f *Frame, reg machine.DWARFReg, at machine.Addr) (uint64, error) {
	if err := r.memory.ReadMemory(r.memory.word[:], at); err != nil {
		return 0, r.unreadable(f, reg, err)
	}
	return r.arch.Uint(r.memory.word[:]), nil
}

func (r *rules) unreadable(f *Frame, reg machine.DWARFReg, err error) error {
	return frame.Because(frame.SaveUnreadable, f.Index, r.arch.RegisterName(reg), err)
}

// restoreSized does the same as restore for a register whose saved size is not that of an address.
func (r *rules) restoreSized(f *Frame, regs *machine.Registers, reg machine.DWARFReg, rule cfi.RegisterRule, size int) {
	at := f.CFA + machine.Addr(rule.Offset)
	if rule.Kind == cfi.RuleExpression {
		v, err := r.computed(f, reg, rule)
		if err != nil {
			regs.Forget(reg, err)
			return
		}
		at = machine.Addr(v)
	}
	if size == 0 {
		regs.Forget(reg, frame.Because(frame.SaveSizeUnknown, f.Index, r.arch.RegisterName(reg), at))
		return
	}
	b := make([]byte, size)
	if err := r.memory.ReadMemory(b, at); err != nil {
		regs.Forget(reg, r.unreadable(f, reg, err))
		return
	}
	regs.Set(reg, b)
}

// goFramePointer sets the frame pointer of the caller of f. It is the only register that Go's code preserves. A function with a frame pushes it
// just below the return address and makes it point there; a function without a frame does not change it.
func (r *rules) goFramePointer(f *Frame, regs *machine.Registers) {
	chain := r.arch.Chain
	fp, err := f.Registers.Addr(r.arch.FP)
	sp, spErr := f.Registers.Addr(r.arch.SP)
	switch own := f.CFA - machine.Addr(chain.CFA); {
	case err != nil:
		regs.Forget(r.arch.FP, err)
	case fp == own:
		r.restore(f, regs, r.arch.FP, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: chain.Linked - chain.CFA})
	case spErr == nil && f.CFA == sp+machine.Addr(r.arch.Pointer): // no frame
		regs.SetUint(r.arch.FP, uint64(fp))
	default: // assembly that uses the register for data
		regs.Forget(r.arch.FP, frame.Because(frame.NotSaved, f.Index, r.arch.RegisterName(r.arch.FP)))
	}
}
