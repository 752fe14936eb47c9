package trace

import (
	"reframe/deopt/isa"
	"reframe/deopt/machine"
)

// sweep follows the instructions of a function from its start on.
type sweep struct {
	text *isa.Window
	at   machine.Addr // the next instruction
	last machine.Addr // the one before it; 0 at the start
	lost bool         // what comes next cannot be read or is not known
}

// to goes on to an address that is not less than any before. inside says that an instruction lies
// across it, and call is where the call starts that ends there, or 0. Both are unknown, and neither is
// said, where the instructions cannot be followed so far.
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
