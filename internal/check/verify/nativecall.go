package verify

import (
	"encoding/binary"
	"path/filepath"
	"slices"
	"strings"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// nativeCall is a native call in progress. Both sides have reached it. Native code runs it, and its result and stores are then passed to the
// interpreter.
type nativeCall struct {
	call        *call
	before      *memoryImage // memory at the callee's entry
	predictions []*prediction
}

// stopped is called when the interpreter has stopped at the native call c, or has ended if c is nil. It returns an error if the run cannot be
// compared. For a run from an entry it records the reason for later exits, and returns nil.
func (p *prediction) stopped(v *verifier, c *interp.Invocation) error {
	err := p.interp.stop(v.ctx, c)
	if r := p.interp.result; r != nil {
		p.out.Interpreter.Steps = r.Steps
	}
	if why, ok := asIncomparable(err); ok && p.entry != nil {
		p.interp.incomparable, p.interp.pending = why, nil
		return nil
	}
	return err
}

// handleCall handles a thread at the entry of a function that an interpreter waits to call. It compares the arguments, and starts the native call if
// they are equal.
func (v *verifier) handleCall(run *ptrace.SingleThreadRun) error {
	t, err := v.session.Target()
	if err != nil {
		return err
	}
	if err := v.locate(v.unwind(run.Thread.Registers)); err != nil {
		return err
	}
	c := &nativeCall{}
	c.call = &call{to: run.Back, outer: v.call, native: c}
	var decided []*prediction
	for _, p := range v.inStep() {
		if p.interp.pending == nil || p.interp.callee != run.Entered {
			p.native.ranOutside = true // the interpreter of this prediction does not make this call, or is not yet stopped at it
			continue
		}
		p.out.Calls++
		arguments := argumentComparison{p.interp.machine, t, &p.pairs}
		different, why := arguments.compare(p.interp.pending, run.Thread.Registers)
		switch {
		case different != nil:
			p.out.Status, p.out.Call = Different, different
			if v.comparison(p).withdraw(); p.out.Status == Different {
				v.comparison(p).explain()
			}
			decided = append(decided, p)
		case why != nil:
			p.out.notComparable(why)
			decided = append(decided, p)
		default:
			c.predictions = append(c.predictions, p)
		}
	}
	if err := v.reportDecided(decided); err != nil || len(c.predictions) == 0 {
		return err
	}
	maps, err := t.Mappings()
	if err != nil {
		return err
	}
	if c.before, err = copyImage(t, maps, v.options.Memory, v.memory); err != nil {
		for _, p := range c.predictions {
			p.out.notComparable(err)
		}
		return v.reportDecided(c.predictions)
	}
	for _, p := range c.predictions {
		p.origin.dead = append(p.origin.dead, lazyBinding(p.effects.now, c.before, run.Entered, maps)...)
	}
	v.memory, v.call = c.before, c.call
	v.nativeCalls = append(v.nativeCalls, c)
	return nil
}

// lazyBinding returns the memory that the dynamic linker wrote when it bound a function before it entered the function: the slot of the procedure
// linkage table, which pointed to the resolver (lazy binding, ld.so(8), LD_BIND_NOW), and the linker's own data. The interpreter does not make these
// stores.
func lazyBinding(before, now *memoryImage, entry machine.Addr, maps []machine.Mapping) (slots []machine.Range) {
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

// reportDecided removes predictions that are decided before the return, and reports their outcomes.
func (v *verifier) reportDecided(done []*prediction) error {
	if len(done) == 0 {
		return nil
	}
	for _, c := range v.nativeCalls {
		c.predictions = slices.DeleteFunc(c.predictions, func(p *prediction) bool { return slices.Contains(done, p) })
	}
	v.pending = slices.DeleteFunc(v.pending, func(p *prediction) bool { return slices.Contains(done, p) })
	v.updateCall()
	for _, p := range done {
		p.finish()
	}
	return v.reportAll(done)
}

// handleCalleeReturn passes the effects of a callee to the predictions that called it.
func (v *verifier) handleCalleeReturn(c *nativeCall, regs *machine.Registers) error {
	v.nativeCalls = slices.DeleteFunc(v.nativeCalls, func(x *nativeCall) bool { return x == c })
	if err := v.abandonCall(c.call); err != nil { // end calls that were made inside this call
		return err
	}
	v.call = c.call.outer
	v.updateCall()
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
		for _, p := range c.predictions {
			p.out.notComparable(err)
		}
		return v.reportDecided(c.predictions)
	}
	v.memory = after
	list := changes(c.before, after, t)
	var decided []*prediction
	for _, p := range c.predictions {
		err := p.takeEffects(v, list, after, regs)
		why, ok := asIncomparable(err)
		switch {
		case ok:
			p.out.notComparable(why)
			decided = append(decided, p)
		case err != nil:
			return err
		}
	}
	return v.reportDecided(decided)
}

// takeEffects passes the effects of native code to the interpreter, which waits at the call, and lets it continue.
func (p *prediction) takeEffects(v *verifier, list []changed, after *memoryImage, regs *machine.Registers) (err error) {
	c := p.interp.pending
	if floats, err := regs.FloatControl(); err == nil && p.origin.floats != nil && floats != *p.origin.floats {
		return incomparablef("%s changed the floating-point environment, which the interpreter cannot follow", calleeOf(c))
	}
	h := callEffects{memory: list, after: after}
	if c.Result.Kind != ir.VoidKind {
		site := c.Site()
		if h.value, err = abi.ReturnedValue(c.Result, site.Call.CC, regs); err != nil {
			return incomparablef("the result of %s: %w", calleeOf(c), err)
		}
		h.value = p.pairs.ownResult(h.value)
	}
	p.pairs.addStores(list, after, p.origin.isDead)
	h.objects = p.pairs.changes(p.interp.machine, list, after)
	p.effects.add(h)
	p.interp.memory.image = p.effects.now
	if err := h.applyTo(p.interp.machine); err != nil {
		return incomparablef("the interpreter cannot apply the stores of native code: %w", err)
	}
	return p.stopped(v, p.interp.runner.resume(h.value))
}
