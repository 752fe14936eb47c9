package ptrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"reframe/deopt/machine"
)

// RunTo lets the process run until a thread comes to one of the addresses, and returns that thread with all registers.
// All threads are stopped then, and there is no breakpoint at the addresses any more. The thread that an event was of
// at one of them has to come there again; one that stands there for another reason has come there.
//
// A process that ends before is [ErrGone], and one that becomes another program an error. When ctx is done the error is
// its cause, and the process runs on.
func (s *Session) RunTo(ctx context.Context, addrs ...machine.Addr) (machine.Thread, error) {
	// Uncounted: how the session counts the hits of others is no concern of theirs.
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
		case e.held && slices.Contains(addrs, e.At): // not one of before, at which nobody was to be stopped
			return e.Thread, nil
		}
	}
}
