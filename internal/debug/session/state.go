package session

import (
	"strings"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// Frame is one activation of the run.
type Frame struct {
	Func *ir.Func
	At   *ir.Instr // the next instruction; in a caller, the call that has not returned
}

// Frames lists the activations of the run, innermost first; none when it has returned. If the run has failed, the innermost is at the instruction
// that failed.
func (r *Run) Frames() (list []Frame) {
	for n := range r.exec.Depth() {
		at := r.exec.At(n)
		if at == nil {
			return list
		}
		list = append(list, Frame{at.Block.Func, at})
	}
	return list
}

// Value is a named value of an activation. It is unknown before its instruction has run, or if the exit did not record it.
type Value struct {
	Name  string // as in the module, "%i"
	Type  *ir.Type
	Value interp.Value
}

// Values lists the values of an activation: the function's parameters, then its instructions in their order.
func (r *Run) Values(frame int) (list []Value, err error) {
	at := r.exec.At(frame)
	if at == nil {
		return nil, nil
	}
	f := at.Block.Func
	add := func(name string, v ir.Value) {
		if is, ok := r.exec.Value(frame, v); ok && !is.IsNone() {
			list = append(list, Value{name, v.Type(), is})
		}
	}
	for _, p := range f.Params {
		add(p.Ref(), p)
	}
	blocks, err := f.Body()
	for _, b := range blocks {
		for _, i := range b.Instrs {
			add(i.Ref(), i)
		}
	}
	return list, err
}

// Value returns a value of an activation by its name, with % or without; ok is false if it is not known there.
func (r *Run) Value(frame int, name string) (v Value, ok bool) {
	at := r.exec.At(frame)
	if at == nil {
		return v, false
	}
	is := at.Block.Func.Value(strings.TrimPrefix(name, "%"))
	if is == nil {
		return v, false
	}
	value, ok := r.exec.Value(frame, is)
	return Value{is.Ref(), is.Type(), value}, ok && !value.IsNone()
}

// Output returns the output that the program would have printed so far.
func (r *Run) Output() string { return r.exec.Output() }
