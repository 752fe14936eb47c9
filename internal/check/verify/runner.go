package verify

import (
	"context"
	"errors"
	"time"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
)

// runner runs the interpreter in step with native code: at each native call the interpreter waits until it gets the effects of the call.
type runner struct {
	ctx       context.Context // context of the run, nil before it started
	stop      context.CancelCauseFunc
	remaining time.Duration // remaining time
	calls     chan *interp.Invocation
	results   chan interp.Value
	ended     chan struct{} // closed when the run has ended; nil before it started
	result    *interp.Result
	err       error
}

// errAbandoned ends a run whose result is no longer needed.
var errAbandoned = errors.New("the run was abandoned")

func newRunner(limit time.Duration) *runner {
	return &runner{remaining: limit, calls: make(chan *interp.Invocation), results: make(chan interp.Value)}
}

// native implements [interp.Options].Native. It passes a native call to next or resume, and waits for the result.
func (r *runner) native(c *interp.Invocation) (v interp.Value, err error) {
	select {
	case r.calls <- c:
	case <-r.ctx.Done():
		return v, context.Cause(r.ctx)
	}
	select {
	case v = <-r.results:
		return v, nil
	case <-r.ctx.Done():
		return v, context.Cause(r.ctx)
	}
}

// start starts run. The interpreter in it passes its native calls to r. The caller must call finish.
func (r *runner) start(ctx context.Context, run func(context.Context) (*interp.Result, error)) {
	r.ctx, r.stop = context.WithCancelCause(ctx)
	r.ended = make(chan struct{})
	go func() {
		defer close(r.ended)
		r.result, r.err = run(r.ctx)
	}()
}

// next waits until the run makes a native call, and returns the call. It returns nil if the run has ended.
func (r *runner) next() *interp.Invocation {
	began := time.Now()
	late := time.AfterFunc(r.remaining, func() { r.stop(context.DeadlineExceeded) })
	defer func() {
		late.Stop()
		r.remaining -= time.Since(began)
	}()
	select {
	case c := <-r.calls:
		return c
	case <-r.ended:
		return nil
	}
}

// resume passes the result of the native call to the run, and then waits for the next call, as next does.
func (r *runner) resume(v interp.Value) *interp.Invocation {
	select {
	case r.results <- v:
	case <-r.ended:
	}
	return r.next()
}

// finish ends the run, if it is still running.
func (r *runner) finish() {
	r.stop(errAbandoned)
	<-r.ended
}

// imageMemory is the memory of the process at the time of an image. Memory that was not writable then is read in its current state.
type imageMemory struct {
	image  *memoryImage
	now    machine.Memory
	shared machine.Addr // address of the first read from a shared mapping, or 0
}

// ReadMemory implements [machine.Memory].
func (m *imageMemory) ReadMemory(p []byte, addr machine.Addr) error {
	for len(p) > 0 {
		n := m.image.read(p, addr)
		if m.shared == 0 && n > 0 && m.image.sharedAt(addr) {
			m.shared = addr
		}
		if n == 0 { // not in the image: read up to the next page
			n = int(min(uint64(len(p)), imagePage-uint64(addr)%imagePage))
			if err := m.now.ReadMemory(p[:n], addr); err != nil {
				return err
			}
		}
		p, addr = p[n:], addr+machine.Addr(n)
	}
	return nil
}
