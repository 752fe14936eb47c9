package verify

import (
	"context"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// origin is the place at which both sides of a prediction begin: an exit, or the entry of a function.
type origin struct {
	frame   *deopt.Frame // the native frame: the frame that is left at an exit, or that begins at an entry
	entry   bool         // the origin is an entry
	fn      *ir.Func     // the function that the interpreter runs; its return ends the run
	native  *ir.Func     // the function whose native code runs, or nil if it is unknown
	cc      string       // the calling convention of native code
	prepare func(interp.Options) (*prepared, error)
	start   interp.Activation // for an exit: the activation with which the interpreter begins

	// These are set by [origin.findStack].
	to     ptrace.Return
	floats *machine.FloatControl // floating-point environment of the thread, or nil if unknown
	dead   []machine.Range       // memory whose bytes are meaningless; the first range is the stack below the frame
	below  machine.Range         // memory that is either stack below the frame or other data
}

// prepared is an interpreter that is ready to run from an origin.
type prepared struct {
	machine *interp.Interp
	start   interp.Activation                             // for an exit: the activation with which the interpreter begins
	run     func(context.Context) (*interp.Result, error) // runs the interpreter to the end
	step    func() (x *interp.Execution, err error)       // starts a run that is stopped before the first instruction
}

// exitOrigin returns the origin of an exit: the outermost frame of a stack.
func exitOrigin(stack *deopt.Stack) *origin {
	f := stack.Frames[len(stack.Frames)-1]
	o := &origin{frame: f, fn: f.To(), native: f.NativeFunction()}
	if site := f.Match().Site; site != nil {
		o.cc = site.Func.CC
	}
	o.prepare = func(options interp.Options) (*prepared, error) {
		run, err := stack.Prepare(options)
		if err != nil {
			return nil, err
		}
		return &prepared{
			machine: run.Machine,
			start:   run.Activations[0],
			run: func(ctx context.Context) (*interp.Result, error) {
				return run.Machine.ResumeStack(ctx, run.Activations)
			},
			step: func() (*interp.Execution, error) { return run.Machine.StartStack(run.Activations[:1]) },
		}, nil
	}
	return o
}

// entryOrigin returns the origin of an activation that begins with the given arguments. native is the function whose native code runs, or nil if it
// is unknown; the interpreter runs fn.
func entryOrigin(f *deopt.Frame, native, fn *ir.Func, args []interp.Value) *origin {
	o := &origin{frame: f, entry: true, fn: fn, native: native, cc: fn.CC}
	if native != nil {
		o.cc = native.CC
	}
	o.prepare = func(options interp.Options) (*prepared, error) {
		in, err := f.Machine(fn, options)
		if err != nil {
			return nil, err
		}
		return &prepared{
			machine: in,
			run:     func(ctx context.Context) (*interp.Result, error) { return in.Call(ctx, fn, args) },
			step:    func() (*interp.Execution, error) { return in.StartCall(fn, args) },
		}, nil
	}
	return o
}

// requireCertain returns an error if the frame with an index, or the return address of its function, is uncertain.
func requireCertain(x *trace.Exited, at int) error {
	if at >= 0 && at < len(x.Frames) && x.Frames[at].Physical().NoCFA != "" {
		return incomparablef("its return address is unknown: %w", x.Frames[at].Physical().WhyNoCFA())
	}
	if _, known := x.Returns(at); !known {
		return incomparablef("its caller is unknown: %w", x.End.Why())
	}
	if why := x.Frames[at].WhyUncertain(); why != nil {
		return incomparablef("its frame is a guess: %w", why)
	}
	if why := x.Frames[at+1].Physical().WhyGuess(); why != nil {
		return incomparablef("its caller is uncertain: %w", why)
	}
	return nil
}

// findStack finds the return address of the frame with an index, and the memory that belongs to the frame. kernel is the memory that the kernel
// writes for the thread. unused is the part of the stack that is mapped only when it is touched.
func (o *origin) findStack(t *ptrace.Target, kernel machine.Range, x *trace.Exited, at int, maps []machine.Mapping) (unused machine.Range, err error) {
	f := x.Frames[at].Physical()
	o.to, _ = x.Returns(at)
	n := slices.IndexFunc(maps, func(m machine.Mapping) bool { return m.Contains(f.CFA - 1) })
	if n < 0 {
		return unused, incomparablef("its stack, at %v, is not mapped", f.CFA)
	}
	sp, err := f.Registers.Addr(t.Arch().SP)
	if err != nil {
		return unused, &incomparable{err}
	}
	if floats, err := f.Registers.FloatControl(); err == nil {
		o.floats = &floats
	}
	sp -= abi.RedZone
	if maps[n].Path == "[stack]" {
		unused = machine.Range{Start: sp, End: maps[n].Start} // the kernel extends the stack on access (mmap(2), MAP_GROWSDOWN)
	}
	// A coroutine's stack may lie in the heap, among other data.
	o.below = machine.Range{Start: maps[n].Start, End: sp}
	o.dead = []machine.Range{{Start: sp, End: f.CFA + machine.Addr(abi.ArgumentArea(o.native, t.Arch()))}, kernel}
	return unused, nil
}

// isDead reports whether the bytes at an address are meaningless to the interpreter: the address may be in the stack below the frame.
func (o *origin) isDead(at machine.Addr) bool {
	return o.below.Contains(at) || slices.ContainsFunc(o.dead, func(r machine.Range) bool { return r.Contains(at) })
}
