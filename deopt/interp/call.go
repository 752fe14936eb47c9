package interp

import (
	"slices"
	"strings"

	"reframe/deopt/ir"
	"reframe/deopt/machine"
)

// nativeHint is what can be done about a function that is not here.
const nativeHint = "it exists only as native code; resume a frame further out, or give the module a body for it"

// call decodes a call: of an intrinsic, of a function, or through a pointer.
func (d *decoder) call(i *ir.Instr, out slot) (step, error) {
	if i.Call == nil {
		return nil, troublef(KindModule, "a call without a callee")
	}
	if _, ok := i.Call.Callee.(*ir.InlineAsm); ok {
		return nil, unsupported(nativeHint, "inline assembly")
	}
	if f, ok := i.Call.Callee.(*ir.Func); ok && strings.HasPrefix(f.Name, "llvm.") && f.Declared() {
		return d.intrinsic(i, f.Name, out)
	}
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	return d.callOf(i, i.Call.Callee, args, out)
}

// callOf decodes the call of callee, which of a statepoint or patchpoint is an
// argument.
func (d *decoder) callOf(i *ir.Instr, callee ir.Value, args []slot, out slot) (step, error) {
	run := func(fr *frame, target callTarget) error {
		in := fr.in
		mark := len(in.stack.live)
		values := make([]Value, len(args))
		for k, a := range args {
			values[k] = Value{a.s, a.in(fr)}
		}
		if err := in.byValue(i, values); err != nil {
			return err
		}
		err := in.enterCall(target, values, out.s, out.in(fr))
		in.stack.unwind(mark)
		return err
	}
	if f, ok := callee.(*ir.Func); ok {
		live, err := d.bundle(i, "deopt")
		if err != nil {
			return nil, err
		}
		return func(fr *frame) error {
			if f.Name == "__llvm_deoptimize" && f.Declared() {
				return deoptimizes(fr, f.Name, args, live)
			}
			return run(fr, callTarget{f, f.Name})
		}, nil
	}
	at, err := d.operand(callee)
	if err != nil {
		return nil, err
	}
	if at.s.typ.Kind != ir.PointerKind {
		return nil, troublef(KindModule, "call of a value of type %v", at.s.typ)
	}
	return func(fr *frame) error {
		a, err := pointer(fr, at)
		if err != nil {
			return err
		}
		f, name := fr.in.names.funcAt(a)
		switch {
		case f != nil && strings.HasPrefix(name, "llvm."):
			return unsupported("", "a call of the intrinsic @%s through a pointer", name)
		case name == "" && a < pageSize:
			return troublef(KindFault, "call of a null pointer")
		case name == "":
			return unsupported(nativeHint, "a call of %v, where no function of the module is,", a)
		}
		return run(fr, callTarget{f, name})
	}, nil
}

// callTarget is a function of the module, or a name that only the C library's
// table can know.
type callTarget struct {
	f    *ir.Func
	name string
}

// enterCall runs the callee to its end. ret has the words of want.
func (in *Interp) enterCall(t callTarget, args []Value, want *shape, ret []word) error {
	if t.f == nil || t.f.Declared() {
		return in.builtin(t.name, args, want, ret)
	}
	s, err := in.shapes.of(t.f.Sig.Elem)
	if err != nil {
		return err
	}
	switch {
	case want.words == 0:
		ret = make([]word, s.words)
	case !alike(s, want):
		return troublef(KindModule, "@%s returns %v and is called for %v", t.name, s.typ, want.typ)
	}
	return in.invoke(t.f, args, ret)
}

// invoke runs a function that has a body.
func (in *Interp) invoke(f *ir.Func, args []Value, ret []word) error {
	if f.Declared() {
		s, err := in.shapes.of(f.Sig.Elem)
		if err != nil {
			return err
		}
		return in.builtin(f.Name, args, s, ret)
	}
	fn, err := in.function(f)
	if err != nil {
		return err
	}
	if len(args) < len(fn.params) || len(args) > len(fn.params) && !f.Sig.Variadic {
		return troublef(KindModule, "@%s takes %d arguments and is called with %d", f.Name, len(fn.params), len(args))
	}
	for k, p := range fn.params {
		if !alike(args[k].s, p.s) {
			return troublef(KindModule, "argument %d of @%s has type %v where %v is wanted", k+1, f.Name, args[k].Type(), p.s.typ)
		}
	}
	fr, err := in.enter(fn, ret)
	if err != nil {
		return err
	}
	defer in.leave(fn, fr)
	for k, p := range fn.params {
		copy(p.in(fr), args[k].w)
	}
	return in.exec(fr, fn.blocks[0], 0)
}

// byValue gives the callee its own copy of memory that is passed by value.
func (in *Interp) byValue(i *ir.Instr, args []Value) error {
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
		a, err := in.stack.alloc(size, max(in.layout.Align(t), i.Call.ArgAttrs[k].Align))
		if err != nil {
			return err
		}
		if err := in.move(a, machine.Addr(from), size); err != nil {
			return err
		}
		args[k] = in.scalar(args[k].s, uint64(a))
	}
	return nil
}

// move copies memory with its undefined bits; the ranges may overlap.
func (in *Interp) move(to, from machine.Addr, size uint64) error {
	if size == 0 {
		return nil
	}
	if err := in.work(size); err != nil {
		return err
	}
	if size > in.view.limit {
		return troublef(KindMemory, "a copy of %d bytes is more than the %d bytes of memory allowed", size, in.view.limit)
	}
	data, shadow := make([]byte, size), make([]byte, size)
	if err := in.view.read(data, shadow, from); err != nil {
		return err
	}
	return in.view.write(to, data, shadow)
}

// builtin runs a function of the table.
func (in *Interp) builtin(name string, args []Value, want *shape, ret []word) error {
	b := in.opt.Funcs[name]
	if b == nil {
		b = libc[name]
	}
	if b == nil {
		return unsupported(nativeHint, "a call of @%s", name)
	}
	if err := in.work(64); err != nil {
		return err
	}
	// Arguments lie in the caller's frame, which a builtin must not see change.
	for k := range args {
		args[k].w = slices.Clone(args[k].w)
	}
	v, err := b(&Invocation{Name: name, Args: args, Result: want.typ, in: in, ret: want})
	switch {
	case err != nil || want.words == 0:
		return err
	case v.s == nil || !alike(v.s, want):
		return troublef(KindModule, "@%s gives a value of type %v where %v is wanted", name, v.Type(), want.typ)
	}
	copy(ret, v.w)
	return nil
}

// bundle finds the operands of a call's operand bundle.
func (d *decoder) bundle(i *ir.Instr, tag string) ([]slot, error) {
	var list []slot
	for _, b := range i.Call.Bundles {
		if b.Tag != tag {
			continue
		}
		for _, v := range b.Args {
			s, err := d.operand(v)
			if err != nil {
				return nil, err
			}
			list = append(list, s)
		}
	}
	return list, nil
}

// deoptimizes ends the run with the values that the exit would hand over.
func deoptimizes(fr *frame, callee string, args, live []slot) error {
	e := &DeoptimizeError{Callee: callee}
	for _, a := range args {
		e.Args = append(e.Args, Value{a.s, slices.Clone(a.in(fr))})
	}
	for _, a := range live {
		e.Live = append(e.Live, Value{a.s, slices.Clone(a.in(fr))})
	}
	return &trouble{KindDeoptimize, e}
}
