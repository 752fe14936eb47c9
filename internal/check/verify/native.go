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
		for _, p := range v.pending { // after an error
			p.finish()
		}
		v.memory, v.nativeCalls, v.call = nil, nil, nil
	}()
	budget := newBudget(&v.options)
	for len(v.pending) > 0 {
		atSpeed := budget.steps == 0
		if atSpeed && !v.mayRunAtSpeed() {
			return v.abandon(fmt.Sprintf("native code did not return: it ran %d instructions", v.options.Steps))
		}
		first := v.pending[0]
		exits, _ := v.exitsPending(0)
		full := exits >= maxInAll || v.options.EntriesOf != nil && !v.roomForEntry() || v.limitReached()
		var before []ptrace.Hits
		var pass []machine.Addr
		if !full && !v.lockstep {
			pass = v.placesWithoutStop()
		}
		if full || pass != nil {
			var err error
			if before, err = v.session.Hits(); err != nil {
				return err
			}
		}
		o := ptrace.AloneOptions{Hits: !full, Pass: pass, Loads: v.options.With != "", Fatal: !v.lockstep, Steps: budget.next(v.lockstep), Time: budget.time, Tail: v.options.Tail}
		hurries := v.atFullSpeed()
		switch {
		case v.call == nil: // the stack has no pending prediction
			for _, p := range v.pending {
				p.native.ranOutside = true
			}
		case v.call.native != nil:
		case hurries, atSpeed:
			for _, p := range v.pending {
				p.native.ranOutside = true // it may have called outside code, unseen
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
		if atSpeed { // these instructions are not counted
			o.Steps = 1
		}
		for _, c := range v.callsInProgress() {
			o.Returns = append(o.Returns, c.to)
		}
		o.Returns = append(o.Returns, v.outer...)
		began := time.Now()
		run, err := v.runThread(first.out.Exit.Thread.ID, o)
		if err != nil {
			if errors.Is(err, ptrace.ErrGone) {
				if errors.Is(err, ptrace.ErrReleased) {
					return v.abandon(endReason(err))
				}
				return v.handleProcessEnd("the process ended")
			}
			return err
		}
		if run.Passed > 0 {
			if err := v.countPassed(before, run); err != nil {
				return err
			}
		}
		for _, p := range v.pending {
			p.native.add(run, v.options.Tail)
		}
		for _, p := range v.inStep() { // for the others, these calls are part of a native call
			p.native.addCalls(run.Calls)
		}
		check := budget.spend(run, began)
		v.stepped += run.Steps
		if (check || run.Late) && !v.lockstep {
			done, err := v.endRunaway(run)
			if err != nil {
				return err
			}
			if done {
				return nil
			}
		}
		switch {
		case run.Fatal != 0:
			err = v.handleCrash(run)
		case run.Late && v.lockstep && budget.time > minTime:
			err = context.Cause(v.ctx) // nil: continue
		case run.Late && v.lockstep:
			err = v.abandon(fmt.Sprintf("native code did not reach a site: it took over %v", v.options.Time))
		case run.Stopped != "" && v.threadEnded:
			err = v.handleProcessEnd("native code did not return: " + run.Stopped)
		case run.Stopped != "" && !hurries && v.atFullSpeed(): // continue at full speed
		case run.Stopped != "" && check && !run.Late && run.Steps >= o.Steps && budget.steps > 0 && !atSpeed: // stopped for the check
		case run.Stopped != "" && !run.Late && budget.steps == 0 && !atSpeed && v.mayRunAtSpeed():
		case run.Stopped != "":
			v.timedOutAtSpeed = v.timedOutAtSpeed || atSpeed && run.Late
			err = v.abandon("native code did not return: " + v.bounded(run, &o))
		case run.Return >= 0:
			err = v.handleReturn(run)
		case run.Entered != 0:
			err = v.handleCall(run)
		default:
			begun := v.predictions
			err = v.watcher.HandleHit(run.Hit, run.Thread)
			// Start a new budget only for a new prediction: a program may load code, and a recursion may pass sites, without end.
			if v.predictions > begun || v.lockstep && !run.Load {
				budget = newBudget(&v.options)
			}
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// mayRunAtSpeed reports whether native code that has used up its steps may run at full speed for the rest of its time, to the return or crash of a
// whole activation, which cannot be compared at a next hit.
func (v *verifier) mayRunAtSpeed() bool { return v.options.EntriesOf != nil && !v.timedOutAtSpeed }

// bounded returns the reason why native code was stopped. It names the whole bound, not the rest that was left after calls and exits.
func (v *verifier) bounded(run *ptrace.AloneRun, o *ptrace.AloneOptions) string {
	switch {
	case run.Late:
		return fmt.Sprintf("it took over %v", v.options.Time)
	case run.Steps >= o.Steps:
		return fmt.Sprintf("it ran %d instructions", v.options.Steps)
	}
	return run.Stopped
}

// countPassed counts the exits that the thread passed without a stop.
func (v *verifier) countPassed(before []ptrace.Hits, run *ptrace.AloneRun) error {
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
			n-- // where it stopped
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
			v.unfollow(p.origin.to, "the run from its entry was abandoned: "+why)
			if e.exits == 0 { // so would be the next activation
				v.exitless[e.function] = maxExitless
			}
		}
		if !v.comparison(p).atNextHit() {
			p.out.notComparable(why)
		}
	}
	return v.reportAll(pending)
}

// handleReturn handles the calls that the thread has returned from. Several exits of one activation return together, and a jump may have called a callee.
// A call that is still pending from a returned activation was left without a return.
func (v *verifier) handleReturn(run *ptrace.AloneRun) error {
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
		case c == nil: // a caller further out has returned
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
			p.out.notComparable(leftWithoutReturn)
		case waits[p]:
			p.out.notComparable(p.leftCallReason())
		default:
			v.comparison(p).atReturn(regs)
		}
	}
	return v.reportAll(done)
}
