package verify

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
)

// Lockstep runs native code in step with an interpreter that its owner drives. Both sides start at one exit and run to the next site of the same
// activation, or to its return. Between sites the process is stopped, and Lockstep writes nothing to it. The process makes native calls, and the
// interpreter gets their effects, as in [Run].
type Lockstep struct {
	v      *verifier
	p      *prediction
	exit   *trace.Exited
	noSite string // the reason why there is no common site before the return, or ""

	breakpoints []ptrace.Breakpoint
	sites       map[*ir.Instr]bool
	running     bool          // true during Go, in which native code runs
	site        *trace.Exited // the site that native code has reached
	outcome     *Verified
}

// errAtSite is the reason why the return cannot be compared if the interpreter is stopped at a site that native code did not reach.
var errAtSite = incomparablef("the interpreter is stopped at a site that native code did not reach")

// pollInterval is the time that native code runs between checks whether ctx is done.
const pollInterval = 100 * time.Millisecond

// Stop describes the places at which native code and the interpreter stopped.
type Stop struct {
	// Exit is the site of the activation at which native code is stopped; nil if it reached none.
	Exit *trace.Exited
	// Returned reports whether native code is stopped because the activation has returned, at its return address.
	Returned bool
	// Verified compares the results and stores since the exit, once native code has returned and the interpreter has ended; otherwise nil.
	Verified *Verified
	// Failed is the reason why the interpreter cannot continue where native code can, or "".
	Failed string
	// Why is the reason why the two sides cannot be compared at their places, or "".
	Why   string
	Moved bool // native code has run
	Ended bool // the thread has ended
}

// outerReturns is the number of callers at whose return addresses native code also stops. If it reaches one of these, the activation was left without
// a return.
const outerReturns = 8

// NewLockstep returns a Lockstep for the frames of a stack; the function of the outermost one is the activation. The process must still be stopped at
// the place at which the frames were made. Of the options, those of [deopt.Options] and the bounds Steps, Time and Memory are used. why is the reason
// why native code cannot be followed from that place, or "".
func NewLockstep(s *ptrace.Session, stack *deopt.Stack, o Options) (b *Lockstep, why string, err error) {
	o.setDefaults()
	f := stack.Frames[len(stack.Frames)-1]
	t := stack.Thread
	b = &Lockstep{sites: map[*ir.Instr]bool{}}
	b.exit = &trace.Exited{Thread: machine.Thread{ID: t.ID, Name: t.Name}, Point: &trace.Tracepoint{Moment: f.Record.Moment}, Frame: f, Frames: t.Frames, End: t.End}
	b.v = &verifier{session: s, options: o, lockstep: true, outcome: func(out *Verified) error { b.outcome = out; return nil }, hits: map[uint64]uint64{}}
	b.v.summary.Reasons = map[string]uint64{}
	at := slices.Index(t.Frames, f)
	if err := requireCertain(b.exit, at); err != nil {
		return nil, err.Error(), nil
	}
	native := f.NativeFunction()
	switch {
	case native == nil || f.To() != native:
		b.noSite = fmt.Sprintf("it resumes in @%s, which is not the function that native code runs", f.Resume.Function)
	case at > 0 || f.Record.Moment == frame.InCall:
		return nil, "the interpreter would resume after a call that native code is still running", nil
	}
	err = b.watch(f, native)
	if err == nil {
		err = b.begin(stack, at)
	}
	if why, ok := asIncomparable(err); ok {
		return nil, why.Error(), nil
	}
	return b, "", err
}

// begin records the state of the process at the exit.
func (b *Lockstep) begin(stack *deopt.Stack, at int) error {
	v, x := b.v, b.exit
	target := v.watcher.View().Target()
	maps, err := target.Mappings()
	if err != nil {
		return err
	}
	image, err := copyImage(target, maps, v.options.Memory, nil)
	if err != nil {
		return &incomparable{err}
	}
	f := x.Frames[at]
	p := v.newPrediction(exitOrigin(stack))
	p.out, p.interp.memory, p.interp.symbol = &Verified{Exit: x}, &imageMemory{image: image, now: target}, f.Symbols(f.To())
	p.effects.start(image)
	for n := at + 1; n < len(x.Frames) && len(v.outer) < outerReturns; n++ {
		if to, known := x.Returns(n); known && x.Frames[n].Physical().NoCFA == "" {
			v.outer = append(v.outer, to)
		}
	}
	b.p = p
	return v.findStack(p, x, at, maps)
}

