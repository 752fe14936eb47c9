package verify

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// runNative runs native code until no prediction is pending.
func (v *verifier) runNative() error {
	defer func() {
		for _, p := range v.pending { // predictions are still pending after an error
			p.finish()
		}
		v.memory, v.nativeCalls, v.call = nil, nil, nil
	}()
	budget := newBudget(&v.options)
	for len(v.pending) > 0 {
		if budget.steps == 0 && !v.mayRunAtSpeed() {
			return v.abandon(fmt.Sprintf("native code did not return: it ran %d instructions", v.options.Steps))
		}
		s, err := v.newStretch(budget)
		if err != nil {
			return err
		}
		switch err := v.runStretch(s); {
		case errors.Is(err, ptrace.ErrProcessExited) && errors.Is(err, ptrace.ErrReleased):
			return v.abandon(endReason(err))
		case errors.Is(err, ptrace.ErrProcessExited):
			return v.handleProcessEnd("the process ended")
		case err != nil:
			return err
		}
		if err := v.recordStretch(s); err != nil {
			return err
		}
		if (s.check || s.run.Late) && !v.lockstep {
			if done, err := v.endRunaway(s.run); done || err != nil {
				return err
			}
		}
		begun := v.predictions
		if err := v.handleStop(s); err != nil {
			return err
		}
		// Start a new budget only after a new prediction or, in lockstep, at any hit but a load. Otherwise a program that loads code, or recurses through
		// sites, without end would never use the budget up.
		if s.atHit() && (v.predictions > begun || v.lockstep && !s.run.Load) {
			budget = newBudget(&v.options)
		}
	}
	return nil
}

// stretch is a run of native code up to an event: a return, a call, a breakpoint or a bound.
type stretch struct {
	budget  *budget
	options ptrace.SingleThreadOptions
	atSpeed bool          // the steps are used up, and native code runs at full speed
	fast    bool          // a [Lockstep] no longer needs single-stepping
	hits    []ptrace.Hits // the counts of hits before the run, if the thread may pass exits without a stop
	began   time.Time
	run     *ptrace.SingleThreadRun
	check   bool // check the stack after the run
}

// atHit reports whether the run ended at a breakpoint.
func (s *stretch) atHit() bool {
	return s.run.Fatal == 0 && s.run.Stopped == "" && s.run.Return < 0 && s.run.Entered == 0
}

// newStretch returns the next run of native code, with the events and bounds that end it.
func (v *verifier) newStretch(budget *budget) (*stretch, error) {
	s := &stretch{budget: budget, atSpeed: budget.steps == 0, fast: v.atFullSpeed()}
	exits, _ := v.exitsPending(0)
	full := exits >= maxInAll || v.options.EntriesOf != nil && !v.roomForEntry() || v.limitReached()
	var pass []machine.Addr
	if !full && !v.lockstep {
		pass = v.placesWithoutStop()
	}
	if full {
		v.watcher.Unseen()
	}
	if full || pass != nil {
		var err error
		if s.hits, err = v.session.Hits(); err != nil {
			return nil, err
		}
	}
	o := &s.options
	*o = ptrace.SingleThreadOptions{Hits: !full, Pass: pass, Loads: v.options.With != "", Fatal: !v.lockstep, Steps: budget.next(v.lockstep), Time: budget.time, Tail: v.options.Tail}
	switch {
	case v.call == nil: // the current stack has no pending prediction
		for _, p := range v.pending {
			p.native.ranOutside = true
		}
	case v.call.native != nil:
	case s.fast, s.atSpeed:
		for _, p := range v.pending {
			p.native.ranOutside = true // verify does not see whether native code calls outside code
		}
	default:
		o.Inside = v.watcher.Code()
		for _, p := range v.inStep() {
			if p.interp.pending != nil {
				o.Entries = append(o.Entries, p.interp.callee)
			}
		}
		if v.lockstep && o.Entries == nil {
			o.Steps = min(o.Steps, maxStepped-v.stepped)
		}
	}
	if s.atSpeed { // the budget of steps is used up: native code runs without being counted
		o.Steps = 1
	}
	for _, c := range v.callsInProgress() {
		o.Returns = append(o.Returns, c.to)
	}
	o.Returns = append(o.Returns, v.outer...)
	return s, nil
}

// runStretch runs native code until an event or a bound of the stretch stops it.
func (v *verifier) runStretch(s *stretch) (err error) {
	s.began = time.Now()
	s.run, err = v.runThread(v.pending[0].out.Exit.Thread.ID, s.options)
	return err
}

// recordStretch records the instructions and calls of native code, and subtracts them from the budget.
func (v *verifier) recordStretch(s *stretch) error {
	if s.run.Passed > 0 {
		if err := v.countPassed(s.hits, s.run); err != nil {
			return err
		}
	}
	for _, p := range v.pending {
		p.native.add(s.run, v.options.Tail)
	}
	for _, p := range v.inStep() { // for other predictions, these calls are part of a native call
		p.native.addCalls(s.run.Calls)
	}
	s.check = s.budget.spend(s.run, s.began)
	v.stepped += s.run.Steps
	return nil
}

// handleStop handles the event that ended a run.
func (v *verifier) handleStop(s *stretch) error {
	run := s.run
	switch {
	case run.Fatal != 0:
		return v.handleCrash(run)
	case run.Stopped != "":
		return v.handleBound(s)
	case run.Return >= 0:
		return v.handleReturn(run)
	case run.Entered != 0:
		return v.handleCall(run)
	}
	return v.watcher.HandleHit(run.Hit, run.Thread)
}

