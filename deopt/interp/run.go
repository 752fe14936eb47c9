package interp

import (
	"context"
	"errors"
	"fmt"

	"example.com/reframe/internal/llvm/ir"
)

// run holds what one run counts and collects.
type run struct {
	of      *Execution
	ctx     context.Context
	steps   uint64         // instructions
	bulk    uint64         // bulk work in steps, what MaxSteps bounds beside steps
	seen    uint64         // bulk at which the context was looked at
	look    uint64         // steps at which the limits are looked at again
	halt    uint64         // halt where so many steps have been run; 0: nowhere
	floor   int            // halt where there are fewer frames; 0: nowhere
	single  bool           // an instruction at a time: what is left does not allow a block, or all are traced
	once    bool           // halt after one instruction
	stages  []func() error // what makes the frames of the program's parts that have not begun
	nested  int            // runs that a function of the table began
	entered bool           // the step that was run made a frame
	before  bool           // the error came before an instruction was begun
	stops   []*block       // where StopAt halts
	output  []byte         // standard output and standard error that is collected, or not passed on yet
	errors  []byte
	called  called
	site    *callSite        // that calls a function of the table
	jumps   map[uint64]*jump // that can be gone on at, by their numbers
	cxx     cxx
	landed  bool // an exception came to the landingpad that is next
}

// between is the number of steps from one check of the context to the next, about a tenth of a millisecond.
const between = 1 << 16

// exited ends the run of a program that calls exit.
type exited struct{ code int }

func (e *exited) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// enough returns an error if the limits do not allow this many more steps, or the context has ended.
func (in *Interp) enough(more uint64) error {
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
	return in.flush() // who watches the output does not wait for more of it
}

// pause looks at the limits before a block that was counted. Where not all of it
// may be run it is taken back, to be run by single steps.
func (in *Interp) pause(b *block) error {
	err := in.enough(0)
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

// beyond reports whether the run is to halt before it has run this many more steps.
func (r *run) beyond(more uint64) bool { return r.halt > 0 && r.steps+more > r.halt }

// there reports whether the run has come to where it is to halt.
func (in *Interp) there() bool {
	r := &in.run
	return (r.halt > 0 && r.steps >= r.halt || in.frames.n < r.floor) && r.nested == 0
}

// work counts bulk work, a step for 64 bytes.
func (in *Interp) work(n uint64) error {
	r := &in.run
	r.bulk += n / 64
	if r.bulk > in.opt.MaxSteps {
		return in.enough(1)
	}
	r.look = min(r.look, in.opt.MaxSteps-r.bulk)
	if r.bulk-r.seen < between {
		return in.enough(0)
	}
	r.seen = r.bulk
	if err := r.ctx.Err(); err != nil {
		return &trouble{KindContext, err}
	}
	return nil
}

// located adds the place to an error, unless an inner run has added it: before the next instruction of the running frame, or in the one that was
// begun.
func (in *Interp) located(err error, begun bool) error {
	var r *RunError
	var x *exited
	var f flight
	if errors.As(err, &r) || errors.As(err, &x) || errors.As(err, &f) || in.frames.n == 0 {
		return err
	}
	in.run.before = !begun
	return placed(err, in.top().at(begun))
}

// placed returns a RunError for err at an instruction.
func placed(err error, i *ir.Instr) error {
	return &RunError{
		Kind: kindOf(err), Func: i.Block.Func.Name, Block: i.Block.Name,
		Instr: describe(i), Line: i.Line, Err: err,
	}
}

// describe is an instruction in a few words: its name, operation and callee or type.
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

// fits reports whether a value from outside can be one of type t here.
func (in *Interp) fits(v Value, t *ir.Type) error {
	s, err := in.shapes.of(t)
	if err != nil {
		return err
	}
	if v.s == nil || !alike(v.s, s) {
		return troublef(KindArgument, "a value of type %v where %v is wanted", v.Type(), t)
	}
	return nil
}

// alike reports whether the words of both shapes mean the same: pointers are
// alike whatever they point to, structs whatever their names.
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
