package main

import (
	"context"
	"errors"
	"io"
	"sync"
	"time"
)

// maxQueued bounds the number of bytes that wait for the reader of the output.
const maxQueued = 1 << 20

// chunk is the number of bytes that are written at once. When the reader of a pipe has read a chunk, the pipe has room for another (PIPE_BUF of
// pipe(7)).
const chunk = 4096

// outputQueue writes in a separate goroutine, so that Write never waits for the reader of the file.
type outputQueue struct {
	to      io.Writer
	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	writing int // number of bytes that are being written
	closed  bool
	err     error // the first error of a write
	done    chan struct{}
	taken   chan struct{} // receives an element when something was written
	went    time.Time     // when the reader's last stall ended
}

func newOutputQueue(to io.Writer) *outputQueue {
	q := &outputQueue{to: to, done: make(chan struct{}), taken: make(chan struct{}, 1)}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// run writes the waiting bytes until the queue is closed and empty.
func (q *outputQueue) run() {
	defer close(q.done)
	for {
		content, ok := q.take()
		if !ok {
			return
		}
		for len(content) > 0 {
			n := min(len(content), chunk)
			_, err := q.to.Write(content[:n])
			content = content[n:]
			if q.wrote(n, err); err != nil {
				break
			}
		}
	}
}

// wrote records n written bytes and the error of the write.
func (q *outputQueue) wrote(n int, err error) {
	q.mu.Lock()
	q.writing -= n
	if err != nil {
		q.err, q.writing = err, 0
	}
	q.mu.Unlock()
	select {
	case q.taken <- struct{}{}:
	default:
	}
}

// fits reports whether the queue has room for n bytes. An empty queue has room for any number.
func (q *outputQueue) fits(n int) bool {
	size := q.size()
	return size == 0 || size+n <= maxQueued-flushAt
}

// A reader of the output has stalled if it reads nothing for stalledFor. After its first stall it stalls earlier: when it reads nothing for 1/heldShare
// of the time since its last stall ended. So it can stop a process only for a small part of the time.
const (
	stalledFor = time.Second
	heldShare  = 20
)

// wait waits until there is room for n bytes. If the reader has stalled, it calls stalled, and waits until the queue is nearly empty.
func (q *outputQueue) wait(ctx context.Context, n int, stalled func()) error {
	patience := time.NewTimer(q.patience())
	defer patience.Stop()
	called := false
	for !q.fits(n) || called && q.size() > maxQueued/8 {
		select {
		case <-q.taken:
			patience.Reset(q.patience())
		case <-patience.C:
			if !called {
				called = true
				stalled()
			}
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-q.done:
			return nil // the next write returns its error
		}
	}
	if called {
		q.went = time.Now()
	}
	return nil
}

// patience returns the time after which a reader that reads nothing counts as stalled.
func (q *outputQueue) patience() time.Duration {
	return min(stalledFor, time.Since(q.went)/heldShare)
}

// offer appends text if the queue has room, and reports whether it has.
func (q *outputQueue) offer(text string) bool {
	if !q.fits(len(text)) {
		return false
	}
	_, _ = q.Write([]byte(text))
	return true
}

// take waits for bytes and returns them. It returns false if the queue is closed and empty, or if a write has failed.
func (q *outputQueue) take() (content []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed && q.err == nil {
		q.changed.Wait()
	}
	if q.err != nil {
		q.waiting = nil // discard the rest; the next Write returns the error
		return nil, false
	}
	content, q.waiting = q.waiting, nil
	q.writing = len(content)
	return content, len(content) > 0
}

// Write appends to the waiting bytes. It returns the error of an earlier write.
func (q *outputQueue) Write(p []byte) (int, error) {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.err != nil {
		return 0, q.err
	}
	q.waiting = append(q.waiting, p...)
	q.changed.Signal()
	return len(p), nil
}

// size returns the number of bytes that are not written yet.
func (q *outputQueue) size() int {
	q.mu.Lock()
	defer q.mu.Unlock()
	return len(q.waiting) + q.writing
}

// errUnread is returned if the reader reads nothing after the run was interrupted.
var errUnread = errors.New("the reader of the output has stalled; the rest was not written")

// leave is like finish, but returns no error, and waits only as long as the reader reads something.
func (q *outputQueue) leave() {
	done, cancel := context.WithCancel(context.Background())
	cancel()
	_ = q.finish(done) // the error cannot be reported anywhere
}

// finish waits until everything is written, or a write has failed, and returns the first error. After ctx is done, it waits only as long as the
// reader reads something.
func (q *outputQueue) finish(ctx context.Context) error {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	select {
	case <-q.done:
		return q.err
	case <-ctx.Done():
	}
	patience := time.NewTimer(stalledFor)
	defer patience.Stop()
	for {
		select {
		case <-q.done:
			return q.err
		case <-q.taken:
			patience.Reset(stalledFor)
		case <-patience.C:
			return errUnread
		}
	}
}
