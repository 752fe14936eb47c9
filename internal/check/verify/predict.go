package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// prediction holds the interpreter's run from an exit or an entry.
type prediction struct {
	out     *Verified
	fn      *ir.Func     // the function whose return ends the run
	frame   *deopt.Frame // the native frame: at an exit the one that is left, at an entry the one that begins
	prepare func(interp.Options) (*interp.Interp, func(context.Context) (*interp.Result, error), error)
	with    *withRun              // the run of the user's own interpreter, which replaces the one below; or nil
	start   interp.Activation     // of an exit: where the interpreter begins
	args    []interp.Value        // of an entry: the function's arguments
	entry   *entry                // the activation that begins here, or nil for an exit
	next    *prediction           // at a later hit of the same record in the same activation, or nil
	floats  *machine.FloatControl // of the thread at the start, nil if not known
	between uint64                // number of hits before next that were not verified
	blurred bool                  // between is not exact
	to      ptrace.Return
	native  nativeRun
	call    *call // the call of the activation
	cc      string
	interp  interpreted
	effects effects // of native calls
	pairs   objectPairs
	dead    []machine.Range
	below   machine.Range // what may be stack below the function's frame, or other memory
	// For a run from an entry: its arrivals, the number of values kept of them, and a run that is stopped at an arrival, or nil.
	arrivals map[*ir.Instr]*arrivals
	values   int
	in       *interp.Interp
	x        *interp.Execution
	runs     int // number of repeated runs
}

// predict runs the interpreter from an exit to the first native call, or to its end. If nothing can be compared, it stores the reason in out and
// returns nil.
func (v *verifier) predict(x *trace.Exited, out *Verified) (*prediction, error) {
	maps, err := v.watcher.View().Target().Mappings()
	if err != nil {
		return nil, err
	}
	p, why, err := v.prepare(x, maps)
	if err != nil {
		return nil, err
	}
	if why == "" {
		if v.memory, err = copyImage(v.watcher.View().Target(), maps, v.options.Memory, v.memory); err != nil {
			why = err.Error()
		}
	}
	if why != "" {
		out.notComparable(why)
		return nil, nil
	}
	p.out = out
	p.effects.start(v.memory)
	out.Before = &imageMemory{image: v.memory, now: v.watcher.View().Target()}
	if why, err = p.begin(v); err != nil || why != "" {
		p.interp.runner.finish()
		if err == nil {
			out.notComparable(why)
		}
		return nil, err
	}
	return p, nil
}

// begin lets the interpreter run from the exit.
func (p *prediction) begin(v *verifier) (why string, err error) {
	p.interp.memory.image = p.effects.first
	p.interp.runner.start(v.ctx, p.interp.run)
	return p.stopped(v, p.interp.runner.next())
}

// finish ends the runs that are still in progress.
func (p *prediction) finish() {
	p.interp.runner.finish()
	for _, t := range p.arrivals {
		t.stop()
	}
}

// prepare makes the frame of an exit ready to run, and finds where its function returns to.
func (v *verifier) prepare(x *trace.Exited, maps []machine.Mapping) (p *prediction, why string, err error) {
	if why := x.WhyNone(); why != "" {
		return nil, why, nil
	}
	f := x.Frame
	at := slices.Index(x.Frames, f)
	if why := unsure(x, at); why != "" {
		return nil, why, nil
	}
	p = &prediction{frame: f, fn: f.To()}
	stack := x.Stack()
	p.prepare = func(o interp.Options) (*interp.Interp, func(context.Context) (*interp.Result, error), error) {
		run, err := stack.Prepare(o)
		if err != nil {
			return nil, nil, err
		}
		p.start = run.Activations[0]
		return run.Machine, func(ctx context.Context) (*interp.Result, error) {
			return run.Machine.ResumeStack(ctx, run.Activations)
		}, nil
	}
	if f.Match().Site != nil {
		p.cc = f.Match().Site.Func.CC
	}
	why, err = v.place(p, x, at, maps)
	return p, why, err
}

