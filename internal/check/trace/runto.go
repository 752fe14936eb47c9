package trace

import (
	"cmp"
	"context"
	"errors"
	"fmt"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/described"
	"example.com/reframe/ptrace"
)

// RunToOptions select the exit at which [RunTo] stops.
type RunToOptions struct {
	deopt.Options
	ExitFilter
	Also  []ExitFilter         // as in [Options]
	At    []*names.Pattern     // functions: the exit is the frame that calls one, as in [Options]; empty: sites
	Sites bool                 // with At: also stop at sites
	Stop  *condition.Condition // select only exits that fulfil it; nil: all
	// Selects reports whether an exit that fulfils Stop is selected. Nil: all are.
	Selects func(*Exited) bool
	Hit     uint64 // number of the selected exit, counted from the current stop; 0 and 1: the next one
	Warn    func(string)
	// Describe is as in [Options].
	Describe described.Ask
}

// Moment is a process stopped at an exit.
type Moment struct {
	// View holds all frames. The first thread is the one that reached the exit.
	View *deopt.View
	// Frame is the frame of the exit, nil at a symbol without a known caller.
	Frame *deopt.Frame
	Point *Tracepoint
}

// NotReachedError reports that a process ended before it reached an exit.
type NotReachedError struct {
	End  End
	Hits uint64 // number of selected exits, with or without the condition
	Stop *condition.Condition
	Held uint64 // number of exits at which the condition held; 0 without a condition
	Want uint64
	Why  string // the reason why no place was watched when the process ended
}

func (e *NotReachedError) Error() string {
	text := fmt.Sprintf("the program exited with status %d", e.End.ExitCode)
	if e.End.Kind == EndKilled {
		text = fmt.Sprintf("the program was killed by signal %d", e.End.Signal)
	}
	text += fmt.Sprintf(" before hit %d: it was there %d times", e.Want, e.Hits)
	if e.Stop != nil {
		text += fmt.Sprintf(", and %s was true %d times", e.Stop.Text, e.Held)
	}
	if e.Why != "" {
		text += "; " + e.Why
	}
	return text
}

// errReached ends a trace at the exit.
var errReached = errors.New("it is there")

// RunTo runs a process to an exit, in code that is loaded now or later, and returns the frames there. They are valid until the process resumes. RunTo
// removes all breakpoints. It returns a [*NotReachedError] if the process ends first, and an error that wraps [ptrace.ErrBegin] at the start of a
// recording that runs backwards. If ctx is done, it returns the cause, and the process is
// stopped at its current place, without breakpoints.
func RunTo(ctx context.Context, s *ptrace.Session, o RunToOptions) (*Moment, error) {
	o.Hit = max(o.Hit, 1)
	t := Options{Options: o.Options, ExitFilter: o.ExitFilter, Also: o.Also, At: o.At, Sites: o.Sites,
		Full: true, Every: o.Hit, Wait: true, Warn: o.Warn, Describe: o.Describe}
	held, chooses := uint64(0), o.Stop != nil || o.Selects != nil
	if chooses {
		t.Every = 1
	}
	before, err := s.Hits()
	if err != nil {
		return nil, err
	}
	var out *Moment
	var thread deopt.Thread
	tr := newTracer(s, t, func(x *Exited) error {
		if chooses {
			if o.Stop != nil && !x.Fulfils(o.Stop) || o.Selects != nil && !o.Selects(x) {
				return nil
			}
			if held++; held < o.Hit {
				return nil
			}
		}
		thread = deopt.Thread{ID: x.Thread.ID, Name: x.Thread.Name, Frames: x.Frames, End: x.End}
		out = &Moment{Frame: x.Frame, Point: x.Point}
		return errReached
	})
	err = tr.toExit(ctx, func() { held, out = 0, nil })
	switch {
	case err == nil:
		early, err := tr.notReached(s, before, o.Hit)
		if err != nil {
			return nil, err
		}
		early.Stop, early.Held = o.Stop, held
		return nil, early
	case errors.Is(err, errReached):
	case ctx.Err() != nil:
		if late := s.Stop(); late != nil {
			return nil, errors.Join(err, late)
		}
		return nil, errors.Join(err, tr.leave())
	case errors.Is(err, ptrace.ErrBegin): // the process is stopped there
		return nil, errors.Join(err, tr.leave())
	default:
		return nil, err
	}
	if out.View, err = tr.finishAt(thread); err != nil {
		return nil, err
	}
	return out, nil
}

// toExit runs the process to an exit. If the process was released before the exit was reported, toExit calls again and runs to another exit.
func (t *tracer) toExit(ctx context.Context, again func()) error {
	for {
		err := t.run(ctx, func() error { return nil })
		if off := t.session.Yield(false); off != nil && !errors.Is(off, ptrace.ErrProcessExited) { // the caller now holds the process
			return cmp.Or(err, off)
		}
		if !errors.Is(err, errReached) || !t.session.Released() {
			return err
		}
		again()
		if err := cmp.Or(t.session.Stop(), t.reportGap(t.session.Away())); err != nil {
			return err
		}
	}
}

// notReached returns the error for a process that has ended. It counts how often the process reached a selected place.
func (t *tracer) notReached(s *ptrace.Session, before []ptrace.Hits, want uint64) (*NotReachedError, error) {
	e := &NotReachedError{End: t.end, Want: want}
	after, err := s.Hits()
	if err != nil {
		return nil, err
	}
	for _, h := range after {
		e.Hits += h.Count
	}
	for _, h := range before {
		e.Hits -= h.Count
	}
	if len(t.places) == 0 {
		e.Why = t.noPlace()
	}
	return e, nil
}

// finishAt removes all breakpoints and returns the frames of all threads. reached is the thread at the exit.
func (t *tracer) finishAt(reached deopt.Thread) (*deopt.View, error) {
	if err := t.leave(); err != nil {
		return nil, err
	}
	return t.frames(reached)
}

// frames returns the frames of all threads of a stopped process, first those of the thread that reached the exit.
func (t *tracer) frames(reached deopt.Thread) (*deopt.View, error) {
	target, err := t.session.Target()
	if err != nil {
		return nil, err
	}
	v := t.view
	v.Move(target)
	v.Threads = []deopt.Thread{reached}
	for _, thread := range target.Threads() {
		if thread.ID == reached.ID {
			continue
		}
		other, err := v.ThreadOf(thread)
		if err != nil {
			return nil, err
		}
		v.Threads = append(v.Threads, other)
	}
	return v, nil
}
