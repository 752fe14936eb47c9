package interp

import (
	"context"
	"errors"
	"fmt"

	"example.com/reframe/internal/llvm/ir"
)

// Execution is a run that can stop between two instructions, for a debugger. An Interp has one Execution at a time: a new one ends the previous one.
type Execution struct {
	in     *Interp
	ret    *shape
	out    []word
	writes int
	after  func() error // runs after the outermost function has returned; may be nil
	fresh  bool         // Run may still halt before the program's first instruction
	done   bool
	result *Result
	err    error
}

// errEnded is returned by an execution after a later one of the same interpreter has started.
var errEnded = errors.New("the execution was ended by a later one of the same interpreter")

// start makes an execution of f whose first frames are pushed by setup.
func (in *Interp) start(f *ir.Func, setup func(ret *shape, out []word) error) (x *Execution, err error) {
	defer func() {
		if r := recover(); r != nil {
			x, err = nil, internal(f, r)
		}
		if err != nil {
			in.clear()
		}
	}()
	in.clear()
	ret, err := in.shapes.of(f.Sig.Elem)
	if err != nil {
		return nil, located(err)
	}
	x = &Execution{in: in, ret: ret, out: ret.undefined(), writes: in.view.writes}
	in.run = run{ctx: context.Background(), of: x}
	if err := setup(ret, x.out); err != nil {
		return nil, located(err)
	}
	return x, nil
}

func internal(f *ir.Func, r any) error {
	return &RunError{Kind: KindInternal, Func: f.Name, Err: fmt.Errorf("interp: internal error: %v", r)}
}

// located wraps err in a RunError that names no instruction, unless it already is a RunError or a MissingError.
func located(err error) error {
	var r *RunError
	var m *MissingError
	if errors.As(err, &r) || errors.As(err, &m) {
		return err
	}
	return &RunError{Kind: kindOf(err), Err: err}
}

// clear removes the frames, the stack and the output of the last run.
func (in *Interp) clear() {
	in.unfinished(func(b *block, n int64) { b.short += n })
	for in.frames.n > 0 {
		in.pop()
	}
	in.stack.unwind(0)
	in.view.trim(in.view.ranges.stack-1, 0)
	for _, b := range in.run.stops {
		b.stop = false
	}
	in.view.release(uint64(len(in.run.output) + len(in.run.errors)))
	in.run = run{}
}

// StartCall is [Interp.Call], but stops before the first instruction of f.
func (in *Interp) StartCall(f *ir.Func, args []Value) (*Execution, error) {
	if err := in.takes(f, args); err != nil {
		return nil, located(err)
	}
	return in.start(f, func(ret *shape, out []word) error {
		if f.Declared() {
			// A built-in function has no instruction to stop before.
			return in.builtin(callTarget{f: f, name: f.Name}, args, ret, out)
		}
		return in.prepare(f, args, ret, out)
	})
}

// takes returns an error if f cannot be called with these arguments.
func (in *Interp) takes(f *ir.Func, args []Value) error {
	if len(args) < len(f.Sig.Fields) || len(args) > len(f.Sig.Fields) && !f.Sig.Variadic {
		return troublef(KindArgument, "@%s takes %d arguments, got %d", f.Name, len(f.Sig.Fields), len(args))
	}
	for k, t := range f.Sig.Fields {
		if err := in.fits(args[k], t); err != nil {
			return troublef(KindArgument, "argument %d of @%s: %w", k+1, f.Name, err)
		}
	}
	return nil
}

// StartStack is [Interp.ResumeStack], but stops before the innermost activation's next instruction.
func (in *Interp) StartStack(stack []Activation) (*Execution, error) {
	if len(stack) == 0 {
		return nil, located(troublef(KindArgument, "no activation to resume"))
	}
	outer := stack[len(stack)-1].Point.Block
	if outer == nil || outer.Func == nil {
		return nil, located(troublef(KindArgument, "no block to resume in"))
	}
	return in.start(outer.Func, func(_ *shape, out []word) error { return in.stacked(stack, out) })
}

