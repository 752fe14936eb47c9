package verify

import (
	"context"
	"errors"
	"strings"
	"syscall"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// interpreted is the interpreter's run of a prediction. It stops at each native call, until native code has also made that call.
type interpreted struct {
	machine *interp.Interp
	memory  *imageMemory
	runner  *runner
	run     func(context.Context) (*interp.Result, error) // runs the interpreter to the end
	symbol  func(string) (machine.Addr, bool)             // finds a function that exists only as native code
	unused  machine.Range                                 // the part of the stack that is mapped only when it is touched

	// These describe the place at which the run is stopped.
	pending *interp.Invocation // the native call at which the run is stopped; nil if it has ended
	callee  machine.Addr       // the address of the function that pending calls
	result  *interp.Result
	failed  *interp.RunError // the error that ended the run; nil if it returned
	// incomparable is set for a run from an entry. It is the reason why the run ended without a state that can be compared, or nil.
	incomparable error
}

// stop records that the interpreter stopped at the native call c, or that it ended if c is nil. It returns an error if the run cannot be compared.
func (r *interpreted) stop(ctx context.Context, c *interp.Invocation) error {
	r.pending = c
	if c == nil {
		return r.end(ctx)
	}
	if err := requireNoState(r.machine.Called()); err != nil {
		return err
	}
	if c.Site() == nil {
		return incomparablef("a function of the C library calls %s back, which exists only as native code", calleeOf(c))
	}
	if r.machine.Own(c.Site().Block.Func.Module) { // the library of the process may not make this call, or may make it with other arguments
		return incomparablef("a function of the C++ library calls %s back, which exists only as native code", calleeOf(c))
	}
	if throws(c.Site()) { // its landing pad may lie at its return address
		return incomparablef("it calls %s, which does not return: it throws", calleeOf(c))
	}
	if r.callee = c.At; r.callee == 0 {
		var ok bool
		if r.callee, ok = r.symbol(c.Name); !ok {
			return incomparablef("it calls @%s, which exists only as native code, and the process has no symbol of that name", c.Name)
		}
	}
	return nil
}

// end records the result or the error with which the interpreter ended.
func (r *interpreted) end(ctx context.Context) error {
	var err error
	r.result, err = r.runner.result, r.runner.err
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if r.result != nil {
		if err := requireNoState(r.result.Called); err != nil {
			return err
		}
		if r.result.ExitCode != nil {
			return incomparablef("it ends the program")
		}
	}
	if err == nil {
		if r.result == nil {
			r.incomparable = errAtSite
		}
		return nil
	}
	if ended := (*ptrace.Error)(nil); errors.As(err, &ended) || errors.Is(err, syscall.ESRCH) {
		return err
	}
	run := (*interp.RunError)(nil)
	if !errors.As(err, &run) {
		return &incomparable{err}
	}
	switch run.Kind {
	case interp.KindFault, interp.KindUnreachable, interp.KindDivision, interp.KindSteps, interp.KindDepth, interp.KindAbort:
		// A fault can be compared: native code that returns from here differs.
		if fault := (*interp.FaultError)(nil); errors.As(err, &fault) {
			if r.machine.Unknown(uint64(fault.Addr)) {
				break
			}
			if r.unused.Contains(machine.Addr(fault.Addr)) {
				return incomparablef("its function has a part of the stack that the process has not touched yet")
			}
		}
		r.failed = run
		return nil
	}
	return incomparablef("the interpreter cannot run it: %w", err)
}

// atLimit reports whether the interpreter ended because it reached one of its bounds.
func (r *interpreted) atLimit() bool {
	return r.failed != nil && (r.failed.Kind == interp.KindSteps || r.failed.Kind == interp.KindDepth)
}

// called lists the functions of the C and C++ libraries that the run has called.
func (r *interpreted) called() []interp.Called {
	if r.result != nil {
		return r.result.Called
	}
	return r.machine.Called()
}

// requireNoState returns an error if the called functions depend on state that the interpreter does not have, such as pending exceptions.
func requireNoState(list []interp.Called) error {
	for _, c := range list {
		if c.Effect >= interp.EffectState && c.Effect != interp.EffectNative {
			return incomparablef("it calls @%s, whose effects cannot be compared", c.Name)
		}
	}
	return nil
}

// calleeName returns the name of the callee of a native call.
func calleeName(c *interp.Invocation) string { return calleeOf(c).String() }

// calledFunction is the callee of a native call.
type calledFunction struct {
	name string
	at   machine.Addr
}

func calleeOf(c *interp.Invocation) calledFunction { return calledFunction{c.Name, c.At} }

func (c calledFunction) String() string {
	return c.TextWith(func(uint64) string { return c.at.String() })
}

// TextWith implements [frame.Addressed].
func (c calledFunction) TextWith(spell func(uint64) string) string {
	if c.name == "" {
		return spell(uint64(c.at))
	}
	return "@" + c.name
}

// throws reports whether a call has a landing pad and the compiler assumed that it does not return.
func throws(call *ir.Instr) bool {
	if call.Op != ir.OpInvoke {
		return false
	}
	for _, i := range call.Blocks[0].Instrs {
		if f, ok := callee(i); !ok || !strings.HasPrefix(f.Name, "llvm.") {
			return i.Op == ir.OpUnreachable
		}
	}
	return false
}

func callee(i *ir.Instr) (f *ir.Func, ok bool) {
	if i.Op == ir.OpCall {
		f, ok = i.Call.Callee.(*ir.Func)
	}
	return f, ok
}
