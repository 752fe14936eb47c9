package unwind

import (
	"errors"
	"fmt"
	"strconv"

	"reframe/deopt/machine"
)

// byCFI finds the caller of f through the row of fde that holds at its pc.
func (w *walk) byCFI(f *Frame, fde *FDE) (caller, *End) {
	failed := func(err error) (caller, *End) {
		return caller{}, cutShort("frame #%d: %s: %v", f.Index, f.Source, err)
	}
	row, err := fde.Rules(f.lookup())
	if err != nil {
		return failed(err)
	}
	cfa, err := w.cfa(f.Registers, row.CFA)
	if err != nil {
		return failed(fmt.Errorf("the CFA: %w", err))
	}
	if end := w.settle(f, cfa); end != nil {
		return caller{}, end
	}
	rule := row.Rule(row.ReturnAddress)
	switch rule.Kind {
	case RuleUndefined:
		return caller{}, outermost("frame #%d is the outermost: its CFI says that it has no return address", f.Index)
	case RuleNone, RuleSameValue:
		return failed(errors.New("no rule says where the return address is"))
	}
	b, err := w.restore(f, row.ReturnAddress, rule)
	if err != nil {
		return failed(fmt.Errorf("the return address: %w", err))
	}
	pc := machine.Addr(w.Arch.Uint(b))
	if end := w.plausible(f, pc); end != nil {
		return caller{}, end
	}
	regs := w.callers(f, row, cfa)
	regs.SetUint(w.Arch.PC, uint64(pc))
	return caller{pc: pc, regs: regs, rule: FromCFI}, nil
}

// plausible ends the walk where pc cannot be where f returns to. What a signal
// interrupted may be anywhere: a jump to a wild address is a common cause.
func (w *walk) plausible(f *Frame, pc machine.Addr) *End {
	switch {
	case f.Signal:
		return nil
	case pc == 0:
		return outermost("frame #%d is the outermost: its return address is zero", f.Index)
	case !w.Executable(pc - 1):
		return cutShort("frame #%d: its return address %v is not in executable memory", f.Index, pc)
	}
	return nil
}

func (w *walk) cfa(regs *machine.Registers, rule CFARule) (machine.Addr, error) {
	switch rule.Kind {
	case CFARegister:
		base, err := regs.Uint(rule.Register)
		return machine.Addr(base + uint64(rule.Offset)), err
	case CFAExpression:
		v, err := rule.Expression.evaluate(regs, w.Memory)
		return machine.Addr(v), err
	}
	return 0, errors.New("no rule defines it")
}

// callers returns the registers of the caller of f.
func (w *walk) callers(f *Frame, row *Row, cfa machine.Addr) *machine.Registers {
	regs := machine.NewRegisters(w.Arch, "no frame below keeps it")
	for _, reg := range w.Arch.Registers() {
		var b []byte
		var err error
		switch rule := row.Rule(reg); {
		case rule.Kind != RuleNone:
			b, err = w.restore(f, reg, rule)
		case reg == w.Arch.SP:
			regs.SetUint(reg, uint64(cfa)) // what CFA means
			continue
		case w.Arch.Preserved(reg):
			b, err = f.Registers.Bytes(reg)
		default:
			err = w.clobbered(f, reg)
		}
		if err != nil {
			regs.Forget(reg, err.Error())
			continue
		}
		regs.Set(reg, b)
	}
	return regs
}

// clobbered is why a register that no rule mentions is gone in the caller of f.
func (w *walk) clobbered(f *Frame, reg machine.DWARFReg) error {
	name := w.Arch.RegisterName(reg)
	if f.Signal {
		return machine.Unavailablef("frame #%d is a signal frame and its CFI does not say where %s was saved", f.Index, name)
	}
	// Joined by hand: this is said of some sixty registers in every frame.
	return &machine.Unavailable{Reason: name + " is caller-saved and frame #" + strconv.Itoa(f.Index) + " does not keep it"}
}

// restore returns the caller's value of reg, as bytes, by rule; f has its CFA.
func (w *walk) restore(f *Frame, reg machine.DWARFReg, rule RegisterRule) ([]byte, error) {
	at := f.CFA + machine.Addr(rule.Offset)
	switch rule.Kind {
	case RuleUndefined:
		return nil, machine.Unavailablef("the CFI of frame #%d says that %s is not kept", f.Index, w.Arch.RegisterName(reg))
	case RuleSameValue:
		return f.Registers.Bytes(reg)
	case RuleRegister:
		return f.Registers.Bytes(rule.Register)
	case RuleOffset:
		return w.saved(f, reg, at)
	case RuleValOffset:
		return w.word(uint64(at)), nil
	}
	v, err := rule.Expression.evaluate(f.Registers, w.Memory, uint64(f.CFA))
	if err != nil {
		return nil, machine.Unavailablef("the expression in the CFI of frame #%d for %s: %v", f.Index, w.Arch.RegisterName(reg), err)
	}
	if rule.Kind == RuleValExpression {
		return w.word(v), nil
	}
	return w.saved(f, reg, machine.Addr(v))
}

// saved reads reg from where f saved it. CFI does not say how much of a
// register was saved; a general one is saved whole.
func (w *walk) saved(f *Frame, reg machine.DWARFReg, at machine.Addr) ([]byte, error) {
	name := w.Arch.RegisterName(reg)
	if info, ok := w.Arch.Register(reg); ok && info.Size != w.Arch.Pointer {
		return nil, machine.Unavailablef("frame #%d saved %s at %v, and does not say how many bytes of it", f.Index, name, at)
	}
	b := make([]byte, w.Arch.Pointer)
	if err := w.Memory.ReadMemory(b, at); err != nil {
		return nil, machine.Unavailablef("frame #%d saved %s where it cannot be read: %v", f.Index, name, err)
	}
	return b, nil
}

// word is v as the bytes of a register.
func (w *walk) word(v uint64) []byte {
	b := make([]byte, w.Arch.Pointer)
	w.Arch.Order.PutUint64(b, v)
	return b
}