// Deepest returns the greatest number of activations that existed at once in any run of the interpreter.
func (in *Interp) Deepest() int { return len(in.frames.list) }

// Run continues to the end, or to a block given to [Execution.StopAt]; at such a block it returns nil, nil. A run that cannot finish returns a
// [*RunError] and a Result with the counts and the output so far. Its frames can still be read.
func (x *Execution) Run(ctx context.Context) (*Result, error) {
	return x.proceed(ctx, false, 0, 0)
}

// RunTo is [Execution.Run], but also stops as soon as the execution has run this many instructions since its start. It is as fast as Run.
func (x *Execution) RunTo(ctx context.Context, steps uint64) (*Result, error) {
	if steps <= x.Steps() {
		return nil, nil
	}
	return x.proceed(ctx, false, steps, 0)
}

// RunOut is [Execution.Run], but also stops as soon as at most this many frames are left, because calls have returned or were unwound.
func (x *Execution) RunOut(ctx context.Context, frames int) (*Result, error) {
	if frames >= x.Depth() {
		return nil, nil
	}
	return x.proceed(ctx, false, 0, frames+1)
}

// Step runs one instruction, and with a branch the phis it leads to. After a call of a function of the module, the execution stops before the first
// instruction of the callee. It returns the same results as Run.
func (x *Execution) Step(ctx context.Context) (*Result, error) {
	return x.proceed(ctx, true, 0, 0)
}

func (x *Execution) proceed(ctx context.Context, once bool, halt uint64, floor int) (res *Result, err error) {
	in := x.in
	switch {
	case x.done:
		return x.result, x.err
	case in.run.of != x:
		return nil, located(troublef(KindArgument, "%w", errEnded))
	}
	in.run.ctx, in.run.look, in.run.halt, in.run.floor = ctx, 0, halt, floor
	in.run.once, in.run.single = once, once || in.opt.Trace != nil
	err = x.guarded()
	if errors.Is(err, errHalted) && in.frames.n > 0 {
		return nil, nil
	}
	if errors.Is(err, errHalted) {
		err = nil
	}
	x.done = true
	x.result, x.err = x.finish(err)
	return x.result, x.err
}

// guarded runs the loop. It turns a panic, which is a bug here, into an error.
func (x *Execution) guarded() (err error) {
	defer func() {
		if r := recover(); r != nil {
			f := &ir.Func{}
			if x.in.frames.n > 0 {
				f = x.in.top().fn.ir
			}
			err = internal(f, r)
		}
	}()
	err = x.stages()
	if errors.Is(err, errHalted) {
		return err
	}
	if err == nil && x.after != nil {
		err = x.after()
	}
	if e := x.in.flush(); err == nil {
		err = e
	}
	return err
}

// stages runs the stages of the program one after another: its constructors, then the function to call.
func (x *Execution) stages() error {
	in := x.in
	fresh := x.fresh
	x.fresh = false
	if fresh && in.top().fn.blocks[0].stop && !in.run.once {
		return errHalted
	}
	for {
		err := in.loop(0)
		if err != nil && (!errors.Is(err, errHalted) || in.frames.n > 0) {
			return err
		}
		if len(in.run.stages) == 0 {
			return nil
		}
		if err := in.nextStage(); err != nil {
			return err
		}
		if in.run.once || in.top().fn.blocks[0].stop {
			return errHalted
		}
	}
}

// finish makes the Result of a run that has ended.
func (x *Execution) finish(err error) (*Result, error) {
	in := x.in
	res := &Result{Type: x.ret.typ, Steps: in.run.steps, Writes: in.view.writes - x.writes}
	res.Output, res.Errors = string(in.run.output), string(in.run.errors)
	res.Called = in.run.called.list()
	var exit *exited
	switch {
	case errors.As(err, &exit):
		res.ExitCode = &exit.code
	case err != nil:
		return res, located(err)
	case x.ret.words > 0:
		res.Value = Value{x.ret, x.out}
	}
	in.clear()
	return res, nil
}

