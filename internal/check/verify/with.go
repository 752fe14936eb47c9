package verify

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/protocol"
	"example.com/reframe/ptrace"
)

// withRun holds the run of the user's own interpreter from an exit. It has ended before native code starts.
type withRun struct {
	answer *protocol.Answer
	memory *protocol.Overlay
	run    *entryRun // the run that begins at this exit, or nil
}

// predictWith runs the user's own interpreter from an exit. It returns no prediction if the interpreter reports the frames as malformed, which is a
// difference.
func (v *verifier) predictWith(x *trace.Exited, out *Verified) (*prediction, error) {
	if why := x.WhyNoRecord(); why != nil {
		return nil, &incomparable{why}
	}
	at := slices.Index(x.Frames, x.Frame)
	if err := requireCertain(x, at); err != nil {
		return nil, err
	}
	stack := &handover.Stack{View: v.watcher.View(), Thread: x.Stack().Thread, Frames: []*deopt.Frame{x.Frame}}
	switch vm := x.Frame.VM; {
	case vm == nil:
		return nil, incomparablef("no layout has VM frames for its record")
	case vm.Mismatches() != "":
		out.Status, out.Interpreter.Failed = Different, "the record's frames are not those that info describes: "+vm.Mismatches()
		return nil, nil
	case vm.Lacks() != "":
		return nil, incomparablef("%s", vm.Lacks())
	case vm.Frames[0].Resume == frame.Calling:
		var err error
		if stack.Returned, err = handover.Returned(x.Frame, x.Stack().Returned); err != nil {
			return nil, &incomparable{err}
		}
		stack.Came = true
	}
	request, err := stack.Request()
	if err != nil {
		return nil, &incomparable{err}
	}
	request.Steps, request.Tail = interpSteps(v.options.Steps), v.options.Tail
	t := v.watcher.View().Target()
	maps, err := t.Mappings()
	if err != nil {
		return nil, err
	}
	p := v.newPrediction(&origin{frame: x.Frame, native: x.Frame.NativeFunction()})
	p.out, p.native.ranOutside, p.next.inexact, p.interp.runner = out, true, true, doneRunner()
	if f := x.Frame.Match().Site; f != nil {
		p.origin.cc = f.Func.CC
	}
	if err := v.findStack(p, x, at, maps); err != nil {
		return nil, err
	}
	if v.options.Picture {
		image, err := copyImage(t, maps, v.options.Memory, nil)
		if err != nil {
			return nil, &incomparable{err}
		}
		out.Before = &imageMemory{image: image, now: t}
	}
	p.with = &withRun{}
	if v.options.FromEntry {
		err = v.compareWithRun(p, request, t, maps)
	}
	if err == nil && p.with.answer == nil {
		p.with.answer, p.with.memory, err = v.resumeWith(request, nil, t, maps)
	}
	if err != nil {
		return nil, err
	}
	a := p.with.answer
	out.Interpreter.Steps = a.Steps
	if answered := v.options.Answered; answered != nil {
		if err := answered(x, a, p.with.memory); err != nil {
			return nil, err
		}
	}
	switch {
	case a.Malformed != "":
		out.Status, out.Interpreter.Failed = Different, "its interpreter reports malformed frames: "+a.Malformed
		return nil, nil
	case a.Unsupported != "":
		return nil, incomparablef("its interpreter cannot continue: %s", a.Unsupported)
	case !a.Returns:
		return nil, incomparablef("it ended with an exception (%.200s), and its interpreter does not report what compiled code returns in this case", a.Threw.Text)
	}
	return p, nil
}

// resumeWith sends a request to the interpreter, and returns its answer and its memory. The interpreter stops as stop requests; nil: it runs to the
// end.
func (v *verifier) resumeWith(r *protocol.Resume, stop *protocol.Stop, t *ptrace.Target, maps []machine.Mapping) (*protocol.Answer, *protocol.Overlay, error) {
	ctx, cancel := context.WithTimeout(v.ctx, v.options.Time)
	defer cancel()
	if err := v.startChild(ctx, t); err != nil {
		return nil, nil, err
	}
	request := *r
	request.Stop = stop
	h := handover.Host(v.watcher.View(), maps)
	if stop != nil {
		h.Memory.AllocateFromSecondHalf() // its objects are compared with objects of another run, and need other addresses
	}
	a, err := v.child.Resume(ctx, &request, h)
	return a, h.Memory, withTimeout(err)
}

