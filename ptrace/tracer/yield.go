//go:build linux

package tracer

import "time"

// yield removes all breakpoints where the client does not read what is reported: it is stopped, or waits itself for a reader. The target runs on without
// them. [Away] is the last event before the client sets breakpoints again.
func (s *server) yield() {
	if !s.out.yields || s.away || s.pid == 0 || s.stopped || !s.out.stalled {
		return
	}
	_ = s.still(s.programs, func() error {
		s.away = true
		var addrs []uint64
		for addr := range s.breakpoints {
			addrs = append(addrs, addr)
		}
		s.remove(addrs)
		return nil
	})
	if s.away {
		s.out.event(&Event{Kind: Away, Time: time.Now().UnixNano()})
	}
}
