//go:build linux

package tracer

import (
	"time"

	"example.com/reframe/ptrace/system"
)

// yield resumes the target without breakpoints if the client is stopped, or does not read events because it waits for its own reader.
func (s *server) yield() {
	switch {
	case !s.out.yields || s.pid == 0:
	case s.stopped || !s.away:
		if s.deserted() || !s.stopped && s.out.stalled {
			s.letRun()
		}
	}
}

// letRun removes all breakpoints and resumes the target. [Away] is the last event before the client sets breakpoints again. The tracer does not
// execute requests that the client makes before it has seen that event.
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

// client holds the state of the tracer's client at the last check.
type client struct {
	pid     int
	looked  time.Time // time of the last check
	stopped time.Time // since when every check has found it stopped, or zero
}

// stoppedFor is the time after which the target no longer waits for a stopped client. The target waits if its threads are stopped for the client, or
// if the tracer waits for room for events.
const stoppedFor = 200 * time.Millisecond

// spoke records that the client is running.
func (c *client) spoke() { c.stopped = time.Time{} }

// deserted reports whether the client has been stopped, by a signal or a debugger, for so long that the target must not wait for it.
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
