//go:build linux

package tracer

import (
	"bufio"
	"encoding/gob"
	"net"
	"sync/atomic"
	"time"
)

// writer sends messages. Events are collected and sent together: to wake the reader for each takes
// longer than to step over a breakpoint.
type writer struct {
	buffer  *bufio.Writer
	encoder *gob.Encoder
	flushed time.Time
	waits   atomic.Bool // something is in the buffer
}

// An event waits for others about this long at most.
const gather = 10 * time.Millisecond

func newWriter(conn net.Conn) *writer {
	w := &writer{buffer: bufio.NewWriterSize(conn, 1<<16)}
	w.encoder = gob.NewEncoder(w.buffer)
	return w
}

// event adds an event. Errors mean that the reader is gone, which receive finds out.
func (w *writer) event(e *Event) {
	_ = w.encoder.Encode(message{Event: e})
	w.waits.Store(true)
}

func (w *writer) reply(r *Reply) {
	_ = w.encoder.Encode(message{Reply: r})
	w.waits.Store(true)
	w.flush()
}

func (w *writer) flush() {
	if w.waits.Load() {
		w.waits.Store(false)
		_ = w.buffer.Flush()
		w.flushed = time.Now()
	}
}

// due sends what has waited long enough.
func (w *writer) due() {
	if w.waits.Load() && time.Since(w.flushed) >= gather {
		w.flush()
	}
}
