package stress

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// narrow finds the exit whose commit causes the difference of the first run.
//
// The number of an exit does not depend on which other exits are committed, because exits inside a chosen activation are never counted. So narrow
// first finds, by bisection, the least number of first exits that cause the difference. Then it tests whether the last of these causes the difference
// alone.
func (s *stresser) narrow(ctx context.Context, first *attempt) error {
	r := &s.report
	all := first.committed
	none, err := s.rerun(ctx, "with no exit committed", plan{at: func(Exit) action { return skip }})
	if err != nil || none == nil {
		return err
	}
	if s.differs(none) {
		if none.TimedOut {
			r.undecided("it runs for longer than %v under control, even with no exit committed: use a longer --time, or fewer exits (--function, --record, --site)", s.options.Time)
			return nil
		}
		r.undecided("it differs even with no exit committed: its output changes between runs, or depends on its speed")
		return nil
	}
	s.bound = exitBound(none.exits)
	all = all[:min(uint64(len(all)), s.bound)] // without a fault in these exits, the program would have ended
	if first.TimedOut {
		why := endlessReason(first, none, s.options.Time)
		if why == "" {
			r.undecided("it runs for longer than %v: use a longer --time, or a lower --probability or --steps", s.options.Time)
			return nil
		}
		r.Differences[0].Stressed += ": " + why
	}
	r.Status = Different
	if len(all) == 0 {
		r.Narrowed = "no exit was committed in the run that differs"
		return nil
	}
	low, high := 0, len(all) // invariant: the first low commits make no difference, the first high do
	for high-low > 1 {
		half := low + (high-low)/2
		a, err := s.rerun(ctx, fmt.Sprintf("one of %d exits", high-low), firstOf(all, half))
		if err != nil || a == nil {
			return err
		}
		if s.differs(a) {
			high = half
		} else {
			low = half
		}
	}
	return s.confirm(ctx, all, high)
}

// differs reports whether a run differs from the untouched one.
func (s *stresser) differs(a *attempt) bool {
	return len(differences(s.report.Untouched, &a.Outcome)) > 0
}

// rerun runs the command once more; it returns nil after the last allowed run.
func (s *stresser) rerun(ctx context.Context, what string, p plan) (*attempt, error) {
	r := &s.report
	if r.Reruns >= s.options.Reruns {
		r.Narrowed = fmt.Sprintf("the limit of %d further runs was reached (--reruns)", r.Reruns)
		if r.Status == "" {
			r.Status, r.Why = Undecided, r.Narrowed
		}
		return nil, nil
	}
	r.Reruns++
	s.options.Progress(fmt.Sprintf("run %d more: %s", r.Reruns, what))
	return s.attempt(ctx, p)
}

// firstOf returns a plan that commits the first n exits of a list.
func firstOf(all []Exit, n int) plan {
	set := setOf(all[:n], interpret)
	return plan{at: func(e Exit) action { return set[e] }, all: n}
}

func setOf(list []Exit, do action) map[Exit]action {
	set := make(map[Exit]action, len(list))
	for _, e := range list {
		set[e] = do
	}
	return set
}

// confirm commits only the n-th exit of a list, and lets native code run the exits before it. If that run does not differ, confirm commits all of
// them.
func (s *stresser) confirm(ctx context.Context, all []Exit, n int) error {
	r := &s.report
	culprit := all[n-1]
	set := setOf(all[:n-1], runNative)
	set[culprit] = interpret
	a, err := s.rerun(ctx, "one exit alone", plan{at: func(e Exit) action { return set[e] }, all: 1, culprit: culprit})
	if err != nil || a == nil {
		return err
	}
	if s.differs(a) && slices.Contains(a.committed, culprit) {
		r.Culprit = a.culprit
		r.Culprit.Single, r.Culprit.Uncounted = true, a.uncounted
		return nil
	}
	if n > 1 {
		p := firstOf(all, n)
		p.culprit = culprit
		a, err = s.rerun(ctx, "one exit after others", p)
		if err != nil || a == nil {
			return err
		}
		if s.differs(a) && slices.Contains(a.committed, culprit) {
			r.Culprit = a.culprit
			r.Culprit.After = n - 1
			return nil
		}
	}
	r.Narrowed = fmt.Sprintf("exit %v caused a difference, but not when it was repeated: the difference depends on the order in which threads run, or on the time", culprit)
	return nil
}

// exitBound returns the greatest number of exits that a run with commits may reach. n is the number in a run without commits. Commits remove exits.
// Threads that wait for each other in loops may add some.
func exitBound(n uint64) uint64 { return 2*n + 1000 }

// endlessReason returns the evidence that a killed run would not have ended, or "": it reached more exits than possible, or reached none for longer
// than a whole untouched run takes.
func endlessReason(a, none *attempt, limit time.Duration) string {
	switch {
	case a.exits > exitBound(none.exits):
		return fmt.Sprintf("it reached %d exits, but %d with none committed", a.exits, none.exits)
	case a.idle > limit/2 && none.Seconds < limit.Seconds()/8:
		return "it reached no exit any more"
	}
	return ""
}
