package verify

import (
	"context"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"slices"
	"strings"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// crossing is a native call in progress: both sides came to it, native code runs it, and its result and stores are passed to the interpreter.
type crossing struct {
	call    *call
	before  *memoryImage // at the callee's entry
	members []*prediction
}

// twin is a pair of objects: memory that the interpreter made, and the memory that native code has in its place.
type twin struct{ own, native machine.Range }

// Bounds of the objects that passed pointers refer to.
const (
	maxPointee = 64 << 10
	maxTwins   = 1024
)

// stopped handles the interpreter when it stops: at a native call, or at the end of the run (nil). why is the reason why nothing can be compared. A
// run from an entry keeps that reason for later exits.
func (p *prediction) stopped(v *verifier, c *interp.Invocation) (why string, err error) {
	why, err = p.interp.stop(v.ctx, c)
	if r := p.interp.result; r != nil {
		p.out.Interpreter.Steps = r.Steps
	}
	if p.entry != nil && why != "" {
		p.interp.incomparable, p.interp.pending, why = why, nil, ""
	}
	return why, err
}

// beside returns the pending predictions whose interpreter is in step with the code that runs now: the thread is in their activation, and not in a
// native call made from there.
func (v *verifier) beside() (list []*prediction) {
	for _, p := range v.pending {
		for c := v.now; c != nil && c.native == nil; c = c.outer {
			if c == p.call {
				list = append(list, p)
				break
			}
		}
	}
	return list
}

// entered handles a thread at the entry of a function that an interpreter waits to call. It compares the arguments, and starts the native call if
// they are equal.
func (v *verifier) entered(run *ptrace.AloneRun) error {
	t, err := v.session.Target()
	if err != nil {
		return err
	}
	if err := v.locate(v.walked(run.Thread.Registers)); err != nil {
		return err
	}
	c := &crossing{}
	c.call = &call{to: run.Back, outer: v.now, native: c}
	var told []*prediction
	for _, p := range v.beside() {
		if p.interp.pending == nil || p.interp.callee != run.Entered {
			p.native.ranOutside = true // this prediction's interpreter does not make the call, or not yet
			continue
		}
		p.out.Calls++
		different, why := p.compareArguments(run.Thread.Registers, t)
		switch {
		case different != nil:
			p.out.Status, p.out.Call = Different, different
			if p.undecided(v); p.out.Status == Different {
				p.explain(v)
			}
			told = append(told, p)
		case why != "":
			p.out.notComparable(why)
			told = append(told, p)
		default:
			c.members = append(c.members, p)
		}
	}
	if err := v.drop(told); err != nil || len(c.members) == 0 {
		return err
	}
	maps, err := t.Mappings()
	if err != nil {
		return err
	}
	if c.before, err = copyImage(t, maps, v.options.Memory, v.memory); err != nil {
		for _, p := range c.members {
			p.out.notComparable(err.Error())
		}
		return v.drop(c.members)
	}
	for _, p := range c.members {
		p.dead = append(p.dead, bound(p.effects.now, c.before, run.Entered, maps)...)
	}
	v.memory, v.now = c.before, c.call
	v.crossings = append(v.crossings, c)
	return nil
}

// bound returns the memory that the dynamic linker wrote when it bound a function on the way to its entry: the slot of the procedure linkage table,
// which pointed to the resolver (lazy binding, ld.so(8), LD_BIND_NOW), and data of the linker's own. The interpreter has no counterpart of these
// stores.
func bound(before, now *memoryImage, entry machine.Addr, maps []machine.Mapping) (slots []machine.Range) {
	code := func(at machine.Addr) bool {
		return slices.ContainsFunc(maps, func(m machine.Mapping) bool { return m.Exec && m.Contains(at) })
	}
	defer func() {
		if len(slots) == 0 {
			return
		}
		for _, m := range maps { // the dynamic linker counts relocations in its data
			if m.Write && strings.HasPrefix(filepath.Base(m.Path), "ld-") {
				slots = append(slots, machine.Range{Start: m.Start, End: m.End})
			}
		}
	}()
	for n := range now.blocks {
		b := &now.blocks[n]
		was := before.block(b.addr)
		if b.data == nil || was == nil || was.data == nil || was.addr != b.addr || was.size != b.size || &was.data[0] == &b.data[0] {
			continue
		}
		for at := 0; at+diffWord <= b.size; at += diffWord {
			old := binary.LittleEndian.Uint64(was.data[at:])
			if binary.LittleEndian.Uint64(b.data[at:]) == uint64(entry) && old != uint64(entry) && code(machine.Addr(old)) {
				slots = append(slots, machine.Range{Start: b.addr + machine.Addr(at), End: b.addr + machine.Addr(at+diffWord)})
			}
		}
	}
	return slots
}

// drop reports exits that are decided, and removes them.
func (v *verifier) drop(done []*prediction) error {
	if len(done) == 0 {
		return nil
	}
	for _, c := range v.crossings {
		c.members = slices.DeleteFunc(c.members, func(p *prediction) bool { return slices.Contains(done, p) })
	}
	v.pending = slices.DeleteFunc(v.pending, func(p *prediction) bool { return slices.Contains(done, p) })
	v.settle()
	for _, p := range done {
		p.finish()
	}
	return v.report(done)
}

// cameBack passes the effects of a callee to the predictions that called it.
func (v *verifier) cameBack(c *crossing, regs *machine.Registers) error {
	v.crossings = slices.DeleteFunc(v.crossings, func(x *crossing) bool { return x == c })
	if err := v.leave(c.call); err != nil { // what was called from there
		return err
	}
	v.now = c.call.outer
	v.settle()
	t, err := v.session.Target()
	if err != nil {
		return err
	}
	maps, err := t.Mappings()
	if err != nil {
		return err
	}
	after, err := copyImage(t, maps, v.options.Memory, c.before)
	if err != nil {
		for _, p := range c.members {
			p.out.notComparable(err.Error())
		}
		return v.drop(c.members)
	}
	v.memory = after
	list := changes(c.before, after, t)
	var told []*prediction
	for _, p := range c.members {
		why, err := p.hand(v, list, after, regs)
		if err != nil {
			return err
		}
		if why != "" {
			p.out.notComparable(why)
			told = append(told, p)
		}
	}
	return v.drop(told)
}

// hand passes the effects of native code to the interpreter in place of the call that it waits for, and lets it continue.
func (p *prediction) hand(v *verifier, list []changed, after *memoryImage, regs *machine.Registers) (why string, err error) {
	c := p.interp.pending
	if floats, err := regs.FloatControl(); err == nil && p.floats != nil && floats != *p.floats {
		return fmt.Sprintf("%s changed the floating-point environment, which the interpreter cannot follow", calleeName(c)), nil
	}
	h := callEffects{memory: list, after: after}
	if c.Result.Kind != ir.VoidKind {
		site := c.Site()
		if h.value, err = abi.ReturnedValue(c.Result, site.Call.CC, regs); err != nil {
			return fmt.Sprintf("what %s returned: %v", calleeName(c), err), nil
		}
		h.value = p.ownResult(h.value)
	}
	p.retained = p.retained || p.keeps(list, after)
	h.objects = p.changedObjects(list, after)
	p.effects.add(h)
	p.interp.memory.image = p.effects.now
	if err := h.applyTo(p.interp.machine); err != nil {
		return "the interpreter cannot take what native code stored: " + err.Error(), nil
	}
	return p.stopped(v, p.interp.runner.tell(h.value))
}

// rerun makes the interpreter again, for a run that gets the effects of native code as the first one did. It returns an error if it cannot, for
// example because those effects were too large to be kept. wait is as in [prediction.visit].
func (p *prediction) rerun(v *verifier, trace func(interp.Traced), wait func() bool) (in *interp.Interp, run func(context.Context) (*interp.Result, error), err error) {
	if p.effects.tooLarge() {
		return nil, nil, errTooMuch
	}
	p.runs++
	var native interp.Builtin
	memory := &imageMemory{image: p.effects.first, now: v.watcher.View().Target()}
	o := v.interpreter()
	o.Trace, o.Memory, o.Native = trace, memory, func(c *interp.Invocation) (interp.Value, error) { return native(c) }
	if in, run, err = p.prepare(o); err == nil {
		native = p.effects.replay(in, memory, wait)
	}
	return in, run, err
}

// CallDifference is a native call that only one of the two makes, or the first argument of it that differs.
type CallDifference struct {
	Callee      string `json:"callee"`
	Only        string `json:"only,omitempty"`     // "interpreter" or "native": who makes it
	Argument    int    `json:"argument,omitempty"` // from 1
	Type        string `json:"type,omitempty"`
	Register    string `json:"register,omitempty"` // or "stack+8"
	At          string `json:"at,omitempty"`       // "+8": offset in the memory that the argument points to
	Interpreter string `json:"interpreter,omitempty"`
	Native      string `json:"native,omitempty"`
	Line        int    `json:"line,omitempty"` // line of the call in the module
}

// String describes the difference without the two values: "argument 2 of @puts, ptr in rsi: what it points to differs at +8".
func (d *CallDifference) String() string {
	switch what := fmt.Sprintf("argument %d of %s, %s in %s", d.Argument, d.Callee, d.Type, d.Register); {
	case d.Only == "native":
		return fmt.Sprintf("native code calls %s, and the interpreter does not", d.Callee)
	case d.Only != "":
		return fmt.Sprintf("the interpreter calls %s, and native code returns without it", d.Callee)
	case d.At != "":
		return what + ": what it points to differs at " + d.At
	default:
		return what
	}
}

// compareArguments compares the arguments of the interpreter's call with native code's. why is the reason why that is impossible.
func (p *prediction) compareArguments(regs *machine.Registers, mem machine.Memory) (d *CallDifference, why string) {
	c := p.interp.pending
	site := c.Site()
	s := abi.Signature{Layout: site.Block.Func.Module.Layout, CC: site.Call.CC}
	for _, a := range c.Args {
		s.Types = append(s.Types, a.Type())
	}
	if len(site.Call.ArgAttrs) == len(c.Args) { // statepoints and patchpoints have more attributes than arguments
		s.Attrs = site.Call.ArgAttrs
	}
	p.passed = map[machine.Addr]machine.Addr{}
	for n, a := range abi.Arguments(s, regs.Arch()) {
		value, err := a.Read(regs, mem)
		if err != nil {
			return nil, fmt.Sprintf("argument %d of %s: %v", n+1, calleeName(c), err)
		}
		attrs := ir.ParamAttrs{}
		if n < len(s.Attrs) {
			attrs = s.Attrs[n]
		}
		at, same, why := p.sameArgument(c.Args[n], value, attrs, s.Layout, mem)
		if why != "" {
			return nil, fmt.Sprintf("argument %d of %s: %s", n+1, calleeName(c), why)
		}
		if !same {
			return &CallDifference{Callee: calleeName(c), Argument: n + 1, Type: a.Type.String(), Register: a.Where(), At: at,
				Interpreter: c.Args[n].Format(), Native: value.Format(), Line: site.Line}, ""
		}
	}
	return nil, ""
}

// sameArgument compares one argument; at is the offset of a difference in the memory that it points to.
func (p *prediction) sameArgument(own, native interp.Value, attrs ir.ParamAttrs, layout *ir.DataLayout, mem machine.Memory) (at string, same bool, why string) {
	same = abi.SameBits(own, native)
	a, isAddr := own.Uint()
	t := own.Type()
	if !isAddr || t.Kind != ir.PointerKind && (t.Kind != ir.IntKind || t.Bits != 64) {
		return "", same, ""
	}
	b, _ := native.Uint()
	if p.interp.machine.Made(a) {
		if t.Kind == ir.IntKind {
			if !same {
				why = "a number that is an address where the interpreter has memory of its own"
			}
			return "", same, why
		}
		p.passed[machine.Addr(b)] = machine.Addr(a)
		return p.sameObject(machine.Addr(a), machine.Addr(b), mem, 0)
	}
	if !same || t.Kind != ir.PointerKind || a == 0 {
		return "", same, ""
	}
	size := attrs.Dereferenceable
	for _, in := range []*ir.Type{attrs.ByVal, t.Elem} { // in LLVM 14 a pointer has the type that it points to
		if in != nil && (in.First() || in.Kind == ir.ArrayKind || in.Kind == ir.StructKind && !in.Opaque) {
			size = max(size, layout.Size(in))
		}
	}
	return p.sameMemory(machine.Addr(a), machine.Addr(b), min(size, maxPointee), mem, 0)
}

// sameObject compares an object of the interpreter with the memory that native code has in its place. It may be another object: a freed one may have
// had the address. depth is the number of pointers that led there.
func (p *prediction) sameObject(own, native machine.Addr, mem machine.Memory, depth int) (at string, same bool, why string) {
	n := p.interp.machine.Extent(own, maxPointee)
	switch {
	case n == 0 && p.interp.machine.Extent(own-1, 1) > 0: // right after its end
		if t, ok := p.toOwn(native); ok && t == own {
			return "", true, ""
		}
		return p.sameObject(own-1, native-1, mem, depth)
	case n == 0:
		return "", false, "it points to what the interpreter has an address of its own for"
	}
	if !slices.ContainsFunc(p.twins, func(t twin) bool { return t.own.Contains(own) && native-t.native.Start == own-t.own.Start }) {
		p.twins = slices.DeleteFunc(p.twins, func(t twin) bool {
			return t.own.Contains(own) || t.own.Start >= own && t.own.Start < own+machine.Addr(n)
		})
		if len(p.twins) == maxTwins {
			return "", false, "too many pointers to memory of the interpreter's own were passed"
		}
		p.twins = append(p.twins, twin{machine.Range{Start: own, End: own + machine.Addr(n)}, machine.Range{Start: native, End: native + machine.Addr(n)}})
	}
	return p.sameMemory(own, native, n, mem, depth)
}

// changedObjects returns the changes by native code in memory that the interpreter has elsewhere: the bytes that changed, and all bytes whose value
// was not known before, as native code may have stored equal ones.
func (p *prediction) changedObjects(list []changed, after *memoryImage) (objects []changed) {
	in := p.interp.machine
	p.twins = slices.DeleteFunc(p.twins, func(t twin) bool { return in.Extent(t.own.Start, 1) == 0 })
	for _, t := range p.twins {
		for _, ch := range list {
			start, end := max(ch.addr, t.native.Start), min(ch.addr+machine.Addr(len(ch.data)), t.native.End)
			if start < end {
				objects = append(objects, changed{addr: t.own.Start + start - t.native.Start, data: ch.data[start-ch.addr : end-ch.addr]})
			}
		}
		for done := machine.Addr(0); done < t.own.End-t.own.Start; {
			own := t.own.Start + done
			n := min(t.own.End-own, imagePage-own%imagePage)
			data, undefined, now := make([]byte, n), make([]byte, n), make([]byte, n)
			if in.Peek(data, undefined, own) != nil {
				break
			}
			if now = now[:after.read(now, t.native.Start+done)]; len(now) == 0 {
				break
			}
			for i, u := range undefined[:len(now)] {
				if u != 0 {
					objects = append(objects, changed{addr: own + machine.Addr(i), data: now[i : i+1]})
				}
			}
			done += machine.Addr(len(now))
		}
	}
	return append(objects, p.ownWords(objects, after)...)
}

// sameMemory compares the interpreter's memory at an address with native code's at another. Unknown bits equal any bits, and a pointer to memory of
// the interpreter's own equals one to the memory that native code has in its place.
func (p *prediction) sameMemory(own, native machine.Addr, size uint64, mem machine.Memory, depth int) (at string, same bool, why string) {
	data, undefined, have := make([]byte, imagePage), make([]byte, imagePage), make([]byte, imagePage)
	for done := uint64(0); done < size; {
		n := min(size-done, imagePage-uint64(own)%imagePage)
		if p.interp.machine.Peek(data[:n], undefined[:n], own) != nil || mem.ReadMemory(have[:n], native) != nil {
			return "", true, "" // unreadable memory cannot be compared
		}
		for i := uint64(0); i < n; i++ {
			if (data[i]^have[i])&^undefined[i] == 0 {
				continue
			}
			same, why := p.sameWord(own+machine.Addr(i), native+machine.Addr(i), mem, depth)
			if why != "" {
				return "", false, why
			}
			if same {
				i += 7 - (uint64(own)+i)%8
				continue
			}
			return fmt.Sprintf("+%d", done+i), false, ""
		}
		done, own, native = done+n, own+machine.Addr(n), native+machine.Addr(n)
	}
	return "", true, ""
}

// sameWord compares the words around two bytes that differ, also where only a part of the words is passed: the interpreter's may be the address of
// its own memory.
func (p *prediction) sameWord(own, native machine.Addr, mem machine.Memory, depth int) (same bool, why string) {
	var data, undefined, have [8]byte
	into := own % 8
	if p.interp.machine.Peek(data[:], undefined[:], own-into) != nil || mem.ReadMemory(have[:], native-into) != nil {
		return false, ""
	}
	word := binary.LittleEndian.Uint64(data[:])
	if undefined != [8]byte{} || !p.interp.machine.Made(word) {
		return false, ""
	}
	return p.sameNested(machine.Addr(word), machine.Addr(binary.LittleEndian.Uint64(have[:])), mem, depth)
}

// missed handles a call of the interpreter that native code returned without.
func (p *prediction) missed() {
	c := p.interp.pending
	p.interp.pending = nil
	if p.leftOut(c) {
		p.out.notComparable(fmt.Sprintf("native code returned without the call of %s, or made it in a way that was not seen", calleeName(c)))
		return
	}
	p.out.Status, p.out.Call = Different, &CallDifference{Callee: calleeName(c), Only: "interpreter", Line: c.Site().Line}
}

// leftOut reports whether a compiler may have omitted a call of the interpreter that native code does not make, or verify may not have seen it.
func (p *prediction) leftOut(c *interp.Invocation) bool {
	var callee *ir.Func
	if site := c.Site(); site != nil && c.Name != "" {
		callee = site.Block.Func.Module.Func(c.Name)
	}
	return p.native.ranOutside || callee == nil || callee.StoresNothing() || allocates(c.Name)
}

// extra returns a call that the module's native code makes and that the interpreter did not reach, or nil.
func (p *prediction) extra(v *verifier) *CallDifference {
	if !p.native.ranOutside || p.fn != p.nativeFunction() { // a layout's baseline: native code calls through a runtime
		return nil
	}
	unwinder := v.watcher.View().Unwinder()
	went := map[machine.Addr]bool{}
	for _, at := range p.native.called {
		went[at] = true
		for to := range unwinder.Stubs(at) {
			went[to] = true
		}
	}
	for _, callee := range p.fn.Module.Funcs {
		if !callee.Declared() || strings.HasPrefix(callee.Name, "llvm.") || callee.StoresNothing() || !interp.LeftToNative(callee.Name) ||
			len(v.watcher.View().Modules().Definitions(callee.Name)) > 0 {
			continue
		}
		if at, ok := p.interp.symbol(callee.Name); ok && went[at] {
			return &CallDifference{Callee: "@" + callee.Name, Only: "native"}
		}
	}
	return nil
}
