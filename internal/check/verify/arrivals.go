package verify

import (
	"context"
	"errors"
	"fmt"
	"iter"
	"slices"
	"time"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// maxArrivals bounds the arrivals of a run at one place.
const maxArrivals = 100_000

// maxKept bounds the values that are kept of all arrivals of a run: beyond it, each exit needs runs of its own. It is a variable for a test.
var maxKept = 1 << 17

// arrival is a moment at which a run is about to execute an instruction.
type arrival struct {
	steps  uint64 // number of instructions that the run had executed
	values []arrived
	in     *interp.Interp // stopped at the arrival; nil until [prediction.bring] makes one
	x      *interp.Execution
}

// arrived is a value at an arrival, none if the run has no such value. made reports whether it is an address that exists only in the interpreter.
type arrived struct {
	interp.Value
	made bool
}

// arrivals holds the arrivals of a run from an entry at one place. One repeated run collects them for all exits of the activation. It waits at calls
// that native code has not made yet.
type arrivals struct {
	of    []ir.Value // the values that are kept
	list  []arrival
	why   string                  // why there may be more arrivals
	many  bool                    // there were too many to keep
	more  func() (struct{}, bool) // lets the run continue; false: it has ended
	stop  func()
	late  context.CancelFunc
	calls int // number of calls that native code had made when the run last continued
	over  bool
}

// each calls look with each arrival of a run from an entry at an instruction, up to where native code is, until look returns false. The arrival holds
// the given values, in this order. each returns why there may be unknown arrivals, or "".
func (p *prediction) each(v *verifier, at *ir.Instr, values []ir.Value, look func(*arrival) bool) (why string) {
	if p.effects.tooLarge() {
		return errTooMuch.Error()
	}
	t := p.arrivals[at]
	if t == nil || !t.many && slices.ContainsFunc(values, func(value ir.Value) bool { return !slices.Contains(t.of, value) }) {
		of := slices.Clone(values)
		if t != nil { // kept for another record that resumes at the same instruction
			of = append(of, t.of...)
			p.forget(at)
		}
		t = p.keep(v, at, of)
	}
	if t.goOn(v, len(p.effects.calls)); t.many {
		ctx, cancel := context.WithTimeout(v.ctx, v.options.Time)
		defer cancel()
		return p.visit(ctx, v, at, nil, func(in *interp.Interp, x *interp.Execution) bool {
			return look(&arrival{x.Steps(), valuesOf(in, x, values), in, x})
		})
	}
	var index []int
	for _, value := range values {
		index = append(index, slices.Index(t.of, value))
	}
	for _, kept := range t.list {
		a := arrival{steps: kept.steps}
		for _, n := range index {
			a.values = append(a.values, kept.values[n])
		}
		if !look(&a) {
			return ""
		}
	}
	return t.why
}

// keep starts to collect the arrivals at an instruction.
func (p *prediction) keep(v *verifier, at *ir.Instr, of []ir.Value) *arrivals {
	if p.arrivals == nil {
		p.arrivals = map[*ir.Instr]*arrivals{}
	}
	t := &arrivals{of: of, calls: -1}
	ctx, cancel := context.WithCancel(v.ctx)
	more, stop := iter.Pull(func(yield func(struct{}) bool) {
		t.why = p.visit(ctx, v, at, func() bool { return yield(struct{}{}) }, func(in *interp.Interp, x *interp.Execution) bool {
			if p.values += 1 + len(of); p.values > maxKept {
				p.values -= (1 + len(of)) * (1 + len(t.list))
				t.many, t.list = true, nil
				return false
			}
			t.list = append(t.list, arrival{steps: x.Steps(), values: valuesOf(in, x, of)})
			return true
		})
	})
	t.more, t.late = more, cancel
	t.stop = func() {
		stop()
		cancel()
	}
	p.arrivals[at] = t
	return t
}

// forget discards the arrivals at an instruction.
func (p *prediction) forget(at *ir.Instr) {
	t := p.arrivals[at]
	t.stop()
	p.values -= (1 + len(t.of)) * len(t.list)
	delete(p.arrivals, at)
}

// goOn lets the run continue to where native code is, which has made this many calls.
func (t *arrivals) goOn(v *verifier, calls int) {
	if t.over || t.calls == calls {
		return
	}
	t.calls = calls
	late := time.AfterFunc(v.options.Time, t.late)
	defer late.Stop()
	if _, waits := t.more(); !waits {
		t.over = true
		t.late()
	}
}

// valuesOf returns the values of the innermost activation.
func valuesOf(in *interp.Interp, x *interp.Execution, of []ir.Value) (values []arrived) {
	for _, value := range of {
		has, _ := x.Value(0, value)
		a, is := has.Uint()
		values = append(values, arrived{has, is && in.Made(a)})
	}
	return values
}

// bring runs the interpreter to an arrival. One run usually serves all exits, as their arrivals come in order.
func (p *prediction) bring(v *verifier, at *ir.Instr, a *arrival) error {
	if a.x != nil {
		return nil
	}
	if p.x == nil || p.x.Steps() > a.steps {
		var err error
		if p.in, p.x, err = p.begun(v, nil); err != nil {
			return err
		}
	}
	ctx, cancel := context.WithTimeout(v.ctx, v.options.Time)
	defer cancel()
	result, err := p.x.RunTo(ctx, a.steps)
	if result != nil || err != nil || p.x.At(0) != at || p.x.Steps() != a.steps {
		p.x = nil
		if ctx.Err() != nil {
			return tookLong(v)
		}
		return errors.New("its run from the entry cannot be made once more")
	}
	a.in, a.x = p.in, p.x
	return nil
}

// tookLong returns the error for a run that was repeated and took too long.
func tookLong(v *verifier) error {
	return fmt.Errorf("its run, made once more, took over %v", v.options.Time)
}

// begun repeats a run: it returns an execution that is stopped where the first one began.
func (p *prediction) begun(v *verifier, wait func() bool) (in *interp.Interp, x *interp.Execution, err error) {
	ready, err := p.rerun(v, nil, wait)
	if err != nil {
		return nil, nil, err
	}
	x, err = ready.step()
	return ready.machine, x, err
}

// visit repeats the run from an entry or an exit, as far as native code has come, and calls look whenever it is about to execute at in the function
// that was entered or left: where an exit resumes, only when the run comes there again. look returns whether to continue. At a call that native code
// has not made yet, wait returns whether it has made it; false means not to wait, and a nil wait means the same.
func (p *prediction) visit(ctx context.Context, v *verifier, at *ir.Instr, wait func() bool, look func(in *interp.Interp, x *interp.Execution) bool) (why string) {
	in, x, err := p.begun(v, wait)
	if err == nil {
		err = x.StopAt(at.Block, true)
	}
	if err != nil {
		return err.Error()
	}
	ended := func(err error) string { // a different end than the first run's is a reason; being given up is not
		run := (*interp.RunError)(nil)
		switch {
		case ctx.Err() != nil:
			return tookLong(v).Error()
		case !errors.Is(err, errAbandoned) && errors.As(err, &run) && p.interp.failed == nil && p.interp.incomparable == "":
			return fmt.Sprintf("its run from the entry cannot be made once more: %v", err)
		}
		return ""
	}
	first := p.entry != nil && at.Block.Index == 0 // a run from the entry is at its first instruction already
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
				break // it is past the instruction
			}
		}
		if x.Depth() == 1 && x.At(0) == at && !look(in, x) {
			return ""
		}
	}
	return fmt.Sprintf("its run from the entry comes there more than %d times", maxArrivals)
}
