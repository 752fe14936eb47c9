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

// writer sends messages. It collects events and sends them together, because waking the reader for each event takes longer than stepping over a
// breakpoint. It does not wait for a reader that does not read.
type writer struct {
	socket   syscall.RawConn
	pending  bytes.Buffer
	encoder  *gob.Encoder // writes to pending
	flushed  time.Time
	waits    atomic.Bool // pending is not empty
	yields   bool        // do not make the target wait for a reader that does not read
	stalled  bool        // pending is full, and the reader read nothing for the time of patience
	asked    func() bool // reports whether the reader has made a request
	deserted func() bool // reports whether the reader is stopped
}

// gather is approximately the longest time for which an event waits for others.
const gather = 10 * time.Millisecond

// sendAt is the number of bytes at which pending is sent, and maxPending the number at which it counts as full.
const (
	sendAt     = 1 << 16
	maxPending = 1 << 20
)

// patience is the time in milliseconds after which a reader that reads nothing counts as stalled. A slow reader, such as a shell's loop over the
// lines of a trace, reads about 64 KiB at a time. Usually the reader is waiting for a reply.
const patience = 5000

func newWriter(conn net.Conn) *writer {
	w := &writer{}
	w.socket, _ = conn.(*net.UnixConn).SyscallConn() // fails only for a closed connection
	w.encoder = gob.NewEncoder(&w.pending)
	return w
}

// event adds an event. It ignores errors, which mean that the reader has ended; receive detects that.
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

// full reports whether pending has reached maxPending.
func (w *writer) full() bool { return w.pending.Len() >= maxPending }

func (w *writer) reply(r *Reply) {
	_ = w.encoder.Encode(message{Reply: r})
	w.send(patience)
}

// flush sends as much as the socket accepts now.
func (w *writer) flush() {
	if w.waits.Load() {
		w.send(0)
	}
}

// drain sends everything.
func (w *writer) drain() { w.send(-1) }

// send sends the pending messages. If the socket is full, it waits for the reader, each time for at most wait milliseconds, or without limit if wait
// is negative.
func (w *writer) send(wait int) {
	w.flushed = time.Now()
	_ = w.socket.Write(func(fd uintptr) bool {
		for w.pending.Len() > 0 {
			n, err := unix.SendmsgN(int(fd), w.pending.Bytes(), nil, nil, unix.MSG_DONTWAIT|unix.MSG_NOSIGNAL)
			switch {
			case err == nil:
				w.pending.Next(n)
			case err == unix.EINTR:
			case err != unix.EAGAIN: // the reader has ended
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

// writable waits until a socket accepts more data, for at most wait milliseconds or without limit, and reports whether it does. Signals often
// interrupt the wait. A limited wait also ends when the reader makes a request or is stopped.
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

// due flushes messages that have waited long enough.
func (w *writer) due() {
	if w.waits.Load() && time.Since(w.flushed) >= gather {
		w.flush()
	}
}
