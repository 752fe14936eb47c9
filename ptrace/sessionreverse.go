package ptrace

import (
	"context"
	"errors"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
)

// ErrNoReverse is returned by operations that run a process backwards, if its debugger cannot.
var ErrNoReverse = holder.ErrNoReverse

// ErrBegin is wrapped in the error if running backwards reaches the start of the recording. The process is stopped there.
var ErrBegin = errors.New("this is the start of the recording")

var errRuns = errors.New("the process runs")

// errNoStub is the reason why a process without a stub cannot run backwards.
var errNoStub = errors.New("reverse execution requires a stub that supports it (--remote); rr and QEMU with icount replay do")

// WhyForwardOnly returns the reason why the process cannot run backwards, or nil if it can.
func (s *Session) WhyForwardOnly() error {
	switch {
	case s.held == nil:
		return errNoStub
	case !s.held.control.Reverses():
		return s.failed("cannot go back", ErrNoReverse)
	}
	return nil
}

// Backwards sets the direction of [Session.Next]. Backwards, Next returns hits of breakpoints in reverse order, or an error that wraps [ErrBegin]. If ctx
// is done, the process is stopped at some earlier moment.
func (s *Session) Backwards(on bool) error {
	if !on && s.held == nil {
		return nil
	}
	if err := s.WhyForwardOnly(); on && err != nil {
		return err
	}
	s.held.backwards = on
	return nil
}

// StepBack goes back by one instruction of a thread. The error wraps [ErrBegin] if the recording has no earlier moment.
func (s *Session) StepBack(ctx context.Context, tid int) error {
	_, err := s.reverse(func() (holder.Stop, error) { return s.held.control.StepBack(ctx, tid) })
	return err
}

// BackStop describes where and why a process that ran backwards has stopped.
type BackStop struct {
	Thread  machine.Thread
	Written bool // the thread is before the last instruction that wrote into the watched memory
	Changed bool // that instruction changed the memory; otherwise it wrote what was there
}

// RunBack runs the process backwards until a thread is at one of the addresses, or before the last instruction that wrote into a range of memory,
// which may be empty. Afterwards there are no breakpoints at the addresses. The error wraps [ErrBegin] at the start of the recording, and [ErrLacks]
// if the stub cannot watch memory. If ctx is done, the error is its cause, and the process is stopped at some earlier moment.
func (s *Session) RunBack(ctx context.Context, written machine.Range, addrs ...machine.Addr) (out BackStop, err error) {
	if err := s.WhyForwardOnly(); err != nil {
		return out, err
	}
	list := make([]Breakpoint, len(addrs))
	for i, a := range addrs {
		list[i] = Breakpoint{Addr: a, Hold: true, Uncounted: true, Vectors: true}
	}
	if err := s.Insert(list...); err != nil {
		return out, errors.Join(err, s.Remove(addrs...))
	}
	stop, err := s.reverse(func() (holder.Stop, error) { return s.held.control.RunBack(ctx, written) })
	if err == nil {
		out.Written, out.Changed = stop.Kind == holder.Written, stop.Changed
		if out.Thread, err = s.held.control.Thread(stop.Thread); err != nil {
			err = s.failed("cannot read its threads", err)
		}
	}
	return out, errors.Join(err, s.Remove(addrs...))
}

// reverse calls do, which runs the stopped process backwards.
func (s *Session) reverse(do func() (holder.Stop, error)) (stop holder.Stop, err error) {
	if err := s.WhyForwardOnly(); err != nil {
		return stop, err
	}
	switch {
	case s.ended:
		return stop, s.failed("cannot go back", ErrProcessExited)
	case !s.stands:
		return stop, s.failed("cannot go back", errRuns)
	}
	stop, err = s.held.back(do)
	s.stale = true // code may not be loaded yet
	if err != nil {
		err = s.failed("cannot go back", err)
	}
	return stop, err
}

// runBack calls [holder.Control.RunBack]. At the start of the recording, the error is [ErrBegin].
func (d *debugger) runBack(ctx context.Context, written machine.Range) (holder.Stop, error) {
	return d.back(func() (holder.Stop, error) { return d.control.RunBack(ctx, written) })
}

// back calls do, which runs the process backwards. At the start of the recording, the error is [ErrBegin].
func (d *debugger) back(do func() (holder.Stop, error)) (holder.Stop, error) {
	d.changed = true
	d.waiting = nil // these events belong to a later moment of the recording
	stop, err := do()
	d.stopped()
	if err == nil && stop.Kind == holder.Began {
		err = ErrBegin
	}
	return stop, err
}
