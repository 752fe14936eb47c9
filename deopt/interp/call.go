package interp

import (
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// nativeHint returns advice for a call of a function that no module defines.
func (in *Interp) nativeHint() string {
	if in.opt.Hint != "" {
		return onlyNative + in.opt.Hint
	}
	return onlyNative + "link the module that defines it (llvm-link), or resume a frame further out"
}

const onlyNative = "it exists only as native code; "

// call decodes a call: of an intrinsic, of a function, or through a pointer.
func (d *decoder) call(i *ir.Instr, out slot) (step, error) {
	if i.Call == nil {
		return nil, troublef(KindModule, "a call without a callee")
	}
	if a, ok := i.Call.Callee.(*ir.InlineAsm); ok {
		return d.inlineAsm(i, a, out)
	}
	if f, ok := i.Call.Callee.(*ir.Func); ok && strings.HasPrefix(f.Name, "llvm.") && f.Declared() {
		return d.intrinsic(i, f.Name, out)
	}
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	if i.Sled() {
		return sled(out), nil
	}
	return d.callOf(i, i.Call.Callee, args, out)
}

// callOf decodes a call of callee. For a statepoint or patchpoint, the callee is one of the arguments.
func (d *decoder) callOf(i *ir.Instr, callee ir.Value, args []slot, out slot) (step, error) {
	if i.Call.Tail == "musttail" && !returned(i) {
		return nil, troublef(KindModule, "a musttail call must be followed by a ret of its result")
	}
	c := &callSite{i: i, args: args, out: out, plain: !passesMemory(i), gives: d.given(i), floats: callPromises(i, args, out)}
	c.tail = i.Call.Tail == "musttail" && c.plain
	if f, ok := callee.(*ir.Func); ok {
		live, err := d.bundle(i, "deopt")
		if err != nil {
			return nil, err
		}
		if f.Name == "__llvm_deoptimize" && f.Declared() {
			return func(fr *frame) error { return deoptimizes(fr, f.Name, args, live) }, nil
		}
		target := callTarget{f: f, name: f.Name}
		return func(fr *frame) error {
			if c.fn != nil { // an earlier run of this call resolved the name
				return c.enter(fr, c.fn.ir)
			}
			return c.call(fr, target)
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
		t, err := fr.in.callee(a)
		if err != nil {
			return err
		}
		return c.call(fr, t)
	}, nil
}

// returned reports whether the call is followed by a ret that returns the call's result (also after a bitcast), undef or no value. A musttail call
// requires such a ret (LangRef, "call").
func returned(i *ir.Instr) bool {
	rest, v := i.Block.Instrs[i.Index+1:], ir.Value(i)
	if len(rest) > 1 && rest[0].Op == ir.OpBitCast && rest[0].Args[0] == v {
		rest, v = rest[1:], rest[0]
	}
	if len(rest) == 0 || rest[0].Op != ir.OpRet {
		return false
	}
	if len(rest[0].Args) == 0 {
		return true
	}
	c, ok := rest[0].Args[0].(*ir.Const)
	return rest[0].Args[0] == v || ok && (c.Kind == ir.ConstUndef || c.Kind == ir.ConstPoison)
}

// callee returns the call target at an address. It returns an error if the interpreter cannot call that address.
func (in *Interp) callee(a machine.Addr) (callTarget, error) {
	f, name := in.names.funcAt(a)
	switch {
	case f != nil && strings.HasPrefix(name, "llvm."):
		return callTarget{}, unsupported("", "a call of the intrinsic @%s through a pointer", name)
	case name == "" && a < pageSize:
		return callTarget{}, troublef(KindFault, "call of a null pointer")
	case name == "" && (in.opt.Native == nil || in.view.ranges.own(a)):
		return callTarget{}, unsupported(in.nativeHint(), "a call of %v, which is not a function of the module,", a)
	}
	return callTarget{f, name, a}, nil
}

// callTarget is the target of a call: a function of the module, a function that is known only by name, or only an address.
type callTarget struct {
	f    *ir.Func
	name string
	at   machine.Addr // 0 for a call by name
}

// callSite describes one call instruction.
type callSite struct {
	i      *ir.Instr
	args   []slot
	out    slot
	plain  bool         // no argument is byval
	gives  []given      // inalloca arguments
	tail   bool         // musttail: the callee replaces the caller's frame
	floats *callPromise // nil if the call has no flags nnan and ninf
	fn     *function    // the last callee, which accepts these arguments
}

// passesMemory reports whether an argument is byval: the callee gets a copy of the memory to which it points.
func passesMemory(i *ir.Instr) bool {
	for _, a := range i.Call.ArgAttrs {
		if a.ByVal != nil {
			return true
		}
	}
	return false
}

// call pushes a frame for a function of the module, or runs a built-in function to its end.
func (c *callSite) call(fr *frame, t callTarget) error {
	in := fr.in
	f, err := in.body(t.f)
	if err != nil {
		return err
	}
	if f != nil {
		return c.enter(fr, f)
	}
	mark := len(in.stack.live)
	values, err := c.values(fr)
	if err == nil {
		owed := c.floats.owed(fr)
		in.run.site = c
		err = in.builtin(t, values, c.out.s, c.out.in(fr))
		owed.enforce(c.out.in(fr))
	}
	in.stack.unwind(mark)
	return err
}

// body returns the function with a body that a call of f runs, or nil if no module has one.
func (in *Interp) body(f *ir.Func) (*ir.Func, error) {
	if f == nil {
		return nil, nil
	}
	d, err := in.names.defined(f)
	if err != nil {
		return nil, err
	}
	switch d := d.(type) {
	case *ir.Func:
		if !d.Declared() {
			return d, nil
		}
	case *ir.Alias:
		a, err := in.names.of(d)
		if err != nil {
			return nil, err
		}
		if f := in.names.funcs[a]; f != nil && !f.Declared() {
			return f, nil
		}
	}
	return nil, nil
}

// holds returns an error if there is not enough memory to copy the arguments. The arguments can have more words than the frame, because a call may
// pass one value many times.
func (in *Interp) holds(args []slot) error {
	n := 0
	for _, a := range args {
		n += a.s.words
	}
	if n <= wide {
		return nil
	}
	err := in.view.charge(16 * uint64(n))
	if err == nil {
		in.view.release(16 * uint64(n))
	}
	return err
}

// values returns the arguments as the callee receives them.
func (c *callSite) values(fr *frame) ([]Value, error) {
	if err := fr.in.holds(c.args); err != nil {
		return nil, err
	}
	values := make([]Value, len(c.args))
	for k, a := range c.args {
		values[k] = Value{a.s, slices.Clone(a.in(fr))}
	}
	if c.plain {
		return values, nil
	}
	return values, fr.in.passInMemory(c.i, values)
}

func (c *callSite) enter(fr *frame, f *ir.Func) error {
	in := fr.in
	fn := c.fn
	if fn == nil || fn.ir != f {
		var err error
		if fn, err = in.function(f); err != nil {
			return err
		}
		if err := c.accepts(fn); err != nil {
			return err
		}
		c.fn = fn
	}
	mark, ret, owes := len(in.stack.live), c.out.in(fr), c.floats.owed(fr)
	if c.gives != nil {
		var err error
		if owes, err = c.give(fr, owes); err != nil {
			return err
		}
	}
	var values []Value
	if c.tail || !c.plain || f.Sig.Variadic {
		var err error
		if values, err = c.values(fr); err != nil {
			return err
		}
		if c.tail {
			if f.Sig.Variadic { // a musttail call passes on the variadic arguments of its caller
				values = append(values, fr.variadic...)
			}
			// The callee replaces the caller's frame (LangRef, "call").
			if !alike(fn.ret, fr.fn.ret) {
				return troublef(KindModule, "@%s returns %v, but replaces @%s (musttail), which returns %v",
					f.Name, fn.ret.typ, fr.fn.ir.Name, fr.fn.ret.typ)
			}
			mark, ret = fr.mark, fr.ret
			owes = owes.with(fr.owes)
			fr.abandon(true)
			in.pop()
		}
	}
	callee, err := in.push(fn, ret, mark)
	if err != nil {
		return err
	}
	callee.owes = owes
	in.run.entered = true
	fn.blocks[0].runs++
	if values != nil {
		return callee.take(values)
	}
	for k, p := range fn.params {
		if p.s.words == 1 {
			callee.w[p.at] = fr.w[c.args[k].at]
		} else {
			copy(p.in(callee), c.args[k].in(fr))
		}
	}
	return nil
}

// take sets the parameters of the running frame to the arguments. It removes the frame if there is not enough memory for the variadic arguments.
func (fr *frame) take(args []Value) error {
	for k, p := range fr.fn.params {
		copy(p.in(fr), args[k].w)
	}
	fr.variadic = append([]Value{}, args[len(fr.fn.params):]...)
	cost := uint64(0)
	for _, v := range fr.variadic {
		cost += frameCost(len(v.w))
	}
	if err := fr.in.view.charge(cost); err != nil {
		fr.abandon(false)
		fr.in.pop()
		return err
	}
	fr.held = cost
	return nil
}

// accepts returns an error if this call site cannot call the function.
func (c *callSite) accepts(fn *function) error {
	types := make([]*shape, len(c.args))
	for k, a := range c.args {
		types[k] = a.s
	}
	if err := fn.takes(types); err != nil {
		return err
	}
	if c.out.s.words > 0 && !alike(fn.ret, c.out.s) {
		return troublef(KindModule, "@%s returns %v, but the call expects %v", fn.ir.Name, fn.ret.typ, c.out.s.typ)
	}
	return nil
}

// takes returns an error if arguments of these shapes do not fit the function's parameters.
func (fn *function) takes(args []*shape) error {
	f := fn.ir
	if len(args) < len(fn.params) || len(args) > len(fn.params) && !f.Sig.Variadic {
		return troublef(KindModule, "@%s takes %d arguments, got %d", f.Name, len(fn.params), len(args))
	}
	for k, p := range fn.params {
		if args[k] == nil || !alike(args[k], p.s) {
			return troublef(KindModule, "argument %d of @%s has type %v; expected %v", k+1, f.Name, Value{s: args[k]}.Type(), p.s.typ)
		}
	}
	return nil
}

// maxNested bounds the nesting of calls from built-in functions into the module, because each level uses Go's own stack.
const maxNested = 1000

// enterCall runs a function to its end for a built-in function that called it. ret receives the result; it has the words of want, or none.
func (in *Interp) enterCall(t callTarget, args []Value, want *shape, ret []word) error {
	f, err := in.body(t.f)
	if err != nil {
		return err
	}
	if f == nil {
		return in.builtin(t, args, want, ret)
	}
	if in.run.nested == maxNested {
		return troublef(KindDepth, "callbacks from functions of the C library are nested deeper than %d", maxNested)
	}
	base := in.frames.n
	if err := in.prepare(f, args, want, ret); err != nil {
		return err
	}
	in.run.nested++
	err = in.loop(base)
	in.run.nested--
	return err
}

// prepare pushes a frame of a function, and sets its parameters to the arguments.
func (in *Interp) prepare(f *ir.Func, args []Value, want *shape, ret []word) error {
	fn, err := in.function(f)
	if err != nil {
		return err
	}
	types := make([]*shape, len(args))
	for k, a := range args {
		types[k] = a.s
	}
	if err := fn.takes(types); err != nil {
		return err
	}
	if want.words > 0 && !alike(fn.ret, want) {
		return troublef(KindModule, "@%s returns %v, but the call expects %v", f.Name, fn.ret.typ, want.typ)
	}
	fr, err := in.push(fn, ret, len(in.stack.live))
	if err != nil {
		return err
	}
	fn.blocks[0].runs++
	return fr.take(args)
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
	return in.view.move(to, from, size)
}

// builtin runs a built-in function.
func (in *Interp) builtin(t callTarget, args []Value, want *shape, ret []word) error {
	name := t.name
	f := in.external(name)
	if f == nil {
		return unsupported(in.nativeHint(), "a call of @%s", name)
	}
	if err := in.work(64); err != nil {
		return err
	}
	f.Count++
	site := in.run.site
	in.run.site = nil
	c := &Invocation{Name: name, At: t.at, Args: args, Result: want.typ, in: in, ret: want, site: site}
	v, err := in.inEnvironment(c, f)
	switch {
	case err != nil || want.words == 0:
		return err
	case v.s == nil || !alike(v.s, want):
		return troublef(KindModule, "@%s returned a value of type %v; expected %v", name, v.Type(), want.typ)
	}
	copy(ret, v.w)
	return nil
}

// bundle returns the operands of a call's operand bundle.
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

// deoptimizes ends the run with the values that the exit passes to the runtime.
func deoptimizes(fr *frame, callee string, args, live []slot) error {
	if err := fr.in.holds(slices.Concat(args, live)); err != nil {
		return err
	}
	e := &DeoptimizeError{Callee: callee}
	for _, a := range args {
		e.Args = append(e.Args, Value{a.s, slices.Clone(a.in(fr))})
	}
	for _, a := range live {
		e.Live = append(e.Live, Value{a.s, slices.Clone(a.in(fr))})
	}
	return &trouble{KindDeoptimize, e}
}
