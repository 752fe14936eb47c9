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
// and the addresses have no breakpoints. A thread that was already reported at one of them must reach it again; a thread that is there for another
// reason counts as having reached it.
//
// If the process ends first, RunTo returns [ErrProcessExited]; an exec is an error too. If ctx is done, the error is its cause, and the process keeps running.
func (s *Session) RunTo(ctx context.Context, addrs ...machine.Addr) (machine.Thread, error) {
	// Make them uncounted: they must not change the counting of hits for other callers.
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
		return t, err // the process's end has removed the breakpoints
	}
	return t, errors.Join(err, s.Remove(addrs...))
}

// until skips events until a thread is at one of the addresses.
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
		case e.held && slices.Contains(addrs, e.At): // not an earlier hit that stopped no thread
			return e.Thread, nil
		}
	}
}