// watch finds the sites of the activation's function at which both sides can be stopped: the sites whose instruction in the module is certain.
func (b *Lockstep) watch(f *deopt.Frame, native *ir.Func) (err error) {
	start := f.Match().Entry.Function
	o := trace.Options{Options: b.v.options.Options, Full: true, Wait: true, Warn: func(string) {}}
	o.Options.Thread = 0
	if name := f.Code().Starting(start.Addr).Name; name != "" {
		if o.Function, err = names.Exact(name); err != nil {
			return err
		}
	}
	b.v.watcher = trace.NewWatcher(b.v.session, o, b.handleSite)
	all, err := b.v.watcher.Prepare()
	if err != nil {
		return err
	}
	unsure := map[*ir.Instr]bool{}
	for _, set := range all {
		var here []*ir.Instr
		for _, point := range b.v.watcher.At(set.Addr) {
			m := point.Match()
			if m == nil || m.Entry.Function.Addr != start.Addr {
				continue
			}
			if m.Site != nil && m.Site.Func == native && m.Moment == frame.Before && !point.Doubtful() {
				b.sites[m.Site.Instr] = true
				here = append(here, m.Site.Instr)
				continue
			}
			for _, s := range m.Sites {
				unsure[s.Instr] = true
			}
		}
		// If no code lies between several sites, native code reaches all of them at once. Use the first one.
		for _, i := range here {
			if slices.ContainsFunc(here, func(other *ir.Instr) bool { return other.Block != i.Block || other.Index < i.Index }) {
				unsure[i] = true
			}
		}
	}
	for i := range unsure {
		delete(b.sites, i)
	}
	if b.noSite != "" {
		clear(b.sites)
	}
	if n := b.v.watcher.Unwatched(); n > 0 && len(b.sites) > 0 {
		return incomparablef("%d records of the function have no place at which native code could be stopped", n)
	}
	for _, set := range all {
		points := b.v.watcher.At(set.Addr)
		if points == nil || slices.ContainsFunc(points, func(p *trace.Tracepoint) bool { return b.isCommonSite(p, start) }) {
			b.breakpoints = append(b.breakpoints, set) // set is nil for a breakpoint that detects loaded code
		}
	}
	return nil
}

// isCommonSite reports whether both sides can be stopped at a place.
func (b *Lockstep) isCommonSite(p *trace.Tracepoint, in *stackmap.Function) bool {
	m := p.Match()
	return m != nil && m.Site != nil && m.Entry.Function.Addr == in.Addr && b.sites[m.Site.Instr]
}

// WhyNoSite returns the reason why both sides can be compared only at the return, or "".
func (b *Lockstep) WhyNoSite() string { return b.noSite }

// Site reports whether both sides can be stopped before an instruction of the activation.
func (b *Lockstep) Site(i *ir.Instr) bool { return b.sites[i] }

// Options returns the options for an interpreter that runs from the exit, for the first time or again. The caller must pass that interpreter to
// [Lockstep.Machine].
func (b *Lockstep) Options(o interp.Options) (interp.Options, error) {
	p := b.p
	if p.effects.tooLarge() {
		return o, errTooMuch
	}
	memory := &imageMemory{image: p.effects.first, now: p.interp.memory.now}
	p.interp.memory = memory
	n := 0 // number of native calls whose effects were passed so far
	o.Memory = memory
	o.Native = func(c *interp.Invocation) (interp.Value, error) {
		n++
		if n <= len(p.effects.calls) {
			h := &p.effects.calls[n-1]
			memory.image = memory.image.with(h.memory, h.after)
			return h.value, h.applyTo(p.interp.machine)
		}
		if !b.running {
			return interp.Value{}, fmt.Errorf("%s exists only as native code: the interpreter steps over it only in lockstep with native code", calleeName(c))
		}
		return p.interp.runner.native(c)
	}
	return o, nil
}

// Machine sets the interpreter, which was made with [Lockstep.Options].
func (b *Lockstep) Machine(in *interp.Interp) { b.p.interp.machine = in }

// Made reports whether an address exists only in the interpreter.
func (b *Lockstep) Made(addr uint64) bool { return b.p.interp.machine.Made(addr) }

// Go lets both sides continue. run runs the interpreter to the next site, where it returns nil and no error. When ctx is done, native code is stopped
// at its current place, and the error is the cause. The end of the process is not an error.
func (b *Lockstep) Go(ctx context.Context, run func(context.Context) (*interp.Result, error)) (a *Stop, err error) {
	v, p := b.v, b.p
	v.ctx, b.site, b.outcome = ctx, nil, nil
	p.out, p.interp.runner = &Verified{Exit: b.exit}, newRunner(v.options.Time)
	p.interp.pending, p.interp.result, p.interp.failed, p.interp.incomparable = nil, nil, nil, nil
	p.native.called = nil // the calls of earlier runs were compared at the site
	b.running, v.stepped = true, 0
	defer func() { b.running = false }()
	p.interp.runner.start(ctx, run)
	if err := p.stopped(v, p.interp.runner.next()); err != nil {
		p.interp.runner.finish()
		if why, ok := asIncomparable(err); ok {
			return &Stop{Why: why.Error()}, nil
		}
		return &Stop{}, err
	}
	v.pending, v.nativeCalls, v.call = []*prediction{p}, nil, p.call
	if err = b.insertBreakpoints(); err == nil {
		err = v.runNative()
	} else {
		p.interp.runner.finish()
	}
	v.pending = nil
	if !v.threadEnded { // the memory of an ended process cannot be read
		var addrs []machine.Addr
		for _, at := range b.breakpoints {
			addrs = append(addrs, at.Addr)
		}
		err = cmp.Or(err, v.session.Remove(addrs...))
	}
	if err != nil && !errors.Is(err, errArrived) {
		return &Stop{Moved: true, Ended: v.threadEnded}, err
	}
	return b.arrival(), nil
}

