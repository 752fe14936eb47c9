package interp

import (
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// passedMemory describes the memory that a byval argument points to. A variadic callee gets a copy of it among its arguments, in place of the
// pointer.
type passedMemory struct {
	size  uint64
	align int
}

// passInMemory copies the memory of each byval argument for the callee (LangRef, "Parameter Attributes": byval). It copies no inalloca or
// preallocated argument, whose memory the caller allocated for the call (see given), and no sret.
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

// given is an inalloca or preallocated argument: memory that holds the passed value. The caller fills it, and the callee owns it from the call on.
type given struct {
	arg      slot
	name     string
	inalloca bool
}

// given returns the memory that a call passes to its callee. It returns none for a musttail call, which passes the memory that its caller received:
// that memory is released when the caller would have returned.
func (d *decoder) given(i *ir.Instr) []given {
	if i.Call.Tail == "musttail" {
		return nil
	}
	var list []given
	for k, a := range i.Call.ArgAttrs {
		if a.InAlloca == nil && a.Preallocated == nil || k >= len(i.Args) {
			continue
		}
		if s, err := d.operand(i.Args[k]); err == nil && s.s.words == 1 {
			list = append(list, given{s, i.Args[k].Ref(), a.InAlloca != nil})
		}
	}
	return list
}

// give adds to owes the memory passed to the callee, which becomes undefined when the callee returns (InAlloca, "Callee-cleanup Calling
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
		if g.inalloca && object != in.stack.latest(fr.mark) {
			return nil, troublef(KindFault, "the inalloca argument %s is not the latest live alloca of @%s", g.name, fr.fn.ir.Name)
		}
		if err := in.work(object.size); err != nil {
			return nil, err
		}
		owes.given = append(owes.given, object)
	}
	return owes, nil
}

// taken makes the memory that a call passed to its callee undefined.
func (in *Interp) taken(given []span) {
	for _, s := range given {
		if object, ok := in.stack.holding(s.addr); ok && object == s {
			_ = in.view.fill(s.addr, word{u: 0xff}, s.size) // cannot fail: the whole allocation is accessible
		}
	}
}

// latest returns the last allocation, from index from on, that is neither part of a frame nor kept until its frame is left.
func (s *stack) latest(from int) span {
	for k := len(s.live) - 1; k >= from; k-- {
		if !s.live[k].fixed && !s.live[k].kept {
			return s.live[k]
		}
	}
	return span{}
}

// preallocatedIntrinsics allocate the memory of preallocated arguments before their call (LangRef, "Preallocated Calls").
var preallocatedIntrinsics = map[string]intrinsicDecoder{
	"call.preallocated.setup": setupPreallocated, "call.preallocated.arg": preallocatedArg,
	"call.preallocated.teardown": teardownPreallocated,
}

// maxPreallocated bounds the arguments of one call.
const maxPreallocated = 1 << 10

// fromBefore is a flag in the low bit of an aligned address: the memory still has the content of an earlier call.
const fromBefore = 1

// preallocated returns the slots of the frame that hold the addresses of one call's arguments, identified by its setup. An address is 0 until its
// memory is allocated. A frame allocates the memory once and reuses it when the setup runs again, because a call must end before the next one is set
// up.
func (d *decoder) preallocated(token ir.Value) ([]slot, error) {
	setup, ok := token.(*ir.Instr)
	if !ok || setup.Call == nil || len(setup.Args) != 1 || calleeName(setup) != "llvm.call.preallocated.setup" {
		return nil, troublef(KindModule, "%s is not a result of llvm.call.preallocated.setup", token.Ref())
	}
	if list, ok := d.setups[setup]; ok {
		return list, nil
	}
	n, ok := constantIndex(setup.Args[0])
	if !ok || n > maxPreallocated {
		return nil, unsupported("", "a call with that many preallocated arguments")
	}
	list := make([]slot, n)
	for k := range list {
		var err error
		if list[k], err = d.place(ir.I64); err != nil {
			return nil, err
		}
	}
	if d.setups == nil {
		d.setups = map[*ir.Instr][]slot{}
	}
	d.setups[setup] = list
	return list, nil
}

func setupPreallocated(d *decoder, i *ir.Instr, _ []slot, _ slot) (step, error) {
	list, err := d.preallocated(i)
	if err != nil {
		return nil, err
	}
	return func(fr *frame) error {
		for _, s := range list {
			if fr.w[s.at].u != 0 {
				fr.w[s.at] = word{}
			} else if fr.w[s.at].v != 0 {
				fr.w[s.at].v |= fromBefore
			}
		}
		return nil
	}, nil
}

func preallocatedArg(d *decoder, i *ir.Instr, _ []slot, out slot) (step, error) {
	if len(i.Args) != 2 || i.Call.Preallocated == nil || out.s.words != 1 {
		return nil, wrongUse(i)
	}
	list, err := d.preallocated(i.Args[0])
	if err != nil {
		return nil, err
	}
	k, ok := constantIndex(i.Args[1])
	if !ok || int(k) >= len(list) {
		return nil, wrongUse(i)
	}
	size, align := d.in.layout.Size(i.Call.Preallocated), d.in.layout.Align(i.Call.Preallocated)
	if size == ir.NoSize {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		at := &fr.w[list[k].at]
		if at.u != 0 {
			return unsupported("resume before its setup", "an argument of a preallocated call whose setup was not interpreted")
		}
		switch {
		case at.v&fromBefore != 0:
			at.v &^= fromBefore
			if err := fr.in.set(machine.Addr(at.v), word{u: 0xff}, size); err != nil {
				return err
			}
		case at.v == 0:
			a, err := fr.in.stack.allocKept(size, align)
			if err != nil {
				return err
			}
			at.v = uint64(a)
		}
		fr.w[out.at] = *at
		return nil
	}, nil
}

// teardownPreallocated releases the arguments where the call does not happen.
func teardownPreallocated(d *decoder, i *ir.Instr, _ []slot, _ slot) (step, error) {
	if len(i.Args) != 1 {
		return nil, wrongUse(i)
	}
	if _, err := d.preallocated(i.Args[0]); err != nil {
		return nil, err
	}
	return func(*frame) error { return nil }, nil
}
