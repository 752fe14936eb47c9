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

// maxArrivals bounds how often a run is looked at at one place.
const maxArrivals = 100_000

// maxKept bounds how many values of all its arrivals are kept: where there are more, each exit costs runs of its own. It is a variable for a test.
var maxKept = 1 << 17

// arrival is one moment at which a run is about to execute an instruction.
type arrival struct {
	steps  uint64 // of the run up to there
	values []arrived
	in     *interp.Interp // which stands there, or nil: [prediction.bring] makes one
	x      *interp.Execution
}

// arrived is a value at an arrival, none where the run has no such value. made reports whether it is an address that exists only in the interpreter.
type arrived struct {
	interp.Value
	made bool
}

// arrivals holds the arrivals of a run from an entry at one place. One more run makes them for all exits of the activation: it is stopped where
// native code has not made a call yet, and continues from there.
type arrivals struct {
	of     []ir.Value // whose values are kept
	list   []arrival
	why    string                  // why there may be others
	many   bool                    // they are not kept
	more   func() (struct{}, bool) // lets the run go on; false: it has ended
	stop   func()
	late   context.CancelFunc
	handed int // how many calls native code had made when it went on last
	over   bool
}

// each calls look with each arrival of a run from an entry before an instruction, as far as native code has come, until look returns false. values
// are those that an arrival has, in this order. each returns why there may be other arrivals that are not known, or "".
func (p *prediction) each(v *verifier, at *ir.Instr, values []ir.Value, look func(*arrival) bool) (why string) {
	if p.kept > maxHanded {
		return errTooMuch.Error()
	}
	t := p.arrivals[at]
	if t == nil || !t.many && slices.ContainsFunc(values, func(value ir.Value) bool { return !slices.Contains(t.of, value) }) {
		of := slices.Clone(values)
		if t != nil { // of another record that resumes there
			of = append(of, t.of...)
			p.forget(at)
		}
		t = p.keep(v, at, of)
	}
	if t.goOn(v, len(p.handed)); t.many {
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

// keep begins to keep the arrivals at an instruction.
func (p *prediction) keep(v *verifier, at *ir.Instr, of []ir.Value) *arrivals {
	if p.arrivals == nil {
		p.arrivals = map[*ir.Instr]*arrivals{}
	}
	t := &arrivals{of: of, handed: -1}
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

// forget ends to keep them.
func (p *prediction) forget(at *ir.Instr) {
	t := p.arrivals[at]
	t.stop()
	p.values -= (1 + len(t.of)) * len(t.list)
	delete(p.arrivals, at)
}

// goOn lets the run come as far as native code, which has made this many calls.
func (t *arrivals) goOn(v *verifier, handed int) {
	if t.over || t.handed == handed {
		return
	}
	t.handed = handed
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

// bring runs the interpreter to an arrival. Those of the exits come in order as a rule, and one run comes to all of them.
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
	if in, _, err = p.rerun(v, nil, wait); err != nil {
		return nil, nil, err
	}
	if p.entry != nil {
		x, err = in.StartCall(p.fn, p.args)
	} else {
		x, err = in.StartStack([]interp.Activation{p.start})
	}
	return in, x, err
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
	ended := func(err error) string { // how is known, but for one that was given up, or that ends as the first did not
		run := (*interp.RunError)(nil)
		switch {
		case ctx.Err() != nil:
			return tookLong(v).Error()
		case !errors.Is(err, errAbandoned) && errors.As(err, &run) && p.failed == nil && p.gone == "":
			return fmt.Sprintf("its run from the entry cannot be made once more: %v", err)
		}
		return ""
	}
	first := p.entry != nil && at.Block.Index == 0 // where it stands already
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
		for x.Depth() != 1 || x.At(0) != at { // what it calls may come to the same place in an activation of its own
			if result, err := x.Step(ctx); result != nil || err != nil {
				return ended(err)
			}
			if i := x.At(0); x.Depth() == 1 && (i == nil || i.Block != at.Block) {
				break // behind it already
			}
		}
		if x.Depth() == 1 && x.At(0) == at && !look(in, x) {
			return ""
		}
	}
	return fmt.Sprintf("its run from the entry comes there more than %d times", maxArrivals)
}