// startChild starts the interpreter if it was not started yet.
func (v *verifier) startChild(ctx context.Context, t *ptrace.Target) (err error) {
	if v.child == nil {
		v.child, err = protocol.Start(ctx, protocol.Spec{Command: v.options.With, Hello: handover.Hello(t), Errors: v.options.Errors, Dir: v.options.WithDir, Env: v.options.WithEnv})
	}
	return err
}

// withTimeout adds the name of the flag --timeout to an error that reports a timeout.
func withTimeout(err error) error {
	if err != nil && errors.Is(err, context.DeadlineExceeded) {
		return fmt.Errorf("%w; use --timeout to allow more time", err)
	}
	return err
}

// withComparison compares a run of the user's own interpreter with native code: the results, and the memory that the interpreter stored.
type withComparison struct {
	own    *protocol.Overlay
	native machine.Memory
	dead   []machine.Range
	order  binary.ByteOrder
	follow func(bits uint64) (machine.Addr, bool) // the address that a word refers to
	pairs  map[machine.Addr]machine.Addr          // objects that the interpreter allocated, and their address in native code
	taken  map[machine.Addr]bool                  // the native addresses that pairs contains
	todo   []machine.Range                        // ranges of the interpreter's memory that are still to be compared
	diffs  memoryComparison
}

// scalar maps the result types of the protocol to types of the IR.
var scalar = map[string]*ir.Type{"i1": ir.I1, "i8": ir.I8, "i16": ir.I16, "i32": ir.I32, "i64": ir.I64, "u8": ir.I8, "u16": ir.I16, "u32": ir.I32, "u64": ir.I64,
	"f32": {Kind: ir.FloatKind, Bits: 32}, "f64": {Kind: ir.DoubleKind, Bits: 64}, "ref": ir.Ptr, "null": ir.Ptr}

// result compares the interpreter's result with native code's, or returns the reason why it cannot.
func (c *withComparison) result(r *protocol.Native, cc string, regs *machine.Registers) (*ResultPart, error) {
	typ := scalar[r.Type]
	if typ == nil {
		return nil, fmt.Errorf("no register is known for type %.40q", r.Type)
	}
	bits, err := r.Bits.Uint()
	if err != nil {
		return nil, err
	}
	want := interp.FromUint(typ, bits)
	got := abi.CompareResult(want, cc, regs, func(uint64) bool { return false })
	switch {
	case got.Why != "":
		return nil, got.Reason()
	case len(got.Parts) != 1: // a scalar that fits a register has one part
		return nil, fmt.Errorf("it is in %d registers", len(got.Parts))
	}
	native := got.Parts[0].Native
	part := &ResultPart{Register: got.Parts[0].Register, Type: r.Type, Interpreter: want.Format(), Native: native.Format(), Same: got.Same}
	if r.Text != "" {
		part.Interpreter += " (" + r.Text + ")"
	}
	if have, ok := native.Uint(); ok && !part.Same && typ.Kind != ir.FloatKind && typ.Kind != ir.DoubleKind {
		part.Same = c.same(bits, have)
	}
	return part, nil
}

// memory compares the interpreter's stores with the memory of the process, and then the objects that it allocated and stored references to.
func (c *withComparison) memory() {
	for p := range c.own.Stored() {
		now := make([]byte, len(p.Data))
		missing := readPages(c.native, now, p.Addr) != 0
		c.page(p, p.Addr, now, 0, len(now), missing)
	}
	for n := 0; n < len(c.todo); n++ {
		block := c.todo[n]
		for at := block.Start; at < block.End; {
			end := min(block.End, (at|(protocol.PageSize-1))+1)
			if p, ok := c.own.StoredAt(at); ok {
				now := make([]byte, end-at)
				missing := c.native.ReadMemory(now, c.pairs[block.Start]+(at-block.Start)) != nil
				c.page(p, c.pairs[block.Start]+(at-block.Start), now, int(at-p.Addr), int(end-p.Addr), missing)
			}
			at = end
		}
	}
	c.todo = nil
}

