package interp

import (
	"context"
	"errors"
	"fmt"

	"example.com/reframe/internal/llvm/ir"
)

// run holds the counters and collected output of one run.
type run struct {
	of      *Execution
	ctx     context.Context
	steps   uint64         // instructions run
	bulk    uint64         // bulk work in steps; MaxSteps bounds the sum of steps and bulk
	seen    uint64         // value of bulk at the last check of the context
	look    uint64         // value of steps at which to check the limits again
	halt    uint64         // value of steps at which to halt; 0 for none
	floor   int            // halt when fewer frames than this are left; 0 for none
	single  bool           // single-step: the limits do not allow a whole block, or the run is traced
	once    bool           // halt after one instruction
	stages  []func() error // parts of the program that have not started; each function pushes the first frame of its part
	nested  int            // number of nested runs that built-in functions started
	entered bool           // the last step pushed a frame
	before  bool           // the error occurred before the current instruction started
	stops   []*block       // blocks at which StopAt was changed in this run
	output  []byte         // standard output, and standard error in errors: collected, or not passed to the writer yet
	errors  []byte
	called  called
	site    *callSite        // call site of the built-in function that runs now
	jumps   map[uint64]*jump // valid targets of longjmp, by number
	cxx     cxx
	landed  bool // an exception has reached a landing pad; the landingpad instruction runs next
}

// between is the number of steps between two checks of the context. They take about a tenth of a millisecond.
const between = 1 << 16

// exited is the error that ends a run whose program called exit.
type exited struct{ code int }

func (e *exited) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// checkLimits returns an error if the limits do not allow this many more steps, or the context is cancelled.
func (in *Interp) checkLimits(more uint64) error {
	if in.run.steps+in.run.bulk+more > in.opt.MaxSteps {
		return troublef(KindSteps, "not finished after %d steps", in.opt.MaxSteps)
	}
	if in.run.steps < in.run.look {
		return nil
	}
	if err := in.run.ctx.Err(); err != nil {
		return &trouble{KindContext, err}
	}
	in.run.look = min(in.run.steps+between, in.opt.MaxSteps-in.run.bulk)
	if in.run.halt > 0 {
		in.run.look = min(in.run.look, in.run.halt)
	}
	return in.flush() // flush at each check, so that a user who watches the output sees it soon
}

// pause checks the limits and halts at the start of block b, whose steps are already counted. If the run cannot finish the block, pause subtracts
// these steps, and the block runs in single steps.
func (in *Interp) pause(b *block) error {
	err := in.checkLimits(0)
	halts, beyond := b.stop && in.run.nested == 0, in.run.beyond(0)
	if err == nil && !halts && !beyond {
		return nil
	}
	in.run.steps -= b.size - uint64(b.phis)
	switch {
	case halts:
		return errHalted
	case err == nil, kindOf(err) == KindSteps:
		in.run.single = true
		return nil
	}
	return in.located(err, false)
}

// beyond reports whether this many more steps exceed the step count at which the run halts.
func (r *run) beyond(more uint64) bool { return r.halt > 0 && r.steps+more > r.halt }

// reachedHalt reports whether the run must halt before the next instruction.
func (in *Interp) reachedHalt() bool {
	r := &in.run
	return (r.halt > 0 && r.steps >= r.halt || in.frames.n < r.floor) && r.nested == 0
}

// work counts bulk work on n bytes: one step for each 64 bytes.
func (in *Interp) work(n uint64) error {
	r := &in.run
	r.bulk += n / 64
	if r.bulk > in.opt.MaxSteps {
		return in.checkLimits(1)
	}
	r.look = min(r.look, in.opt.MaxSteps-r.bulk)
	if r.bulk-r.seen < between {
		return in.checkLimits(0)
	}
	r.seen = r.bulk
	if err := r.ctx.Err(); err != nil {
		return &trouble{KindContext, err}
	}
	return nil
}

// located adds the instruction of the running frame to an error, unless the error already names one. If begun is set, that is the instruction that
// has started, else the next one.
func (in *Interp) located(err error, begun bool) error {
	var r *RunError
	var x *exited
	var f nonLocalJump
	if errors.As(err, &r) || errors.As(err, &x) || errors.As(err, &f) || in.frames.n == 0 {
		return err
	}
	in.run.before = !begun
	return placed(err, in.top().at(begun))
}

// placed returns a RunError for err at instruction i.
func placed(err error, i *ir.Instr) error {
	return &RunError{
		Kind: kindOf(err), Func: i.Block.Func.Name, Block: i.Block.Name,
		Instr: describe(i), Line: i.Line, Err: err,
	}
}

// describe returns the name, operation and callee or type of an instruction.
func describe(i *ir.Instr) string {
	s := i.Op.String()
	if i.Call != nil && i.Call.Callee != nil {
		s += " " + i.Call.Callee.Ref()
	} else if i.Typ != nil && i.Typ.Kind != ir.VoidKind {
		s += " " + i.Typ.String()
	}
	if i.Name != "" {
		s = i.Ref() + " = " + s
	}
	return s
}

// fits returns an error if v, which the caller of the interpreter passed, does not have type t.
func (in *Interp) fits(v Value, t *ir.Type) error {
	s, err := in.shapes.of(t)
	if err != nil {
		return err
	}
	if v.s == nil || !alike(v.s, s) {
		return troublef(KindArgument, "a value of type %v; expected %v", v.Type(), t)
	}
	return nil
}

// alike reports whether the words of both shapes have the same meaning. It ignores pointee types and the names of structs.
func alike(a, b *shape) bool {
	if a == b {
		return true
	}
	if a.typ.Kind != b.typ.Kind || a.bits != b.bits || a.words != b.words || a.n != b.n {
		return false
	}
	if a.n == 0 {
		return true
	}
	if a.field == nil {
		return b.field == nil && alike(a.elem, b.elem)
	}
	for i := range a.field {
		if !alike(a.field[i], b.field[i]) {
			return false
		}
	}
	return true
}
