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

// looking is the state of the checks whether the target has overwritten breakpoints. After the target has overwritten a breakpoint, its threads no
// longer stop there. Only these checks detect this.
type looking struct {
	wanted  atomic.Bool // breakpoints exist that must be checked
	changed bool        // the set of breakpoints has changed
	addrs   []uint64    // addresses of the breakpoints in memory, ascending
	next    int         // index of the first address that the last check left out
	at      time.Time   // end of the last check
	took    time.Duration
}

// lookReason is the reason for a check.
type lookReason int

const (
	due    lookReason = iota // the interval has passed
	stands                   // all threads are stopped
	ending                   // a thread ends; with the last thread, the memory disappears
	all                      // on request
)

// Checks take at most a twentieth of the time, unless they are requested. One check covers lookAt breakpoints. If a target has more, they are
// checked in parts.
const (
	lookShare = 20
	lookAt    = 4096
	lookPage  = 4096 // bytes that are read in one call
)

// look checks breakpoints. It reports those that the target has overwritten, because hits of them may have been missed.
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

// alive returns the number of the target's threads that still run its code.
func (s *server) alive() (n int) {
	for _, t := range s.threads {
		if !t.guest && !t.ending {
			n++
		}
	}
	return n
}

// overwritten appends the breakpoints whose code has been replaced by other executable code that was not seen there before. addrs is in ascending
// order.
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
			for _, addr := range here { // a part of the range is unmapped
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

// maxMaps bounds the number of lines read from a list of mappings.
const maxMaps = 1 << 20

// mappedWith returns a function that reports whether an address is mapped with a right: "x", executable, or "p", private (proc(5)). If the list of
// mappings cannot be read, the function always returns false.
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

// reconsider handles a breakpoint that the target has overwritten. If again is set, and an instruction still begins there, it sets the breakpoint
// again. Otherwise it gives the breakpoint up. It reports the result. All threads must be stopped.
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
