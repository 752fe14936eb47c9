//go:build linux

package tracer

import (
	"time"

	"example.com/reframe/ptrace/system"
)

// yield lets the target run where the client does not read what is reported, since it waits itself for a reader, or where the client is stopped.
func (s *server) yield() {
	switch {
	case !s.out.yields || s.pid == 0:
	case s.stopped || !s.away:
		if s.deserted() || !s.stopped && s.out.stalled {
			s.letRun()
		}
	}
}

// letRun removes all breakpoints and lets the target run. [Away] is the last event before the client sets breakpoints again. Requests that the client
// makes before it has seen that event are not executed.
func (s *server) letRun() {
	s.stopAll()
	if s.pid == 0 {
		return
	}
	s.lease.revoke()
	s.away = true
	s.programs++
	var addrs []uint64
	for addr := range s.breakpoints {
		addrs = append(addrs, addr)
	}
	s.remove(addrs)
	s.out.event(&Event{Kind: Away, Time: time.Now().UnixNano()})
	s.resume()
}

// client holds the state of the tracer's client, as the tracer last saw it.
type client struct {
	pid     int
	looked  time.Time // the last look at its state
	stopped time.Time // since when every look has found it stopped, or zero
}

// stoppedFor is how long a client must be stopped before the target no longer waits for it. The target may wait because its threads are stopped for the
// client, or because the tracer waits for room for events.
const stoppedFor = 200 * time.Millisecond

// spoke notes that the client runs.
func (c *client) spoke() { c.stopped = time.Time{} }

// deserted reports whether a signal or a debugger has stopped the client for so long that the target is not to wait for it.
func (s *server) deserted() bool {
	if !s.out.yields {
		return false
	}
	c, now := &s.client, time.Now()
	if now.Sub(c.looked) >= lookEvery {
		c.looked = now
		switch state := system.ThreadState(c.pid, c.pid); {
		case state != 'T' && state != 't':
			c.stopped = time.Time{}
		case c.stopped.IsZero():
			c.stopped = now
		}
	}
	return !c.stopped.IsZero() && now.Sub(c.stopped) >= stoppedFor
}
