package interp

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// passedMemory describes the memory to which a byval argument points. In a list of variadic arguments, a copy of this memory replaces the pointer.
type passedMemory struct {
	size  uint64
	align int
}

// passInMemory copies the memory of each byval argument for the callee (LangRef, "Parameter Attributes": byval). It copies no inalloca
// argument, whose memory the caller allocated for the call (see given), and no sret.
func (in *Interp) passInMemory(i *ir.Instr, args []Value) error {
	for k := range args {
		if k >= len(i.Call.ArgAttrs) || i.Call.ArgAttrs[k].ByVal == nil {
			continue
		}
		t := i.Call.ArgAttrs[k].ByVal
		from, ok := args[k].Uint()
		size := in.layout.Size(t)
		if !ok || size == ir.NoSize {
			return undefined("the address of byval argument %d", k+1)
		}
		align := i.Call.ArgAttrs[k].Align // alignment of the memory itself, even if less than the type's (LangRef, byval)
		if align == 0 {
			align = in.layout.Align(t)
		}
		a, err := in.stack.alloc(size, align)
		if err != nil {
			return err
		}
		if err := in.move(a, machine.Addr(from), size); err != nil {
			return err
		}
		s := *args[k].s
		s.memory = &passedMemory{size, align}
		args[k] = in.scalar(&s, uint64(a))
	}
	return nil
}

// given is an inalloca argument: memory that holds the passed value. The caller fills the memory, and the call makes the callee its owner.
type given struct {
	arg  slot
	name string
}

// given lists the inalloca arguments of a call, whose memory the callee releases. A musttail call has none: it passes the memory that its caller
// received, and that memory becomes undefined when the callee returns in place of the caller.
func (d *decoder) given(i *ir.Instr) []given {
	if i.Call.Tail == "musttail" {
		return nil
	}
	var list []given
	for k, a := range i.Call.ArgAttrs {
		if a.InAlloca == nil || k >= len(i.Args) {
			continue
		}
		if s, err := d.operand(i.Args[k]); err == nil && s.s.words == 1 {
			list = append(list, given{s, i.Args[k].Ref()})
		}
	}
	return list
}

// give adds the inalloca memory of the call to owes. That memory becomes undefined when the callee returns (InAlloca, "Callee-cleanup Calling
// Conventions"). Memory of a target keeps its content in the view. An inalloca argument must be the latest allocation on the stack, because compiled
// code expects it there (LangRef, "Parameter Attributes": inalloca).
func (c *callSite) give(fr *frame, owes *debt) (*debt, error) {
	in := fr.in
	if owes == nil {
		owes = &debt{}
	}
	for _, g := range c.gives {
		w := fr.w[g.arg.at]
		object, ok := in.stack.holding(machine.Addr(w.v))
		if w.u != 0 || !ok || !in.view.ranges.own(machine.Addr(w.v)) {
			continue
		}
		if err := in.work(uint64(len(in.stack.live) - fr.mark)); err != nil {
			return nil, err
		}
		if object != in.stack.latest(fr.mark) {
			return nil, troublef(KindFault, "the inalloca argument %s is not the latest live alloca of @%s", g.name, fr.fn.ir.Name)
		}
		if err := in.work(object.size); err != nil {
			return nil, err
		}
		owes.given = append(owes.given, object)
	}
	return owes, nil
}

// taken makes inalloca memory undefined after the callee has returned.
func (in *Interp) taken(given []span) {
	for _, s := range given {
		if object, ok := in.stack.holding(s.addr); ok && object == s {
			_ = in.view.fill(s.addr, word{u: 0xff}, s.size) // cannot fail: the whole allocation is accessible
		}
	}
}

// latest returns the last allocation with index from or greater. It skips fixed allocas and memory that lasts until its frame is popped.
func (s *stack) latest(from int) span {
	for k := len(s.live) - 1; k >= from; k-- {
		if !s.live[k].fixed && !s.live[k].kept {
			return s.live[k]
		}
	}
	return span{}
}