// insertBreakpoints inserts the breakpoints. If the thread is already stopped at one of them, it also consumes the hit of that breakpoint. A thread
// that runs without stepping first reports such a hit, and steps over the breakpoint at the next run. After an event it does so in the other order,
// so insertBreakpoints tries twice.
func (b *Lockstep) insertBreakpoints() error {
	err := b.v.session.Insert(b.breakpoints...)
	for tries := 0; err == nil && tries < 2; tries++ {
		var at *ptrace.SingleThreadRun
		if at, err = b.v.session.RunSingleThread(context.WithoutCancel(b.v.ctx), b.exit.Thread.ID, ptrace.SingleThreadOptions{Hits: true, Loads: true}); err == nil && at.Hit != 0 {
			break
		}
	}
	return err
}

// errArrived stops native code at a site.
var errArrived = errors.New("it is at a site")

// handleSite is called when the thread has reached a site, in any activation. It returns errArrived, which stops native code, unless the site belongs
// to a deeper activation or is no common site of both sides.
func (b *Lockstep) handleSite(x *trace.Exited) error {
	to := b.p.origin.to
	switch at := x.Frames[0].Physical(); {
	case at.NoCFA != "":
		return errors.Join(b.v.abandon("cannot tell which activation reached a site: "+at.NoCFA), errArrived)
	case at.CFA < to.CFA || !b.isCommonSite(x.Point, b.exit.Frames[slices.Index(b.exit.Frames, b.exit.Frame)].Match().Entry.Function):
		return nil // a deeper activation
	case at.CFA > to.CFA:
		return errors.Join(b.v.abandon(leftWithoutReturn), errArrived)
	}
	b.site = x
	return errArrived
}

// leftWithoutReturn is the reason why an activation that ended without a return cannot be compared.
const leftWithoutReturn = "its frame was left without a return"

// arrival returns the places at which native code and the interpreter are stopped.
func (b *Lockstep) arrival() *Stop {
	p := b.p
	a := &Stop{Exit: b.site, Moved: true, Ended: b.v.threadEnded}
	if a.Exit == nil {
		switch out := b.outcome; {
		case p.interp.incomparable == errAtSite && out.reason == errAtSite:
			a.Returned = true
			a.Why = b.v.comparison(p).whyUnsure()
		case out.Status == NotComparable:
			a.Why = out.Why
		default:
			a.Returned, a.Verified = true, out
		}
		return a
	}
	switch {
	case p.native.signal != 0:
		a.Why = p.native.raisedReason()
	case p.interp.pending != nil:
		a.Why = fmt.Sprintf("native code reached the site of record %d without the call of %s, or made the call unseen", a.Exit.Point.Record, calleeName(p.interp.pending))
	case p.interp.atLimit():
		a.Why = "the interpreter does not reach a site: " + p.interp.failed.Error()
	case p.interp.failed != nil:
		a.Failed = p.interp.failed.Error()
	}
	return a
}

// WhyUnsure returns the reason why a difference between the two sides is not evidence of an error, or "".
func (b *Lockstep) WhyUnsure() string { return b.v.comparison(b.p).whyUnsure() }

// maxStepped is the number of native instructions that are single-stepped between two sites. While it is single-stepped, all called code is known, so
// it is also known whether all stores of native code can be compared. After that, native code runs at full speed.
const maxStepped = 20_000

// atFullSpeed reports whether native code no longer needs single-stepping.
func (v *verifier) atFullSpeed() bool {
	return v.lockstep && v.stepped >= maxStepped && !slices.ContainsFunc(v.inStep(), func(p *prediction) bool { return p.interp.pending != nil })
}

// runThread runs the thread as native code, while the others are stopped.
func (v *verifier) runThread(tid int, o ptrace.SingleThreadOptions) (*ptrace.SingleThreadRun, error) {
	ctx := v.ctx
	if v.lockstep { // after ctx is done, the owner still uses the session
		ctx, o.Time = context.WithoutCancel(ctx), min(o.Time, pollInterval)
	}
	run, err := v.session.RunSingleThread(ctx, tid, o)
	v.threadEnded = errors.Is(err, ptrace.ErrProcessExited) || err == nil && run.Thread.ID == 0
	return run, err
}

// Frames returns all frames of the process while native code is stopped at a site.
func (b *Lockstep) Frames() (*deopt.View, error) { return b.v.watcher.Frames(b.site) }
