package unwind

import (
	"errors"

	"reframe/deopt/machine"
	"reframe/deopt/unwind/cfi"
)

// Overwritten is a place in a function where a runtime has written a call over its code, or a jump to code that calls, and the frame's
// return address is that of this call. The function stands at the place: what unwind information says of the
// addresses behind it is said of code that is there no more.
type Overwritten struct {
	At machine.Addr // of the first instruction that was written over; it would have run next
	// From is where the code starts that ran in its place up to the call: At, or where the jump led. It is x86-64 code.
	From machine.Addr
	// Sure says that nothing else leads to the call. Otherwise the stack has to agree: a call to the function must have left the
	// return address that the rules for At find.
	Sure bool
	By   any // what told so, for whoever asks
}

// maxOverwritten bounds how many places are tried for one frame.
const maxOverwritten = 64

// overwritten finds out whether f returns to code that was written over its function's. Where several places may have led there, f stays
// what it is.
func (w *walk) overwritten(f *Frame) {
	if w.Overwritten == nil || !f.Return {
		return
	}
	all := w.Overwritten(f, &w.frames[f.Index-1])
	var found *Overwritten
	var regs *machine.Registers
	for n := range all[:min(len(all), maxOverwritten)] {
		o := &all[n]
		at, err := w.registersAt(f, o)
		if err != nil || !o.Sure && !w.agrees(f, o, at) {
			continue
		}
		if found != nil {
			return
		}
		found, regs = o, at
	}
	if found != nil {
		f.Overwritten, f.Registers, f.code = found, regs, w.Finder.Code(found.At)
	}
}

// registersAt are the registers that f had at the place, as far as the code that ran from there to the call tells. The pc
// stays what it is.
func (w *walk) registersAt(f *Frame, o *Overwritten) (*machine.Registers, error) {
	m, err := w.momentOf(o.From, f.PC)
	if err != nil {
		return nil, err
	}
	sp := initially(w.Arch.SP)
	n, ok := m.regs[w.Arch.SP].from(sp)
	if !ok {
		return nil, errors.New("how far the stack pointer has moved is not known")
	}
	base, err := f.Registers.Uint(w.Arch.SP)
	if err != nil {
		return nil, err
	}
	regs, at := f.Registers.Clone(), *f
	at.CFA = machine.Addr(base) - machine.Addr(n) + machine.Addr(w.Arch.Pointer)
	regs.SetUint(w.Arch.SP, base-uint64(n))
	for reg := machine.DWARFReg(0); reg < 16; reg++ {
		rule := m.rule(reg)
		if _, err := regs.Uint(reg); err == nil && m.regs[reg] == initially(reg) {
			continue // it is there, and need not be looked for where it was saved
		}
		switch {
		case reg == w.Arch.SP || rule.Kind == cfi.RuleSameValue:
		case rule.Kind == cfi.RuleNone || rule.Kind == cfi.RuleRegister: // in another register, which the callee need not have kept
			regs.Forget(reg, w.Arch.RegisterName(reg)+" is not what it was: the code that was written over the function's has changed it")
		default:
			w.restore(&at, regs, reg, rule)
		}
	}
	return regs, nil
}

// momentOf is what is known at the call that ends at pc, before it, of what was there at from.
func (w *walk) momentOf(from, pc machine.Addr) (m moment, err error) {
	if w.Arch != machine.AMD64 {
		return m, errors.New("code of " + w.Arch.Title + " is not followed")
	}
	const maxInstrs = 512
	r := newReading(w.Memory, from, pc, maxInstrs)
	r.follow(from)
	r.divide()
	begin := atStart()
	begin.forgot = true
	if err := r.settle(begin); err != nil {
		return m, err
	}
	for at := range r.number {
		if i := &r.instrs[r.number[at]]; i.next() == pc && i.calls() {
			return r.before(at)
		}
	}
	return m, errors.New("no call that is reached ends there")
}

// agrees says whether the stack is one that the function has at the place: a call left the return address there, and to this function
// where it tells.
func (w *walk) agrees(f *Frame, o *Overwritten, regs *machine.Registers) bool {
	at := Frame{Index: f.Index, PC: o.At, Registers: regs, code: w.Finder.Code(o.At)}
	s, err := at.code.cfi(o.At)
	if err != nil || s == nil || s.signal {
		return false
	}
	cfa, err := w.cfa(regs, s.row.CFA)
	if err != nil || cfa <= w.floor {
		return false
	}
	at.CFA = cfa
	pc, err := w.returnAddress(&at, s.row)
	if err != nil || pc == 0 {
		return false
	}
	if _, err := w.called(pc, false); err != nil {
		return false
	}
	target := w.directTarget(pc)
	for n := 0; n < maxStubs && target != 0 && target != s.Start; n++ {
		if w.starts(target) {
			return false // of another function
		}
		target = w.Stub(target)
	}
	return true
}
