package replay

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"
)

// grace bounds the time in which an item must end after its timeout. After that it is abandoned.
const grace = 2 * time.Second

// attempt processes one item. It always returns a result, even if the job panics or does not end.
func attempt(ctx context.Context, timeout time.Duration, job Job, item Item) Result {
	if timeout > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, timeout)
		defer cancel()
	}
	began := time.Now()
	out := make(chan Result, 1)
	go func() {
		defer func() {
			if p := recover(); p != nil {
				out <- Result{Kind: item.Kind, Path: item.Path, Outcome: Failed, Message: fmt.Sprintf("reframe is at fault: panic: %v", p), Log: string(debug.Stack())}
			}
		}()
		out <- job(ctx, item)
	}()
	var r Result
	select {
	case r = <-out:
	case <-ctx.Done():
		select {
		case r = <-out:
		case <-time.After(grace):
			r = Result{Kind: item.Kind, Path: item.Path, Outcome: Failed}
		}
	}
	if errors.Is(ctx.Err(), context.DeadlineExceeded) && (r.Outcome == Failed || r.Outcome == Partial) {
		r.Outcome = Failed
		late := fmt.Sprintf("it was stopped after %v", timeout)
		if r.Message != "" {
			late = r.Message + "; " + late
		}
		r.Message = late
	}
	r.MS = float64(time.Since(began).Microseconds()) / 1e3
	r.bound()
	return r
}
