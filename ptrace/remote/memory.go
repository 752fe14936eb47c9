package remote

import (
	"encoding/hex"
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
)

// errUnreadable is the reason for memory that the stub cannot read.
var errUnreadable = errors.New("the stub cannot read it")

// page is the unit of readable memory.
const page = 4 << 10

// Read implements [holder.Memory].
func (s *stub) Read(p []byte, addr machine.Addr) (n int, err error) {
	for n < len(p) {
		got, err := s.part(p[n:], addr+machine.Addr(n))
		if err != nil {
			return n, err
		}
		if got == 0 {
			return n, errUnreadable
		}
		n += got
	}
	return n, nil
}

// part reads bytes at addr: as many as a packet can hold or, if the stub cannot read these, only those on the first page.
func (s *stub) part(p []byte, addr machine.Addr) (int, error) {
	most := s.packet - 8 // an x packet may need two characters for a byte, in which case the stub sends fewer bytes
	if s.noBinary {
		most /= 2
	}
	size := min(len(p), most)
	got, err := s.request(p[:size], addr)
	first := min(size, page-int(addr%page))
	if err == nil && got == 0 && first < size {
		return s.request(p[:first], addr)
	}
	return got, err
}

// failed reports whether a reply is an error: E and two digits, or E. and a text. The digits of a byte may also begin with E.
func failed(reply []byte) bool {
	return len(reply) == 3 && reply[0] == 'E' || len(reply) > 1 && reply[0] == 'E' && reply[1] == '.'
}

// request sends one request for memory. It returns 0 if the stub cannot read the memory.
func (s *stub) request(p []byte, addr machine.Addr) (int, error) {
	if !s.noBinary && s.features["binary-upload"] == "+" {
		reply, err := s.ask(fmt.Sprintf("x%x,%x", uint64(addr), len(p)))
		switch {
		case err != nil:
			return 0, err
		case len(reply) > 0 && reply[0] == 'b' && len(reply)-1 <= len(p):
			return copy(p, reply[1:]), nil
		case failed(reply):
			return 0, nil
		}
	}
	if !s.noBinary {
		s.noBinary = true
		p = p[:min(len(p), (s.packet-8)/2)]
	}
	reply, err := s.ask(fmt.Sprintf("m%x,%x", uint64(addr), len(p)))
	switch {
	case err != nil:
		return 0, err
	case len(reply) == 0, failed(reply):
		return 0, nil
	case len(reply)%2 != 0 || len(reply) > 2*len(p):
		return 0, fmt.Errorf("the stub answers a request for %d bytes of memory with %d characters", len(p), len(reply))
	}
	n, err := hex.Decode(p, reply)
	if err != nil {
		return 0, errors.New("the stub answers a request for memory with characters that are no digits")
	}
	return n, nil
}
