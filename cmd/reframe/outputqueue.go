package main

import (
	"io"
	"sync"
)

// maxQueued bounds the bytes of exits that wait for the reader of the output, with --lossy.
const maxQueued = 1 << 20

// outputQueue writes to a file that may not be read, in a goroutine of its own: its Write never waits.
type outputQueue struct {
	to      io.Writer
	mu      sync.Mutex
	changed *sync.Cond
	waiting []byte
	writing int // the bytes that are being written
	closed  bool
	err     error // the first one of a write
	done    chan struct{}
}

func newOutputQueue(to io.Writer) *outputQueue {
	q := &outputQueue{to: to, done: make(chan struct{})}
	q.changed = sync.NewCond(&q.mu)
	go q.run()
	return q
}

// run writes what waits until the queue is closed and empty.
func (q *outputQueue) run() {
	defer close(q.done)
	for {
		content, ok := q.take()
		if !ok {
			return
		}
		_, err := q.to.Write(content)
		q.mu.Lock()
		if q.err == nil {
			q.err = err
		}
		q.writing = 0
		q.mu.Unlock()
	}
}

// take waits for bytes and returns them. It returns false if the queue is closed and empty, or if a write has failed.
func (q *outputQueue) take() (content []byte, ok bool) {
	q.mu.Lock()
	defer q.mu.Unlock()
	for len(q.waiting) == 0 && !q.closed && q.err == nil {
		q.changed.Wait()
	}
	if q.err != nil {
		q.waiting = nil // make room: the next Write returns the error
		return nil, false
	}
	content, q.waiting = q.waiting, nil
	q.writing = len(content)
	return content, len(content) > 0
}

// Write appends to what waits. Its error is that of an earlier write.
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

// finish waits until everything is written, or a write has failed, and returns the first error.
func (q *outputQueue) finish() error {
	q.mu.Lock()
	q.closed = true
	q.changed.Signal()
	q.mu.Unlock()
	<-q.done
	return q.err
}
