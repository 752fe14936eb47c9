package ptrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
)

// RunTo runs the process until a thread reaches one of the addresses, and returns that thread with all registers. All threads are stopped then, and
// there is no breakpoint at the addresses any more. A thread that was reported at one of them must reach it again; one that is there for another
// reason counts as having reached it.
//
// If the process ends before, RunTo returns [ErrGone]; if it becomes another program, an error. If ctx is done, the error is its cause, and the
// process keeps running.
func (s *Session) RunTo(ctx context.Context, addrs ...machine.Addr) (machine.Thread, error) {
	// Uncounted: the counting of hits for other callers must not change.
	list := make([]Breakpoint, len(addrs))
	for i, a := range addrs {
		list[i] = Breakpoint{Addr: a, Hold: true, Uncounted: true, Vectors: true}
	}
	err := s.Insert(list...)
	var t machine.Thread
	if err == nil {
		t, err = s.until(ctx, addrs)
	}
	if s.ended {
		return t, err // what was written is gone with the process
	}
	return t, errors.Join(err, s.Remove(addrs...))
}

// until passes events over until a thread is at one of the addresses.
func (s *Session) until(ctx context.Context, addrs []machine.Addr) (machine.Thread, error) {
	op := "cannot run it to " + strings.Trim(fmt.Sprint(addrs), "[]")
	for {
		e, err := s.Next(ctx)
		switch {
		case err != nil:
			return machine.Thread{}, err
		case e.Kind == Ended:
			return machine.Thread{}, &Error{s.pid, op, ErrGone, ""}
		case e.Kind == Exec:
			return machine.Thread{}, &Error{s.pid, op, errors.New("it became another program"), ""}
		case e.held && slices.Contains(addrs, e.At): // not an earlier one, at which no thread was to be stopped
			return e.Thread, nil
		}
	}
}
