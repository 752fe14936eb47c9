package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// chainRow returns the row of a function that links its frames by the architecture's convention.
func chainRow(arch *machine.Arch) *cfi.Row {
	c := arch.Chain
	row := &cfi.Row{Range: machine.Range{End: ^machine.Addr(0)}, ReturnAddress: arch.Link}
	at := func(offset int64) cfi.RegisterRule {
		return cfi.RegisterRule{Kind: cfi.RuleExpression, Expression: cfi.RegisterPlus(c.Base, offset)}
	}
	switch {
	case c.Base == arch.SP: // the link is the caller's stack pointer
		row.CFA = cfi.CFARule{Kind: cfi.CFAExpression, Expression: cfi.RegisterPlus(c.Base, c.Linked).Deref()}
		row.SetRule(arch.Link, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: c.Return})
		return row
	case !c.NoCFA:
		row.CFA = cfi.CFARule{Kind: cfi.CFARegister, Register: c.Base, Offset: c.CFA}
	}
	row.SetRule(c.Base, at(c.Linked))
	row.SetRule(arch.Link, at(c.Return))
	return row
}

// errChainEnds reports a zero link in a frame that was reached through the chain. ABIs require a zero in the outermost frame (AMD64 supplement,
// §3.4.1; AAPCS64, "The Frame Pointer"). In code without a frame pointer the register may be zero too.
var errChainEnds = errors.New("it is zero, as that of the outermost frame is")

// linkRule returns the rule for the links between frames on the architecture.
func (u *codeReader) linkRule() Rule {
	if u.Arch.Chain.Base == u.Arch.SP {
		return FromBackChain
	}
	return FromFramePointer
}

// byChain finds the caller of a frame on the assumption that its code links its frames, by a frame pointer or a back chain. It checks each step.
// If the code keeps no link, the chain belongs to a frame further out, and the result lacks the frames before that one.
func (w *walk) byChain(f *Frame) (caller, *End, error) {
	chain := w.Arch.Chain
	if !chain.Exists() {
		return caller{}, nil, fmt.Errorf("%s code does not link its frames", w.Arch.Title)
	}
	rule := w.linkRule()
	name := w.Arch.RegisterName(chain.Base)
	base, err := f.Registers.Addr(chain.Base)
	if err != nil {
		return caller{}, nil, err
	}
	low, known := w.lowest(f, w.Arch)
	size := machine.Addr(w.Arch.Pointer)
	switch {
	case base == 0 && f.Rule == rule:
		return caller{}, nil, errChainEnds
	case base%size != 0:
		return caller{}, nil, frame.Errorf("%s %v is not aligned to %d bytes", name, base, size)
	case known && base < low:
		return caller{}, nil, frame.Errorf("%s %v lies below the stack pointer %v", name, base, low)
	case base+2*size < base:
		return caller{}, nil, frame.Errorf("%s %v lies at the end of memory", name, base)
	}
	s := &step{row: chainRow(w.Arch), rule: rule, partial: true, guess: "frame #%d is assumed to have a " + string(rule) +
		": if it has none, frames are missing here"}
	if !f.Return {
		s.guess = "frame #%d may not have set up its " + string(rule) + " yet, or may have released it: then its caller is missing here"
	}
	follow := func() (caller, *End, error) {
		if chain.NoCFA {
			return w.byRecord(f, s, base)
		}
		return w.prove(f, s)
	}
	c, end, err := follow()
	if none := (*uncalled)(nil); errors.As(err, &none) && w.linksOn(chain, base) {
		// Interpreters push an address and jump, and runtimes return into code that follows no call. If the chain continues, accept the return
		// address.
		s.jumped, s.kind = true, "no call ends at the return address: "+string(rule)
		s.noCallAt = none.pc
		s.guess = "no call ends at %[2]v, to which frame #%[1]d returns: its " + string(rule) + " says so, and leads to another one"
		return follow()
	}
	if err != nil {
		err = frame.Errorf("%s %v does not point to a frame: %w", name, base, err)
	}
	return c, end, err
}

// linked returns a step that uses the link of f instead of the row of s, if both give the same CFA. Then both are right, and the link also
// restores the caller's link.
func (t trial) linked(f *Frame, s *step) *step {
	chain := t.Arch.Chain
	base, err := f.Registers.Addr(chain.Base)
	cfa, err2 := t.cfa(f.Registers, s.row.CFA)
	if err != nil || err2 != nil || chain.NoCFA || chain.Base == t.Arch.SP || base+machine.Addr(chain.CFA) != cfa {
		return s
	}
	return &step{row: chainRow(t.Arch), rule: s.rule, partial: true}
}

// linksOn reports whether the frame linked from base is the last of its chain, or is linked to a frame further out with a return address in code.
func (t trial) linksOn(c machine.Chain, base machine.Addr) bool {
	if c.Base == t.Arch.SP {
		return false
	}
	next, err := machine.ReadAddr(t.memory, t.Arch, base+machine.Addr(c.Linked))
	if err != nil || next == 0 {
		return err == nil
	}
	if next <= base || next%machine.Addr(t.Arch.Pointer) != 0 {
		return false
	}
	pc, err := machine.ReadAddr(t.memory, t.Arch, next+machine.Addr(c.Return))
	return err == nil && pc != 0 && t.Executable(t.unsigned(pc)-1)
}

// byRecord finds the caller by a frame record that does not give the CFA.
func (w *walk) byRecord(f *Frame, s *step, base machine.Addr) (caller, *End, error) {
	pc, err := w.returnAddress(f, s.row)
	if err != nil {
		return caller{}, nil, err
	}
	if pc, err = w.called(pc, s.jumped); err != nil {
		return caller{}, nil, err
	}
	f.NoCFA = fmt.Sprintf("frame #%d was left by its %s, which does not say where its stack ends", f.Index, s.rule)
	w.floor = base
	if pc == 0 {
		return caller{}, w.returnsToZero(f), nil
	}
	return w.caller(f, s, pc), nil, nil
}
