package trace

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// naming decides at which hits of a place all threads must stop so that the names of VM frames can be read.
type naming struct {
	state   namingState
	expects []ptrace.Expected // the memory of the names, for foreseen
	changes int               // number of times that this memory differed
}

// namingState is the kind of memory that the names were read from.
type namingState int

const (
	unread   namingState = iota // nothing yet: the next hit stops the threads
	fixed                       // memory that cannot change: later hits find the names in the cache
	foreseen                    // memory that may change, but is the same at each hit: a hit stops the threads only if its contents differ
	varying                     // other memory at each hit: each hit stops the threads
)

// maxChanges bounds the changes of the memory of names. After that each hit stops the threads, because setting the breakpoint again takes longer.
const maxChanges = 16

// read updates the state after the names of a hit were read. held is true if the hit stopped all threads. It reports whether the breakpoint must
// change.
func (n *naming) read(names vmlayout.NamesRead, held bool) bool {
	was := n.state
	switch {
	case n.state == varying || n.state == foreseen && !held:
		return false
	case !names.Varying && !names.Failed:
		n.state, n.expects = fixed, nil
	case n.state == fixed || names.Computed || n.changes >= maxChanges:
		n.state, n.expects = varying, nil
	default:
		n.changes++
		if n.state, n.expects = foreseen, expectedOf(names.Parts); n.expects == nil {
			n.state = varying
		}
		return true
	}
	return n.state != was
}

// expectedOf returns the contents that a breakpoint expects in the given parts of memory, or nil if they exceed the limits of a breakpoint.
func expectedOf(parts []vmlayout.Part) (out []ptrace.Expected) {
	size := 0
	for _, p := range parts {
		e := ptrace.Expected{Addr: p.At, Data: p.Data}
		if p.Lost {
			e.Data, e.Lost = nil, len(p.Data)
		}
		out = append(out, e)
		size += len(p.Data)
	}
	if len(out) > ptrace.MaxExpects || size > ptrace.MaxExpected {
		return nil
	}
	return out
}

// expectedMemory is the memory with which the names of a hit are read: the memory that the hit found as expected, and memory that cannot change.
type expectedMemory struct {
	parts []ptrace.Expected
	fixed machine.Memory
}

// ReadMemory implements [machine.Memory].
func (m *expectedMemory) ReadMemory(p []byte, addr machine.Addr) error {
	for _, e := range m.parts {
		if addr >= e.Addr && uint64(addr-e.Addr)+uint64(len(p)) <= uint64(len(e.Data)) {
			copy(p, e.Data[addr-e.Addr:])
			return nil
		}
	}
	return m.fixed.ReadMemory(p, addr)
}