// complete runs an execution to its end, and removes its frames.
func (x *Execution) complete(ctx context.Context) (*Result, error) {
	res, err := x.Run(ctx)
	if err == nil && res == nil {
		err = located(troublef(KindInternal, "the run stopped before its end"))
	}
	x.in.clear()
	return res, err
}

// StopAt makes Run stop whenever it has entered the block and set its phis. If on is false, StopAt removes that stop. It does not stop inside a
// callback from the C library, such as qsort's. It returns an error if the function cannot be decoded.
func (x *Execution) StopAt(b *ir.Block, on bool) error {
	fn, err := x.in.function(b.Func)
	if err != nil {
		return located(err)
	}
	if at := fn.blocks[b.Index]; x.in.run.of == x && at.stop != on {
		at.stop = on
		x.in.run.stops = append(x.in.run.stops, at)
	}
	return nil
}

// Steps counts the instructions run so far, phis and terminators included.
func (x *Execution) Steps() uint64 {
	if x.done {
		return x.result.Steps
	}
	return x.in.run.steps
}

// Output returns what the program has written to standard output so far, unless [Options].Stdout receives it.
func (x *Execution) Output() string {
	switch {
	case x.done:
		return x.result.Output
	case x.in.run.of != x:
		return ""
	}
	return string(x.in.run.output)
}

// Depth returns the number of frames, 0 after the run has ended without an error.
func (x *Execution) Depth() int {
	if x.in.run.of != x {
		return 0
	}
	return x.in.frames.n
}

// At returns the current instruction of a frame, where frame 0 is the innermost. For frame 0 it is the instruction to run next or the one that
// failed; for other frames it is the call that has not returned. At returns nil if the frame does not exist.
func (x *Execution) At(frame int) *ir.Instr {
	if frame < 0 || frame >= x.Depth() {
		return nil
	}
	fr := x.in.frames.list[x.in.frames.n-1-frame]
	return fr.at(frame > 0 || x.done && !x.in.run.before)
}

// Value returns the value of a parameter or an instruction of a frame's function in that frame. The value is undefined before the instruction has
// run. Value returns false if the function has no such parameter or instruction.
func (x *Execution) Value(frame int, v ir.Value) (Value, bool) {
	if frame < 0 || frame >= x.Depth() {
		return Value{}, false
	}
	fr := x.in.frames.list[x.in.frames.n-1-frame]
	s, ok := fr.fn.slots[v]
	if !ok {
		return Value{}, false
	}
	return Value{s.s, append([]word(nil), s.in(fr)...)}, true
}

// Operand is [Execution.Value] for an operand of an instruction in the frame's function. An operand may also be a constant or the address of a
// global.
func (x *Execution) Operand(frame int, v ir.Value) (Value, bool) {
	switch v.(type) {
	case *ir.Param, *ir.Instr:
		return x.Value(frame, v)
	}
	if frame < 0 || frame >= x.Depth() {
		return Value{}, false
	}
	w, err := x.in.constant(v)
	if err != nil || w == nil {
		return Value{}, false
	}
	s, err := x.in.shapes.of(v.Type())
	return Value{s, w}, err == nil
}

// Traced describes one instruction that was run.
type Traced struct {
	Instr *ir.Instr
	Depth int   // number of frames below the frame that ran it, 0 for the outermost
	Value Value // its result; none if it has no result or is a call that has not returned
}

// traced calls [Options].Trace for an instruction that has run in a frame. depth is the number of frames when it ran.
func (in *Interp) traced(i *ir.Instr, fr *frame, depth int) {
	t := Traced{Instr: i, Depth: depth - 1}
	if s, ok := fr.fn.slots[i]; ok && in.frames.n == depth && s.s.words > 0 {
		t.Value = Value{s.s, append([]word(nil), s.in(fr)...)}
	}
	in.opt.Trace(t)
}
