package interp

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// pad is the unwind destination of one invoke (LangRef, "landingpad").
type pad struct {
	to      *edge
	in      *ir.Instr
	out     slot
	clauses []clause
	cleanup bool
	err     error // why an exception cannot unwind to it
}

// clause is one clause of a landingpad. A catch accepts its type, and a filter accepts every exception except those of its types.
type clause struct {
	filter bool
	types  slot // an address, or an array of addresses
}

// pad decodes the unwind edge of an invoke.
func (d *decoder) pad(i *ir.Instr) *pad {
	p := &pad{}
	if len(i.Blocks) < 2 {
		p.err = troublef(KindModule, "invoke without an unwind destination")
		return p
	}
	if p.to, p.err = d.edge(i.Block, i.Blocks[1]); p.err != nil {
		return p
	}
	p.in = i.Blocks[1].Instrs[p.to.to.phis]
	if p.in.Op != ir.OpLandingPad {
		p.err = unsupported("only exceptions of the Itanium C++ ABI are supported", "%v as the target of an exception", p.in.Op)
		return p
	}
	p.out, p.cleanup = d.out(p.in), p.in.Flags&ir.Cleanup != 0
	if p.out.s.words > 0 && !p.out.s.landing() {
		p.err = unsupported("", "a landingpad of type %v", p.out.s.typ)
		return p
	}
	for _, v := range p.in.Args {
		types, err := d.operand(v)
		if err != nil {
			p.err = err
			return p
		}
		c := clause{filter: types.s.typ.Kind == ir.ArrayKind, types: types}
		element := types.s
		if c.filter {
			element = types.s.elem
		}
		if element.typ.Kind != ir.PointerKind || element.words != 1 {
			p.err = troublef(KindModule, "a clause of type %v", types.s.typ)
			return p
		}
		p.clauses = append(p.clauses, c)
	}
	return p
}

// landing reports whether s is the shape of a landingpad's result: a pointer to the exception, and a 32-bit selector.
func (s *shape) landing() bool {
	return s.typ.Kind == ir.StructKind && s.n == 2 && s.words == 2 && s.field[0].typ.Kind == ir.PointerKind && s.field[1].bits == 32
}

// landingPad decodes the landingpad instruction. The unwinder has already set its result.
func (d *decoder) landingPad(_ *ir.Instr) (step, error) {
	return func(fr *frame) error {
		if !fr.in.run.landed {
			return troublef(KindModule, "a landingpad that was not reached by an exception")
		}
		fr.in.run.landed = false
		return nil
	}, nil
}

// resume decodes the resume instruction, which continues unwinding in the outer frames.
func (d *decoder) resume(i *ir.Instr) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	if !args[0].s.landing() {
		return nil, unsupported("", "resume of type %v", args[0].s.typ)
	}
	return func(fr *frame) error {
		w := fr.w[args[0].at]
		if w.u != 0 {
			return notKnown([]word{w}, "the exception")
		}
		return fr.in.resumeException(machine.Addr(w.v), fr.in.frames.n-2)
	}, nil
}

// waits returns the pad of the invoke at which a frame waits, or nil if the frame waits at a call.
func (fr *frame) waits() *pad {
	if k := fr.pc - 1; k >= 0 && k < len(fr.fn.src) && fr.fn.src[k].Op == ir.OpInvoke {
		return fr.fn.pads[fr.fn.src[k]]
	}
	return nil
}

// typeidFor decodes llvm.eh.typeid.for, which yields the selector of a type.
func typeidFor(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if out.s.bits != 32 {
		return nil, wrongUse(i)
	}
	return atPointer(i, args, 1, func(fr *frame, a machine.Addr) error {
		if fr.in.opt.Native != nil { // native landing pads use the selectors of LLVM's code generator
			return unsupported("", "the selector of native code for a type of exceptions")
		}
		id, err := fr.in.typeid(a)
		fr.w[out.at] = word{v: uint64(id)}
		return err
	})
}

// typeid returns the selector of a type, counted from 1 in the order of first use. It charges memory, because a hostile module can ask for the
// selectors of any number of addresses.
func (in *Interp) typeid(a machine.Addr) (uint32, error) {
	cxx := &in.run.cxx
	id := cxx.ids[a]
	if id == 0 {
		if err := in.view.charge(handlerCost); err != nil {
			return 0, err
		}
		if cxx.ids == nil {
			cxx.ids = map[machine.Addr]uint32{}
		}
		id = uint32(len(cxx.ids) + 1)
		cxx.ids[a] = id
	}
	return id, nil
}
