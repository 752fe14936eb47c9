package verify

import (
	"errors"
	"slices"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// prediction is one comparison of native code with the interpreter, from an exit or from the entry of a function. Each phase has its own type:
//
//   - [origin]: the place at which both sides begin
//   - [interpreted]: the run of the interpreter, up to a native call or to its end
//   - [nativeRun]: the record of the run of native code
//   - [effects] and [objectPairs]: the changes by native calls, which are passed to the interpreter
//   - [comparison]: the comparison at the return or at a crash, which sets out
//   - [stateComparison]: the comparison of the state at an exit, which also sets out
//   - [reruns]: repeated runs of the interpreter, which explain a difference
type prediction struct {
	out     *Verified
	origin  *origin
	call    *call       // the call of the activation
	entry   *activation // the activation that begins here, or nil for an exit
	interp  interpreted
	with    *withRun // the run of the user's own interpreter, which replaces interp; or nil
	native  nativeRun
	effects effects
	pairs   objectPairs
	reruns  reruns
	next    nextHit
}

// newPrediction returns a prediction that begins at an origin.
func (v *verifier) newPrediction(o *origin) *prediction {
	p := &prediction{origin: o}
	p.reruns = reruns{v: v, origin: o, interp: &p.interp, effects: &p.effects}
	return p
}

// predict runs the interpreter from an exit to the first native call, or to its end.
func (v *verifier) predict(x *trace.Exited, out *Verified) (*prediction, error) {
	t := v.watcher.View().Target()
	maps, err := t.Mappings()
	if err != nil {
		return nil, err
	}
	p, err := v.prepare(x, maps)
	if err != nil {
		return nil, err
	}
	if v.memory, err = copyImage(t, maps, v.options.Memory, v.memory); err != nil {
		return nil, &incomparable{err}
	}
	p.out = out
	p.effects.start(v.memory)
	out.Before = &imageMemory{image: v.memory, now: t}
	if err := p.begin(v); err != nil {
		p.interp.runner.finish()
		return nil, err
	}
	return p, nil
}

// begin starts the interpreter at the exit, and waits until it makes a native call or ends.
func (p *prediction) begin(v *verifier) error {
	p.interp.memory.image = p.effects.first
	p.interp.runner.start(v.ctx, p.interp.run)
	return p.stopped(v, p.interp.runner.next())
}

// finish ends the runs that are still in progress.
func (p *prediction) finish() {
	p.interp.runner.finish()
	p.reruns.stop()
}

// prepare makes the frame of an exit ready to run, and finds the return address of its function.
func (v *verifier) prepare(x *trace.Exited, maps []machine.Mapping) (*prediction, error) {
	if why := x.WhyNoRecord(); why != nil {
		return nil, &incomparable{why}
	}
	at := slices.Index(x.Frames, x.Frame)
	if err := requireCertain(x, at); err != nil {
		return nil, err
	}
	p := v.newPrediction(exitOrigin(x.Stack()))
	return p, v.place(p, x, at, maps)
}

// place makes the interpreter of a prediction, and finds the return address and the memory of the frame with that index.
func (v *verifier) place(p *prediction, x *trace.Exited, at int, maps []machine.Mapping) error {
	r := &p.interp
	r.memory = &imageMemory{now: v.watcher.View().Target()}
	r.runner = newRunner(v.options.Time)
	o := v.interpreter()
	o.Memory, o.Native = r.memory, r.runner.native
	ready, err := p.origin.prepare(o)
	if err != nil {
		if ended := (*ptrace.Error)(nil); errors.As(err, &ended) {
			return err
		}
		return &incomparable{err}
	}
	r.machine, r.run, p.origin.start = ready.machine, ready.run, ready.start
	r.symbol = x.Frames[at].Symbols(p.origin.fn)
	return v.findStack(p, x, at, maps)
}

// findStack sets the call, the return address and the memory of the frame with that index.
func (v *verifier) findStack(p *prediction, x *trace.Exited, at int, maps []machine.Mapping) error {
	kernel, err := v.session.KernelArea(x.Thread.ID)
	if err != nil {
		return err
	}
	if p.interp.unused, err = p.origin.findStack(v.watcher.View().Target(), kernel, x, at, maps); err != nil {
		return err
	}
	p.call = v.callAt(p.origin, x)
	return nil
}

// callAt returns the call of the activation at an origin: one that is in progress, or a new one.
func (v *verifier) callAt(o *origin, x *trace.Exited) *call {
	c := v.enclosing(stackOf(x.Frames, x.End), slices.Index(x.Frames, o.frame))
	if c != nil && c.native == nil && c.to.Addr == o.to.Addr && c.to.CFA == o.to.CFA {
		return c
	}
	to := o.to
	to.Pops = abi.ArgumentArea(o.native, v.watcher.View().Target().Arch())
	return &call{to: to, outer: c}
}

// interpreter returns the options of a run that is compared with native code.
func (v *verifier) interpreter() interp.Options {
	return interp.Options{MaxSteps: interpSteps(v.options.Steps), MaxMemory: interpMemory}
}

// interpSteps returns the maximum number of instructions of the interpreter if native code may run n instructions. A native instruction rarely
// corresponds to more than 16 LLVM instructions.
func interpSteps(n uint64) uint64 { return 16 * n }

// interpMemory bounds the memory of one run, in bytes: several are kept until native code returns.
const interpMemory = 64 << 20