// handleBound is called when a bound has stopped native code. If the time or the steps of the budget are used up, it gives up the pending
// predictions. Otherwise native code continues. It also continues without steps if [verifier.mayRunAtSpeed] returns true.
func (v *verifier) handleBound(s *stretch) error {
	run, budget := s.run, s.budget
	switch {
	case run.Late && v.lockstep && budget.time > minTime:
		return context.Cause(v.ctx) // nil: continue
	case run.Late && v.lockstep:
		return v.abandon(fmt.Sprintf("native code did not reach a site: it took over %v", v.options.Time))
	case v.threadEnded:
		return v.handleProcessEnd("native code did not return: " + run.Stopped)
	case !s.fast && v.atFullSpeed(): // continue at full speed
		return nil
	case s.check && !run.Late && run.Steps >= s.options.Steps && budget.steps > 0 && !s.atSpeed: // stopped for the check
		return nil
	case !run.Late && budget.steps == 0 && !s.atSpeed && v.mayRunAtSpeed():
		return nil
	}
	v.timedOutAtSpeed = v.timedOutAtSpeed || s.atSpeed && run.Late
	return v.abandon("native code did not return: " + v.boundReason(run, &s.options))
}

// mayRunAtSpeed reports whether native code that has used up its steps may run at full speed for the rest of its time, to the return or crash of a
// whole activation. Such an activation cannot be compared at the next hit of a record.
func (v *verifier) mayRunAtSpeed() bool { return v.options.EntriesOf != nil && !v.timedOutAtSpeed }

// boundReason returns the reason why a bound stopped native code. It names the complete bound, not the part that remained after calls and exits.
func (v *verifier) boundReason(run *ptrace.SingleThreadRun, o *ptrace.SingleThreadOptions) string {
	switch {
	case run.Late:
		return fmt.Sprintf("it took over %v", v.options.Time)
	case run.Steps >= o.Steps:
		return fmt.Sprintf("it ran %d instructions", v.options.Steps)
	}
	return run.Stopped
}

// countPassed counts the exits that the thread passed without a stop.
func (v *verifier) countPassed(before []ptrace.Hits, run *ptrace.SingleThreadRun) error {
	after, err := v.session.Hits()
	if err != nil {
		return err
	}
	counted := map[machine.Addr]uint64{}
	for _, h := range before {
		counted[h.Addr] = h.Count
	}
	for _, h := range after {
		n := h.Count - counted[h.Addr]
		if n > 0 && h.Addr == run.Hit && !run.Load {
			n-- // the hit at which the thread stopped is not counted as passed
		}
		for _, point := range v.watcher.At(h.Addr) {
			if point.Entry {
				continue
			}
			v.number += n
			v.hits[point.Record] += n
			why := v.skipReason(h.Addr)
			if v.limitReached() {
				why = skippedByLimit
			} else if v.options.EntriesOf != nil {
				why = v.entrySkipReason()
			}
			v.skip(point, n, why)
			if n > 0 {
				v.countSkipped(point.Record, nil)
			}
		}
	}
	return nil
}

// handleProcessEnd handles the end of the process.
func (v *verifier) handleProcessEnd(why string) error {
	for _, p := range v.inStep() {
		if p.native.signal != 0 && p.native.handling && !v.lockstep {
			return v.concludeCrash(fatal{signal: p.native.signal, handler: true})
		}
	}
	return v.abandon(why)
}

// abandon gives up the pending predictions.
func (v *verifier) abandon(why string) error {
	pending := v.pending
	v.pending, v.nativeCalls, v.call = nil, nil, nil
	for _, p := range pending {
		p.finish()
		p.out.Native.Steps = p.native.steps
		if e := p.entry; e != nil && v.byLayout() {
			v.unfollow(p.origin.to, errors.New("the run from its entry was abandoned: "+why))
			if e.exits == 0 { // the next activation of the function would also be given up
				v.exitless[e.function] = maxExitless
			}
		}
		if !v.comparison(p).atNextHit() {
			p.out.notComparable(errors.New(why))
		}
	}
	return v.reportAll(pending)
}

// handleReturn handles the calls from which the thread has returned. Several exits of one activation return together, and a jump may have called a
// callee. A call that is still pending from a returned activation was left without a return.
func (v *verifier) handleReturn(run *ptrace.SingleThreadRun) error {
	regs := run.Thread.Registers
	sp, err := regs.Addr(regs.Arch().SP)
	if err != nil {
		return err
	}
	pc, err := regs.Addr(regs.Arch().PC)
	if err != nil {
		return err
	}
	found := false
	for {
		c := innermost(slices.DeleteFunc(v.callsInProgress(), func(c *call) bool { return !c.returned(pc, sp) }))
		switch {
		case c == nil && found:
			return nil
		case c == nil: // an outer caller has returned
			return v.abandon(leftWithoutReturn)
		case c.native != nil:
			err = v.handleCalleeReturn(c.native, regs)
		default:
			err = v.compareReturned(c, regs)
		}
		if err != nil {
			return err
		}
		found = true
	}
}

// compareReturned compares the predictions that are pending in an activation that has returned.
func (v *verifier) compareReturned(c *call, regs *machine.Registers) error {
	var done, rest []*prediction
	for _, p := range v.pending {
		if p.call.within(c) {
			done = append(done, p)
		} else {
			rest = append(rest, p)
		}
	}
	waits := v.endNativeCalls(func(x *nativeCall) bool { return x.call.within(c) })
	v.pending, v.call = rest, c.outer
	v.updateCall()
	for _, p := range slices.Backward(done) {
		p.finish()
		switch {
		case p.call != c:
			p.out.notComparable(errors.New(leftWithoutReturn))
		case waits[p]:
			p.out.notComparable(p.leftCallReason())
		default:
			v.comparison(p).atReturn(regs)
		}
	}
	return v.reportAll(done)
}
