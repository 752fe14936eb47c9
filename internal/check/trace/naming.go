package trace

import (
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/vm/vmlayout"
	"example.com/reframe/ptrace"
)

// naming decides at which hits of a place all threads must stop so that the names of VM frames can be read.
type naming struct {
	state   namingState
	parts   []vmlayout.Part   // foreseen: the memory of the names at the last hit that stopped the threads
	expects []ptrace.Expected // foreseen: the same memory
	failed  bool              // foreseen: some of it cannot be read
	changes int               // number of times that the memory differed
}

// namingState is the kind of memory that the names of a place are read from.
type namingState int

const (
	unread   namingState = iota // nothing was read: the next hit stops the threads
	fixed                       // memory that cannot change: later hits find the names in the cache
	foreseen                    // memory that may change, the same at each hit: a hit stops the threads if the contents differ
	varying                     // other memory at each hit: each hit stops the threads
)

// maxChanges bounds the number of times that the expected memory is replaced, because that takes longer than to stop the threads at each hit.
const maxChanges = 16

// read handles how the names of a hit were read, and reports whether the breakpoint must change. held means that the hit stopped all threads.
func (n *naming) read(names *vmlayout.NamesRead, held bool) (changed bool) {
	before := n.state
	switch {
	case n.state == varying:
		return false
	case n.state == foreseen && !held:
		if names.Failed && !n.failed { // memory that could not change when the names were read can change now
			*n = naming{state: varying}
		}
	case !names.Varying && !names.Failed:
		*n = naming{state: fixed}
	case n.state == fixed || names.Computed || n.changes >= maxChanges:
		*n = naming{state: varying}
	default:
		*n = naming{foreseen, names.Parts, expectedOf(names.Parts), names.Failed, n.changes + 1}
		if n.expects == nil {
			*n = naming{state: varying}
		}
		return true
	}
	return n.state != before
}

// expectedOf returns the contents of memory for a breakpoint to expect; nil if a breakpoint cannot expect that much, or not that unreadable memory.
func expectedOf(parts []vmlayout.Part) (out []ptrace.Expected) {
	size := 0
	for _, p := range parts {
		e := ptrace.Expected{Addr: p.At, Data: p.Data}
		if p.Lost != nil {
			if e.Data, e.Lost = nil, len(p.Data); p.At >= ptrace.MaxLost || p.At+machine.Addr(e.Lost) > ptrace.MaxLost {
				return nil
			}
		}
		out = append(out, e)
		size += len(p.Data)
	}
	if len(out) > ptrace.MaxExpects || size > ptrace.MaxExpected {
		return nil
	}
	return out
}

// expectedMemory is the memory at a hit that did not stop the threads: the parts that the breakpoint expects, and memory that cannot change.
type expectedMemory struct {
	parts []vmlayout.Part
	fixed machine.Memory
}

// ReadMemory implements [machine.Memory].
func (m *expectedMemory) ReadMemory(p []byte, addr machine.Addr) error {
	for _, part := range m.parts {
		switch within := addr >= part.At && uint64(addr-part.At)+uint64(len(p)) <= uint64(len(part.Data)); {
		case within && part.Lost != nil:
			return part.Lost
		case within:
			copy(p, part.Data[addr-part.At:])
			return nil
		}
	}
	return m.fixed.ReadMemory(p, addr)
}
