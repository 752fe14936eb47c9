package interp

import (
	"context"
	"errors"
	"fmt"

	"reframe/deopt/ir"
)

// run is what one Call or Resume counts and collects.
type run struct {
	ctx    context.Context
	steps  uint64 // instructions
	spent  uint64 // steps and bulk work, what MaxSteps bounds
	look   uint64 // spent at which the context is looked at again
	depth  int
	output []byte
}

// between is how many steps pass between two looks at the context.
const between = 1 << 16

// exited ends the run of a program that calls exit.
type exited struct{ code int }

func (e *exited) Error() string { return fmt.Sprintf("exit status %d", e.code) }

// protect runs body, which returns the result of f, and makes its end a Result
// or an error.
func (in *Interp) protect(ctx context.Context, f *ir.Func, body func(ret *shape) ([]word, error)) (res *Result, err error) {
	defer func() {
		if r := recover(); r != nil {
			res, err = nil, &RunError{Kind: KindInternal, Func: f.Name, Err: fmt.Errorf("interp: internal error: %v", r)}
		}
		in.stack.unwind(0)
		in.view.release(uint64(len(in.run.output)))
		in.run = run{}
	}()
	in.run = run{ctx: ctx}
	ret, err := in.shapes.of(f.Sig.Elem)
	if err != nil {
		return nil, located(err)
	}
	writes := in.view.writes
	w, err := body(ret)
	res = &Result{Type: f.Sig.Elem, Steps: in.run.steps, Output: string(in.run.output), Writes: in.view.writes - writes}
	var exit *exited
	switch {
	case errors.As(err, &exit):
		res.ExitCode = &exit.code
	case err != nil:
		return res, located(err)
	case ret.words > 0:
		res.Value = Value{ret, w}
	}
	return res, nil
}

// located makes a RunError of an error that no instruction is behind.
func located(err error) error {
	var r *RunError
	var m *MissingError
	if errors.As(err, &r) || errors.As(err, &m) {
		return err
	}
	return &RunError{Kind: kindOf(err), Err: err}
}

// step counts n instructions before they are run.
func (in *Interp) step(n uint64) error {
	in.run.steps += n
	in.run.spent += n
	if in.run.spent < in.run.look {
		return nil
	}
	return in.pause()
}

// work counts bulk work, a step for 64 bytes.
func (in *Interp) work(n uint64) error {
	in.run.spent += n / 64
	if in.run.spent < in.run.look {
		return nil
	}
	return in.pause()
}

func (in *Interp) pause() error {
	if in.run.spent > in.opt.MaxSteps {
		return troublef(KindSteps, "not finished after %d steps", in.opt.MaxSteps)
	}
	if err := in.run.ctx.Err(); err != nil {
		return &trouble{KindContext, err}
	}
	in.run.look = min(in.run.spent+between, in.opt.MaxSteps+1)
	return nil
}

// function is a function decoded for running: its values are numbered words of
// a frame, its instructions are closures over those numbers.
type function struct {
	ir       *ir.Func
	blocks   []*block
	template []word // a fresh frame: constants in place, all else undefined
	params   []slot
	ret      *shape
	slots    map[ir.Value]slot
}

// slot is where a value lies in the frame.
type slot struct {
	at int
	s  *shape
}

func (p slot) in(fr *frame) []word { return fr.w[p.at : p.at+p.s.words] }

// step runs one instruction that is no phi and no terminator.
type step func(fr *frame) error

// terminator runs the last instruction of a block and says where to go on; nil
// is the end of the function, its result in frame.ret.
type terminator func(fr *frame) (*edge, error)

type block struct {
	ir    *ir.Block
	phis  int    // how many instructions are phis; they happen on the edges
	steps []step // parallel to ir.Instrs; nil for phis and the terminator
	end   terminator
}

// edge goes to a block and gives its phis their values.
type edge struct {
	to    *block
	moves []move
	// clash: a move reads what an earlier one wrote, so all are read first.
	clash bool
}

type move struct{ to, from, words int }

// frame is one activation.
type frame struct {
	in   *Interp
	w    []word
	ret  []word
	mark int // allocations of the stack that are not this frame's
}

// enter makes a frame of fn; leave undoes it.
func (in *Interp) enter(fn *function, ret []word) (*frame, error) {
	if in.run.depth >= in.opt.MaxDepth {
		return nil, troublef(KindDepth, "calls are nested deeper than %d", in.opt.MaxDepth)
	}
	if err := in.view.charge(frameCost(fn)); err != nil {
		return nil, err
	}
	in.run.depth++
	fr := &frame{in: in, w: make([]word, len(fn.template)), ret: ret, mark: len(in.stack.live)}
	copy(fr.w, fn.template)
	return fr, nil
}

func (in *Interp) leave(fn *function, fr *frame) {
	in.run.depth--
	in.view.release(frameCost(fn))
	in.stack.unwind(fr.mark)
}

func frameCost(fn *function) uint64 { return 16*uint64(len(fn.template)) + 256 }

// exec runs from instruction index of block b to the end of the function.
func (in *Interp) exec(fr *frame, b *block, index int) error {
	for {
		if err := in.step(uint64(len(b.steps) - index)); err != nil {
			return at(err, b, index)
		}
		last := len(b.steps) - 1
		for i := max(index, b.phis); i < last; i++ {
			if err := b.steps[i](fr); err != nil {
				return at(err, b, i)
			}
		}
		e, err := b.end(fr)
		if err != nil {
			return at(err, b, last)
		}
		if e == nil {
			return nil
		}
		e.follow(fr)
		b, index = e.to, 0
	}
}

func (e *edge) follow(fr *frame) {
	if !e.clash {
		for _, m := range e.moves {
			copy(fr.w[m.to:m.to+m.words], fr.w[m.from:m.from+m.words])
		}
		return
	}
	var read []word
	for _, m := range e.moves {
		read = append(read, fr.w[m.from:m.from+m.words]...)
	}
	for _, m := range e.moves {
		copy(fr.w[m.to:m.to+m.words], read)
		read = read[m.words:]
	}
}

// at says where an error happened, unless an inner call said so already.
func at(err error, b *block, index int) error {
	var r *RunError
	var x *exited
	if errors.As(err, &r) || errors.As(err, &x) {
		return err
	}
	i := b.ir.Instrs[index]
	return &RunError{
		Kind: kindOf(err), Func: b.ir.Func.Name, Block: b.ir.Name,
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

// call runs f with arguments from outside.
func (in *Interp) call(f *ir.Func, args []Value, ret []word) error {
	if len(args) < len(f.Sig.Fields) || len(args) > len(f.Sig.Fields) && !f.Sig.Variadic {
		return troublef(KindArgument, "@%s takes %d arguments and is called with %d", f.Name, len(f.Sig.Fields), len(args))
	}
	for k, t := range f.Sig.Fields {
		if err := in.fits(args[k], t); err != nil {
			return troublef(KindArgument, "argument %d of @%s: %w", k+1, f.Name, err)
		}
	}
	return in.invoke(f, args, ret)
}

// fits says whether a value from outside can be one of type t here.
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

// alike says whether the words of both shapes mean the same: pointers are
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
