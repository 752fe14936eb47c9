package ptrace

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
)

// RunTo runs the process until a thread reaches one of the addresses, and returns that thread with all registers. Afterwards all threads are stopped,
// and the addresses have no breakpoints. A thread that was already reported at an address must reach it again. A thread that is at an address for
// another reason counts as having reached it.
//
// If the process ends first, RunTo returns [ErrProcessExited]. An exec is also an error. If ctx is done, the error is its cause, and the process
// continues to run.
func (s *Session) RunTo(ctx context.Context, addrs ...machine.Addr) (machine.Thread, error) {
	// The breakpoints are uncounted, so that they do not change the counting of hits for other callers.
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
		return t, err // the end of the process has removed the breakpoints
	}
	return t, errors.Join(err, s.Remove(addrs...))
}

// until discards events until a thread is at one of the addresses.
func (s *Session) until(ctx context.Context, addrs []machine.Addr) (machine.Thread, error) {
	op := "cannot run it to " + strings.Trim(fmt.Sprint(addrs), "[]")
	for {
		e, err := s.Next(ctx)
		switch {
		case err != nil:
			return machine.Thread{}, err
		case e.Kind == Ended:
			return machine.Thread{}, s.failed(op, ErrProcessExited)
		case e.Kind == Exec:
			return machine.Thread{}, s.failed(op, errors.New("it became another program"))
		case e.Held && slices.Contains(addrs, e.At): // an earlier hit that did not stop the threads does not count
			return e.Thread, nil
		}
	}
}
