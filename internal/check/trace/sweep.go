package trace

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa"
)

// sweep decodes the instructions of a function from its start.
type sweep struct {
	text *isa.Window
	at   machine.Addr // the next instruction
	last machine.Addr // the one before it; 0 at the start
	lost bool         // the next instruction cannot be read or decoded
}

// to advances to an address that is not less than the previous ones. inside reports whether an instruction crosses the address. call is the start of
// the call that ends there, or 0. If the instructions cannot be decoded up to the address, to returns false and 0.
func (s *sweep) to(addr machine.Addr) (inside bool, call machine.Addr) {
	for s.at < addr && !s.lost {
		n := s.text.LengthAt(s.at)
		if n == 0 {
			s.lost = true
			return false, 0
		}
		s.last, s.at = s.at, s.at+machine.Addr(n)
	}
	switch {
	case s.lost:
		return false, 0
	case s.at > addr:
		return true, 0
	case s.last != 0 && s.text.IsCallAt(s.last):
		return false, s.last
	}
	return false, 0
}