// unsure returns the reason why it is uncertain which frame has the given index, or where its function returns to, or "".
func unsure(x *trace.Exited, at int) string {
	if at >= 0 && at < len(x.Frames) && x.Frames[at].Physical().NoCFA != "" {
		return "where its function returns to is not known: " + x.Frames[at].Physical().NoCFA
	}
	if _, known := x.Returns(at); !known {
		return "its caller is not known: " + x.End.Reason
	}
	if why := x.Frames[at].Uncertain(); why != "" {
		return "its frame is a guess: " + why
	}
	if why := x.Frames[at+1].Guess(); why != "" {
		return "its caller is not known for sure: " + why
	}
	return ""
}

// place makes the interpreter of a prediction, and finds the return address and the memory of the frame with that index.
func (v *verifier) place(p *prediction, x *trace.Exited, at int, maps []machine.Mapping) (why string, err error) {
	f := x.Frames[at]
	p.to, _ = x.Returns(at)
	p.interp.memory = &imageMemory{now: v.watcher.View().Target()}
	p.interp.runner = newRunner(v.options.Time)
	o := v.interpreter()
	o.Memory, o.Native = p.interp.memory, p.interp.runner.native
	if p.interp.machine, p.interp.run, err = p.prepare(o); err != nil {
		if gone := (*ptrace.Error)(nil); errors.As(err, &gone) {
			return "", err
		}
		return err.Error(), nil
	}
	p.interp.symbol = f.Symbols(p.fn)
	return v.space(p, x, at, maps)
}

// space finds the memory that belongs to the frame with that index.
func (v *verifier) space(p *prediction, x *trace.Exited, at int, maps []machine.Mapping) (why string, err error) {
	f := x.Frames[at]
	at = slices.IndexFunc(maps, func(m machine.Mapping) bool { return m.Contains(f.Physical().CFA - 1) })
	if at < 0 {
		return fmt.Sprintf("its stack, at %v, is not mapped", f.Physical().CFA), nil
	}
	kernel, err := v.session.KernelArea(x.Thread.ID)
	if err != nil {
		return "", err
	}
	sp, err := f.Physical().Registers.Addr(v.watcher.View().Target().Arch().SP)
	if err != nil {
		return err.Error(), nil
	}
	if floats, err := f.Physical().Registers.FloatControl(); err == nil {
		p.floats = &floats
	}
	sp -= abi.RedZone
	if maps[at].Path == "[stack]" {
		p.interp.unused = machine.Range{Start: sp, End: maps[at].Start} // the kernel lets it grow (mmap(2), MAP_GROWSDOWN)
	}
	p.call = v.activation(p, x)
	// A coroutine's stack may lie in the heap, among other data.
	p.below = machine.Range{Start: maps[at].Start, End: sp}
	p.dead = []machine.Range{{Start: sp, End: f.Physical().CFA + machine.Addr(abi.ArgumentArea(p.nativeFunction(), v.watcher.View().Target().Arch()))}, {Start: kernel.Start, End: kernel.End}}
	return "", nil
}

// activation returns the call of a prediction's activation: one that is in progress, or a new one.
func (v *verifier) activation(p *prediction, x *trace.Exited) *call {
	c := v.enclosing(stackOf(x.Frames, x.End), slices.Index(x.Frames, p.frame))
	if c != nil && c.native == nil && c.to.Addr == p.to.Addr && c.to.CFA == p.to.CFA {
		return c
	}
	to := p.to
	to.Pops = abi.ArgumentArea(p.nativeFunction(), v.watcher.View().Target().Arch())
	return &call{to: to, outer: c}
}

// interpreter returns the options of a run that is compared with native code.
func (v *verifier) interpreter() interp.Options {
	return interp.Options{MaxSteps: interpSteps(v.options.Steps), MaxMemory: interpMemory}
}

// interpSteps returns the bound of the interpreter's instructions if native code may run n: few LLVM instructions become less than one native one.
func interpSteps(n uint64) uint64 { return 16 * n }

// interpMemory bounds the memory of one run, in bytes: several are kept until native code returns.
const interpMemory = 64 << 20