// page compares the bytes [from, to) of a page with native code's at an address.
func (c *withComparison) page(p protocol.Stored, at machine.Addr, now []byte, from, to int, missing bool) {
	for i := from &^ (diffWord - 1); i < to; i += diffWord {
		stored := p.Bits[i/diffWord]
		if stored == 0 {
			continue
		}
		first, last := max(i, from), min(i+diffWord, to)
		addr := at + machine.Addr(first-from)
		same := !missing
		for k := first; same && k < last; k++ {
			same = stored>>(k-i)&1 == 0 || p.Data[k] == now[k-from] || c.isDead(at+machine.Addr(k-from))
		}
		if same {
			continue
		}
		want, have := p.Data[first:last], now[first-from:last-from]
		if !missing && stored == 0xff && len(want) == diffWord && (c.same(c.order.Uint64(want), c.order.Uint64(have)) || sameNaN(c.order.Uint64(want), c.order.Uint64(have))) {
			continue
		}
		was := make([]byte, len(want))
		if p.Was != nil {
			copy(was, p.Was[first:last])
		}
		undefined := make([]byte, len(want)) // the bytes of a word that the interpreter did not store are undefined
		for k := range undefined {
			if stored>>(first-i+k)&1 == 0 {
				undefined[k] = 0xff
			}
		}
		c.diffs.add(addr, was, want, undefined, have)
	}
}

func (c *withComparison) isDead(addr machine.Addr) bool {
	return slices.ContainsFunc(c.dead, func(r machine.Range) bool { return r.Contains(addr) })
}

// same reports whether two words that differ refer to the same object on both sides: memory that the interpreter allocated, and for which native code
// has exactly one object at another address. The content is compared later.
func (c *withComparison) same(want, have uint64) bool {
	own, ok := c.follow(want)
	if !ok {
		return false
	}
	native, ok := c.follow(have)
	return ok && c.pair(own, native)
}

// pair is like same, but takes the addresses of the objects instead of words that refer to them.
func (c *withComparison) pair(own, native machine.Addr) bool {
	block, made := c.own.Block(own)
	if !made {
		return false
	}
	start := native - (own - block.Start)
	if known, ok := c.pairs[block.Start]; ok {
		return known == start
	}
	if c.taken[start] || c.native.ReadMemory(make([]byte, block.End-block.Start), start) != nil {
		return false
	}
	c.pairs[block.Start], c.taken[start] = start, true
	c.todo = append(c.todo, block)
	return true
}

// doneRunner returns a runner for a run that has already ended.
func doneRunner() *runner {
	r := newRunner(0)
	r.stop, r.ended = func(error) {}, make(chan struct{})
	close(r.ended)
	return r
}

// atReturnWith compares native code with the user's own interpreter. It compares only memory that the interpreter stored: native code may make
// additional stores. Objects that both sides allocated may be at different addresses.
func (c *comparison) atReturnWith(regs *machine.Registers) {
	out, t := c.out, c.v.watcher.View().Target()
	w := &withComparison{own: c.with.memory, native: t, dead: c.origin.dead, order: t.Arch().Order, follow: c.origin.frame.Reference, pairs: map[machine.Addr]machine.Addr{}, taken: map[machine.Addr]bool{}}
	var why error
	same := true
	if r := c.with.answer.Returned; r != nil {
		var part *ResultPart
		if part, why = w.result(r, c.origin.cc, regs); part != nil {
			out.Result, same = []ResultPart{*part}, part.Same
		}
	}
	w.memory()
	out.Words = w.diffs.out.Words
	for _, d := range w.diffs.out.Diffs {
		out.Memory = append(out.Memory, d.report())
	}
	switch {
	case !same || len(w.diffs.out.Diffs) > 0:
		out.Status = Different
		if run := c.with.run; run != nil && run.why == "" && len(run.states) > 0 {
			named := &vmComparison{run: run, order: t.Arch().Order}
			if list := named.named(len(run.states), w, c.v.whereabouts(out.Exit).memory); len(list) > 0 { // otherwise only the result differs
				out.VMState = &VMState{Start: run.start, Record: run.record, Steps: c.with.answer.Steps, Differences: list, atReturn: true}
			}
		}
		c.explain()
	case why != nil:
		out.notComparable(frame.Errorf("the result: %w", why))
	default:
		out.Status = Same
	}
}
