package tracer

import (
	"bufio"
	"context"
	"encoding/gob"
	"errors"
	"fmt"
	"io"
	"net"
	"os/exec"
	"slices"
	"syscall"
	"time"
)

// Conn is the client's end of the connection to the tracer. It is not safe for concurrent use.
type Conn struct {
	net     *net.UnixConn
	in      *bufio.Reader
	decoder *gob.Decoder
	encoder *gob.Encoder
	cmd     *exec.Cmd
	// watchdog is closed when the tracer's watchdog has ended.
	watchdog <-chan struct{}
	waiting  []*Event // events that arrived before the reply to a request
	// abandoned is the number of pending replies that will be discarded.
	abandoned      int
	seen, programs uint64 // as in [Request]
	lease          *lease
	away           uint32 // number of [Away] events that were returned to the caller
	err            error  // why the connection has ended
	// Changed is called with each [Missed] event when it arrives, because the code under the breakpoint may have changed.
	Changed func(*Event)
}

// ErrKilled reports that the tracer ended without a request. The process that it traced continues to run, with breakpoints that no tracer handles.
var ErrKilled = errors.New("the guard process was killed")

// PID returns the number of the tracer process.
func (c *Conn) PID() int { return c.cmd.Process.Pid }

// Send makes a request that has no reply.
func (c *Conn) Send(r Request) error {
	if c.err != nil {
		return c.err
	}
	r.Seen, r.Programs = c.seen, c.programs
	if err := c.encoder.Encode(r); err != nil {
		return c.fail(err)
	}
	return nil
}

// Do makes a request and waits for its reply. The error may be one that the tracer reported.
func (c *Conn) Do(r Request) (*Reply, error) { return c.DoUntil(context.Background(), r) }

// DoUntil is like Do, for a request that may take long. If ctx is done, the error is its cause, and the tracer abandons the request when it receives
// the next one.
func (c *Conn) DoUntil(ctx context.Context, r Request) (*Reply, error) {
	if err := c.Send(r); err != nil {
		return nil, err
	}
	for {
		if err := c.await(ctx); err != nil {
			if ctx.Err() != nil {
				c.abandoned++
			}
			return nil, err
		}
		m, err := c.read()
		if err != nil {
			return nil, err
		}
		switch {
		case m.Event != nil:
			c.waiting = append(c.waiting, m.Event)
		case c.abandoned > 0: // the reply to an abandoned request
			c.abandoned--
		case m.Reply.Errno != 0:
			return m.Reply, fmt.Errorf("%s%w", m.Reply.Error, m.Reply.Errno)
		case m.Reply.Error != "":
			return m.Reply, errors.New(m.Reply.Error)
		default:
			return m.Reply, nil
		}
	}
}

// await waits until a message can be read.
func (c *Conn) await(ctx context.Context) error {
	if c.err != nil {
		return c.err
	}
	if c.in.Buffered() > 0 || ctx.Done() == nil { // avoid the cost of waiting for data that has already arrived
		return nil
	}
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		_ = c.net.SetReadDeadline(time.Unix(1, 0))
		close(woken)
	})
	_, err := c.in.Peek(1)
	if !stop() {
		<-woken
	}
	_ = c.net.SetReadDeadline(time.Time{})
	if ctx.Err() != nil {
		return context.Cause(ctx)
	}
	if err != nil {
		return c.fail(err)
	}
	return nil
}

// Waiting reports whether an event has been received that Event has not returned.
func (c *Conn) Waiting() bool { return len(c.waiting) > 0 }

// Event waits for the next event. When ctx is done, the error is its cause.
func (c *Conn) Event(ctx context.Context) (*Event, error) {
	e, err := c.next(ctx)
	if err != nil {
		return nil, err
	}
	c.returned(e)
	return e, nil
}

// returned counts an event that is returned to the caller.
func (c *Conn) returned(e *Event) {
	if e.Held {
		c.seen++
	}
	if e.Kind == Exec || e.Kind == Away {
		c.programs++
	}
	if e.Kind == Away {
		c.away++
	}
}

// Released reports whether the tracer has resumed the target without the client's knowledge. In that case, data that the client has read since the
// stop may be of different moments. Concurrent calls of Released are safe.
func (c *Conn) Released() bool { return c.lease.count() != c.away }

func (c *Conn) next(ctx context.Context) (*Event, error) {
	if len(c.waiting) > 0 {
		e := c.waiting[0]
		c.waiting = c.waiting[1:]
		return e, nil
	}
	if err := c.await(ctx); err != nil {
		return nil, err
	}
	m, err := c.read()
	if err != nil {
		return nil, err
	}
	if m.Event == nil {
		if c.abandoned == 0 {
			return nil, c.fail(errors.New("an unexpected reply"))
		}
		c.abandoned--
		return c.next(ctx)
	}
	return m.Event, nil
}

func (c *Conn) read() (*message, error) {
	if c.err != nil {
		return nil, c.err
	}
	var m message
	if err := c.decoder.Decode(&m); err != nil {
		return nil, c.fail(err)
	}
	if m.Event != nil && m.Event.Kind == Broken {
		return nil, c.fail(errors.New(m.Event.Why))
	}
	if m.Event != nil && m.Event.Kind == Missed && c.Changed != nil {
		c.Changed(m.Event)
	}
	if m.Event == nil && m.Reply == nil {
		return nil, c.fail(errors.New("an empty message"))
	}
	return &m, nil
}

func (c *Conn) fail(err error) error {
	if errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) || errors.Is(err, syscall.EPIPE) || errors.Is(err, syscall.ECONNRESET) {
		err = ErrKilled
	}
	c.err = err
	return err
}

// Take removes and returns the received events of a kind.
func (c *Conn) Take(kind EventKind) (list []*Event) {
	c.waiting = slices.DeleteFunc(c.waiting, func(e *Event) bool {
		if e.Kind == kind {
			list = append(list, e)
		}
		return e.Kind == kind
	})
	return list
}

// TakeAway removes and returns the received [Away] events. It drops earlier hits that held the target, because the target has run since.
func (c *Conn) TakeAway() (list []*Event) {
	for n := len(c.waiting) - 1; n >= 0; n-- {
		e := c.waiting[n]
		switch {
		case e.Kind == Away:
			list = append(list, e)
		case e.Kind != Hit || !e.Held || list == nil:
			continue
		}
		c.returned(e)
		c.waiting = slices.Delete(c.waiting, n, n+1)
	}
	slices.Reverse(list)
	return list
}

// lasting bounds the time for which Close waits for the tracer. After this time, the tracer has restored all code, and waits only for a thread that
// sleeps in the kernel.
const lasting = 10 * time.Second

// Close ends the tracer, which restores everything, and waits until it has ended.
func (c *Conn) Close() error {
	c.net.Close()
	c.lease.close()
	ended := make(chan error, 1)
	go func() {
		err := c.cmd.Wait()
		<-c.watchdog // the watchdog ends after the tracer
		ended <- err
	}()
	select {
	case err := <-ended:
		return err
	case <-time.After(lasting):
		return nil
	}
}
