package dap

import (
	"fmt"
	"sync"
	"time"

	"github.com/google/go-dap"
)

// logs counts the log messages that were dropped because the client was too slow to read them. The process is stopped at a log point until its
// message is queued.
type logs struct {
	mu      sync.Mutex
	dropped uint64
	went    time.Time // the end of the last unsuccessful wait for the client
}

// A client that reads no message for stalledFor has stalled. After that, the process may be stopped to wait for the client for at most 1/heldShare of
// the time since the client stalled.
const (
	stalledFor = time.Second
	heldShare  = 20
)

// log prints the message of a log point, or counts it as dropped if the client has stalled.
func (w *writer) log(text string) {
	l := &w.logs
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.dropped > 0 && !w.offer(l.missing(), 0) {
		l.dropped++
		return
	}
	l.dropped = 0
	if !w.offer(console(text+"\n"), min(stalledFor, time.Since(l.went)/heldShare)) {
		l.dropped, l.went = 1, time.Now()
	}
}

// logged tells the client how many log messages were dropped. The process is stopped while logged waits for the client.
func (w *writer) logged() {
	l := &w.logs
	l.mu.Lock()
	m := l.missing()
	none := l.dropped == 0
	l.dropped = 0
	l.mu.Unlock()
	if !none {
		w.send(m)
	}
}

func (l *logs) missing() dap.Message {
	what := "log messages"
	if l.dropped == 1 {
		what = "log message"
	}
	return console(fmt.Sprintf("%d %s dropped: the client did not read its messages\n", l.dropped, what))
}

// offer queues a message. It waits for room in the queue up to patience, and reports whether there was room.
func (w *writer) offer(m dap.Message, patience time.Duration) bool {
	select {
	case w.queue <- m:
		return true
	default:
	}
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case w.queue <- m:
		return true
	case <-timer.C:
	case <-w.ctx.Done():
	}
	return false
}

// console returns a message that prints to the client's console.
func console(text string) dap.Message {
	return &dap.OutputEvent{Event: event("output"), Body: dap.OutputEventBody{Category: "console", Output: text}}
}
