package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// reruns repeats the interpreter's run of a prediction, up to the place that native code has reached.
type reruns struct {
	v       *verifier
	origin  *origin
	interp  *interpreted
	effects *effects
	count   int // number of repeated runs

	arrivals map[*ir.Instr]*arrivals // by the instruction at which an exit resumes
	values   int                     // number of values that the arrivals hold
	last     *stoppedRun             // the run that is stopped at an arrival, or nil
}

// stoppedRun is a repeated run that is stopped before an instruction.
type stoppedRun struct {
	in *interp.Interp
	x  *interp.Execution
}

// prepare returns a new interpreter for a run that gets the same effects of native calls as the first run. It returns an error if the effects were
// too large to keep, or if the interpreter cannot be made. wait is as in [reruns.visit].
func (r *reruns) prepare(trace func(interp.Traced), wait func() bool) (ready *prepared, err error) {
	if r.effects.tooLarge() {
		return nil, errTooMuch
	}
	r.count++
	var native interp.Builtin
	memory := &imageMemory{image: r.effects.first, now: r.v.watcher.View().Target()}
	o := r.v.interpreter()
	o.Trace, o.Memory, o.Native = trace, memory, func(c *interp.Invocation) (interp.Value, error) { return native(c) }
	if ready, err = r.origin.prepare(o); err == nil {
		native = r.effects.replay(ready.machine, memory, wait)
	}
	return ready, err
}

// trace repeats the whole run, and calls look after each instruction.
func (r *reruns) trace(look func(interp.Traced)) error {
	ready, err := r.prepare(look, nil)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(r.v.ctx, r.v.options.Time)
	defer cancel()
	_, _ = ready.run(ctx) // the end of the run is already known
	return nil
}

// stop ends the runs that are still in progress.
func (r *reruns) stop() {
	for _, t := range r.arrivals {
		t.stop()
	}
}

// maxArrivals bounds the arrivals of a run at one place.
const maxArrivals = 100_000

// maxKept bounds the number of values that are kept for all arrivals of a run. Beyond this bound, each exit needs separate runs. It is a variable so
// that a test can change it.
var maxKept = 1 << 17

// arrival is the state of a run just before it executes an instruction.
type arrival struct {
	steps  uint64 // number of instructions that the run had executed
	values []arrived
	run    *stoppedRun // a run that is stopped at the arrival; nil until [reruns.runTo] makes one
}

// arrived is a value at an arrival; it is empty if the run has no such value. made reports whether the value is an address that exists only in the
// interpreter.
type arrived struct {
	interp.Value
	made bool
}

// arrivals holds the states in which a run from an entry arrives at one instruction. One repeated run collects them for all exits of the activation.
// That run waits at calls that native code has not made yet.
type arrivals struct {
	values  []ir.Value // the values that each arrival holds
	list    []arrival
	why     error                   // the reason why there may be more arrivals
	tooMany bool                    // there were too many arrivals to keep
	more    func() (struct{}, bool) // lets the run continue to the next arrival; false: the run has ended
	stop    func()
	cancel  context.CancelFunc
	calls   int // number of calls that native code had made when the run last continued
	ended   bool
}

// each calls look with each arrival of a run from an entry at an instruction, up to the place that native code has reached, until look returns false.
// The arrival holds the given values, in this order. each returns the reason why there may be unknown arrivals, or nil.
func (r *reruns) each(at *ir.Instr, values []ir.Value, look func(*arrival) bool) (why error) {
	if r.effects.tooLarge() {
		return errTooMuch
	}
	t := r.arrivals[at]
	if t == nil || !t.tooMany && slices.ContainsFunc(values, func(value ir.Value) bool { return !slices.Contains(t.values, value) }) {
		of := slices.Clone(values)
		if t != nil { // the arrivals were kept for another record that resumes at the same instruction
			of = append(of, t.values...)
			r.forget(at)
		}
		t = r.collect(at, of)
	}
	if t.advance(r.v.options.Time, len(r.effects.calls)); t.tooMany {
		ctx, cancel := context.WithTimeout(r.v.ctx, r.v.options.Time)
		defer cancel()
		return r.visit(ctx, at, nil, func(run *stoppedRun) bool {
			return look(&arrival{run.x.Steps(), run.values(values), run})
		})
	}
	var index []int
	for _, value := range values {
		index = append(index, slices.Index(t.values, value))
	}
	for _, kept := range t.list {
		a := arrival{steps: kept.steps}
		for _, n := range index {
			a.values = append(a.values, kept.values[n])
		}
		if !look(&a) {
			return nil
		}
	}
	return t.why
}

