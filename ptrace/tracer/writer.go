//go:build linux

package tracer

import (
	"bytes"
	"encoding/gob"
	"net"
	"sync/atomic"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// writer sends messages. Events are collected and sent together: to wake the reader for each takes
// longer than to step over a breakpoint. It does not wait for a reader that does not read.
type writer struct {
	socket   syscall.RawConn
	pending  bytes.Buffer
	encoder  *gob.Encoder // into pending
	flushed  time.Time
	waits    atomic.Bool // something is in pending
	yields   bool        // the target does not wait for a reader that takes nothing either
	stalled  bool        // it is full, and the reader took nothing for so long as it may
	asked    func() bool // the reader has made a request
	deserted func() bool // the reader is stopped
}

// An event waits for others about this long at most.
const gather = 10 * time.Millisecond

// sendAt is the number of bytes that are sent at once, and maxPending bounds what waits for the reader.
const (
	sendAt     = 1 << 16
	maxPending = 1 << 20
)

// patience is how long the reader may take nothing before it has stalled, in milliseconds: one that is merely slow, such as a shell's loop over the
// lines of a trace, takes some 64 KiB at a time. A reply mostly has a reader that waits for it.
const patience = 5000

func newWriter(conn net.Conn) *writer {
	w := &writer{}
	w.socket, _ = conn.(*net.UnixConn).SyscallConn() // an error means a closed connection
	w.encoder = gob.NewEncoder(&w.pending)
	return w
}

// event adds an event. Errors mean that the reader is gone, which receive finds out.
func (w *writer) event(e *Event) {
	_ = w.encoder.Encode(message{Event: e})
	w.waits.Store(true)
	switch {
	case w.full() && !w.yields:
		w.drain()
	case w.full() && !w.stalled:
		w.send(patience)
		w.stalled = w.full() && !w.asked()
	case w.pending.Len() >= sendAt:
		w.flush()
	}
}

// full reports whether so much waits for the reader as may.
func (w *writer) full() bool { return w.pending.Len() >= maxPending }

func (w *writer) reply(r *Reply) {
	_ = w.encoder.Encode(message{Reply: r})
	w.send(patience)
}

// flush sends what the socket takes now.
func (w *writer) flush() {
	if w.waits.Load() {
		w.send(0)
	}
}

// drain sends everything.
func (w *writer) drain() { w.send(-1) }

// send sends what is pending. Where the socket is full it waits for the reader for at most some milliseconds at a time, or without end if that is
// negative.
func (w *writer) send(wait int) {
	w.flushed = time.Now()
	_ = w.socket.Write(func(fd uintptr) bool {
		for w.pending.Len() > 0 {
			n, err := unix.SendmsgN(int(fd), w.pending.Bytes(), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			switch {
			case err == nil:
				w.pending.Next(n)
			case err == unix.EINTR:
			case err != unix.EAGAIN: // the reader is gone
				w.pending.Reset()
			case wait == 0 || !w.writable(int(fd), wait):
				return true
			}
		}
		return true
	})
	w.waits.Store(w.pending.Len() > 0)
	w.stalled = w.stalled && w.full()
}

// writable waits until a socket takes more, at most for some milliseconds or without end, and reports whether it does. Signals interrupt it often. A
// limited wait ends when the reader makes a request, or is stopped.
func (w *writer) writable(fd, wait int) bool {
	until := time.Now().Add(time.Duration(wait) * time.Millisecond)
	for {
		step := wait
		if wait > 0 {
			step = max(0, min(int(time.Until(until).Milliseconds()), int(lookEvery.Milliseconds())))
		}
		n, err := unix.Poll([]unix.PollFd{{Fd: int32(fd), Events: unix.POLLOUT}}, step)
		switch {
		case n > 0:
			return true
		case err != nil && err != unix.EINTR:
			return false
		case wait > 0 && (step == 0 || w.asked() || w.deserted()):
			return false
		}
	}
}

// due sends what has waited long enough.
func (w *writer) due() {
	if w.waits.Load() && time.Since(w.flushed) >= gather {
		w.flush()
	}
}
