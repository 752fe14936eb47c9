//go:build linux

package tracer

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// looking is the state of the checks whether the target has overwritten breakpoints. A target that does so runs past them, and nothing else reports
// it.
type looking struct {
	wanted  atomic.Bool // there are breakpoints to check
	changed bool        // their set
	addrs   []uint64    // of those in memory, ascending
	next    int         // the first that was not checked the last time
	at      time.Time   // the end of the last check
	took    time.Duration
}

// lookReason is the reason for a check.
type lookReason int

const (
	due    lookReason = iota // it is time
	stands                   // all threads are stopped
	ending                   // a thread ends, and with the last one its memory
	all                      // on request
)

// Checks take at most a twentieth of the time, unless requested; and they check a million breakpoints in parts.
const (
	lookShare = 20
	lookAt    = 4096
	lookPage  = 4096 // bytes that are read at once
)

// look checks breakpoints, and reports for those that the target has overwritten that hits may have been missed.
func (s *server) look(why lookReason) {
	l := &s.looking
	if s.pid == 0 || s.stopping && s.alive() > 0 {
		return
	}
	if l.changed {
		l.changed, l.addrs = false, l.addrs[:0]
		for addr, b := range s.breakpoints {
			if !b.held {
				l.addrs = append(l.addrs, addr)
			}
		}
		l.next = 0
		slices.Sort(l.addrs)
		l.wanted.Store(len(l.addrs) > 0)
	}
	if len(l.addrs) == 0 {
		return
	}
	if why == ending && s.alive() == 0 {
		why = all
	}
	began := time.Now()
	if since := began.Sub(l.at); why == due && since < gather || why != all && since < lookShare*l.took {
		return
	}
	n := len(l.addrs)
	if why == all {
		l.next = 0
	} else {
		n = min(n, lookAt)
	}
	var changed []*breakpoint
	for n > 0 {
		part := l.addrs[l.next:min(l.next+n, len(l.addrs))]
		n -= len(part)
		if l.next += len(part); l.next == len(l.addrs) {
			l.next = 0
		}
		changed = s.overwritten(part, changed)
	}
	if len(changed) > 0 {
		_ = s.still(s.programs, func() error {
			for _, b := range changed {
				if s.breakpoints[b.Addr] == b {
					s.reconsider(b, true)
				}
			}
			return nil
		})
	}
	if why == due {
		s.keepHandler()
	}
	l.at = time.Now()
	l.took = l.at.Sub(began)
}

// alive counts the threads that run code of their own.
func (s *server) alive() (n int) {
	for _, t := range s.threads {
		if !t.guest && !t.ending {
			n++
		}
	}
	return n
}

// overwritten adds those of some breakpoints, in ascending order, in whose place something else lies that may be run, and that was not
// seen there.
func (s *server) overwritten(addrs []uint64, to []*breakpoint) []*breakpoint {
	var page [lookPage + len(Trap)]byte
	first := len(to)
	for len(addrs) > 0 {
		from, n := addrs[0], 1
		for n < len(addrs) && addrs[n]-from < lookPage {
			n++
		}
		here := addrs[:n]
		addrs = addrs[n:]
		code := page[:here[n-1]-from+uint64(len(Trap))]
		if got, err := s.memory.read(code, from); err != nil || got < len(code) {
			for _, addr := range here { // some of it is gone
				if is, err := codeAt(s.memory, addr); err == nil {
					to = s.differs(addr, is, to)
				}
			}
			continue
		}
		for _, addr := range here {
			to = s.differs(addr, Code(code[addr-from:]), to)
		}
	}
	if len(to) > first {
		runs := mappedWith("x", s.pid)
		to = slices.DeleteFunc(to, func(b *breakpoint) bool { return !runs(b.Addr) })
	}
	return to
}

func (s *server) differs(addr uint64, is Code, to []*breakpoint) []*breakpoint {
	b := s.breakpoints[addr]
	if b == nil || b.lifted {
		return to
	}
	if is == Trap {
		b.refused = false
		return to
	}
	if b.refused && b.refusedFor == is {
		return to
	}
	return append(to, b)
}

// maxMaps bounds what is read of a list of mappings.
const maxMaps = 1 << 20

// mappedWith returns a function that reports whether an address is mapped with a right: "x", executable, or "p", private (proc(5)). If the list of
// mappings cannot be read, it is always false.
func mappedWith(right string, pid int) func(uint64) bool {
	type span struct{ from, to uint64 }
	var spans []span
	if f, err := os.Open(fmt.Sprintf("/proc/%d/maps", pid)); err == nil {
		defer f.Close()
		lines := bufio.NewScanner(f)
		for n := 0; n < maxMaps && lines.Scan(); n++ {
			var m span
			var rights string
			if _, err := fmt.Sscanf(lines.Text(), "%x-%x %s", &m.from, &m.to, &rights); err == nil && strings.Contains(rights, right) {
				spans = append(spans, m)
			}
		}
	}
	return func(addr uint64) bool {
		return slices.ContainsFunc(spans, func(m span) bool { return addr >= m.from && addr < m.to })
	}
}

// reconsider decides about a breakpoint which the target has overwritten: with again, it is set again if an instruction still begins there;
// otherwise it is given up. Either is reported. All threads are stopped.
func (s *server) reconsider(b *breakpoint, again bool) {
	is, err := codeAt(s.memory, b.Addr)
	if err != nil || is == Trap || b.refused && b.refusedFor == is {
		return
	}
	e := &Event{Kind: Missed, Time: time.Now().UnixNano(), Addr: b.Addr}
	if again {
		e.Why = s.setAgain(b, is)
		e.Armed = e.Why == ""
	}
	b.refused, b.refusedFor = !e.Armed, is
	e.Under = b.original
	s.out.event(e)
}