// collect starts to collect the arrivals at an instruction.
func (r *reruns) collect(at *ir.Instr, of []ir.Value) *arrivals {
	if r.arrivals == nil {
		r.arrivals = map[*ir.Instr]*arrivals{}
	}
	t := &arrivals{values: of, calls: -1}
	ctx, cancel := context.WithCancel(r.v.ctx)
	more, stop := iter.Pull(func(yield func(struct{}) bool) {
		t.why = r.visit(ctx, at, func() bool { return yield(struct{}{}) }, func(run *stoppedRun) bool {
			if r.values += 1 + len(of); r.values > maxKept {
				r.values -= (1 + len(of)) * (1 + len(t.list))
				t.tooMany, t.list = true, nil
				return false
			}
			t.list = append(t.list, arrival{steps: run.x.Steps(), values: run.values(of)})
			return true
		})
	})
	t.more, t.cancel = more, cancel
	t.stop = func() {
		stop()
		cancel()
	}
	r.arrivals[at] = t
	return t
}

// forget discards the arrivals at an instruction.
func (r *reruns) forget(at *ir.Instr) {
	t := r.arrivals[at]
	t.stop()
	r.values -= (1 + len(t.values)) * len(t.list)
	delete(r.arrivals, at)
}

// advance lets the run continue to the place of native code, which has made this number of calls.
func (t *arrivals) advance(limit time.Duration, calls int) {
	if t.ended || t.calls == calls {
		return
	}
	t.calls = calls
	late := time.AfterFunc(limit, t.cancel)
	defer late.Stop()
	if _, waits := t.more(); !waits {
		t.ended = true
		t.cancel()
	}
}

// values returns the values of the given IR values in the innermost activation of the run.
func (s *stoppedRun) values(of []ir.Value) (values []arrived) {
	for _, value := range of {
		has, _ := s.x.Value(0, value)
		a, is := has.Uint()
		values = append(values, arrived{has, is && s.in.Made(a)})
	}
	return values
}

// runTo runs the interpreter to an arrival. One run usually suffices for all exits, because their arrivals come in order.
func (r *reruns) runTo(at *ir.Instr, a *arrival) error {
	if a.run != nil {
		return nil
	}
	if r.last == nil || r.last.x.Steps() > a.steps {
		var err error
		if r.last, err = r.begin(nil); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(r.v.ctx, r.v.options.Time)
	defer cancel()
	x := r.last.x
	result, err := x.RunTo(ctx, a.steps)
	if result != nil || err != nil || x.At(0) != at || x.Steps() != a.steps {
		r.last = nil
		if ctx.Err() != nil {
			return r.tookLong()
		}
		return errors.New("its run from the entry cannot be repeated")
	}
	a.run = r.last
	return nil
}

// tookLong returns the error for a run that was repeated and took too long.
func (r *reruns) tookLong() error {
	return fmt.Errorf("repeating its run took over %v", r.v.options.Time)
}

// begin repeats a run. It returns a run that is stopped at the place at which the first run began.
func (r *reruns) begin(wait func() bool) (*stoppedRun, error) {
	ready, err := r.prepare(nil, wait)
	if err != nil {
		return nil, err
	}
	x, err := ready.step()
	if err != nil {
		return nil, err
	}
	return &stoppedRun{ready.machine, x}, nil
}

// visit repeats the run from an entry or an exit, up to the place of native code. It calls look whenever the run is about to execute at in the
// function that was entered or left. At the place at which an exit resumes, it calls look only when the run reaches it again. look returns whether to
// continue. At a call that native code has not made yet, visit calls wait, which returns true once native code has made it. If wait returns false or
// is nil, the run ends there.
func (r *reruns) visit(ctx context.Context, at *ir.Instr, wait func() bool, look func(*stoppedRun) bool) (why error) {
	run, err := r.begin(wait)
	if err == nil {
		err = run.x.StopAt(at.Block, true)
	}
	if err != nil {
		return err
	}
	x := run.x
	ended := func(err error) error { // another end than that of the first run is a reason; an abandoned run is not
		failed := (*interp.RunError)(nil)
		switch {
		case ctx.Err() != nil:
			return r.tookLong()
		case !errors.Is(err, errAbandoned) && errors.As(err, &failed) && r.interp.failed == nil && r.interp.incomparable == nil:
			return frame.Errorf("its run from the entry cannot be repeated: %w", err)
		}
		return nil
	}
	first := r.origin.entry && at.Block.Index == 0 // a run from the entry is already at its first instruction
	for n := 0; n < maxArrivals; n++ {
		if !first {
			if result, err := x.Run(ctx); result != nil || err != nil {
				return ended(err)
			}
		}
		first = false
		if x.Depth() != 1 {
			continue
		}
		for x.Depth() != 1 || x.At(0) != at { // a callee may reach the same instruction in its own activation
			if result, err := x.Step(ctx); result != nil || err != nil {
				return ended(err)
			}
			if i := x.At(0); x.Depth() == 1 && (i == nil || i.Block != at.Block) {
				break // the run is past the instruction
			}
		}
		if x.Depth() == 1 && x.At(0) == at && !look(run) {
			return nil
		}
	}
	return fmt.Errorf("its run from the entry reaches the place more than %d times", maxArrivals)
}
