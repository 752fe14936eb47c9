//go:build linux

package tracer

import (
	"time"
)

// versions holds the current and earlier code under a breakpoint in memory that the target overwrites. A target that saves the code that it finds,
// to restore it later, saves the breakpoint with it: the bytes after it show which instruction is under it then.
type versions struct {
	list       []version
	before     nearby // the bytes before it when it was set
	refused    bool   // it is given up, as long as this code is in its place
	refusedFor Code
}

// version is an instruction, or its beginning, and the bytes after that.
type version struct {
	code   Code
	behind nearby
}

// nearby are bytes near a breakpoint. Unknown are those that cannot be read, or that another breakpoint covers.
type nearby struct {
	data    [nearbySize]byte
	unknown [nearbySize]bool
}

// nearbySize is as much as an instruction of x86-64 has: in front of a breakpoint one ends, as long as these bytes do not change.
const nearbySize = 15

// maxVersions bounds the list.
const maxVersions = 64

// nearby reads bytes near a breakpoint.
func (s *server) nearby(memory memory, from uint64) (n nearby) {
	got, err := memory.read(n.data[:], from)
	for i := range n.data {
		n.unknown[i] = err != nil || i >= got
	}
	for at := from &^ uint64(len(Trap)-1); at < from+nearbySize; at += uint64(len(Trap)) {
		if b := s.breakpoints[at]; b == nil || b.held {
			continue
		}
		for i := range Trap {
			if i := at + uint64(i) - from; i < nearbySize {
				n.unknown[i] = true
			}
		}
	}
	return n
}

// agrees is up to where two agree.
func (n *nearby) agrees(other *nearby) int {
	for i := range n.data {
		if n.data[i] != other.data[i] && !n.unknown[i] && !other.unknown[i] {
			return i
		}
	}
	return nearbySize
}

func (s *server) behind(memory memory, b *breakpoint) nearby {
	return s.nearby(memory, b.Addr+uint64(len(Trap)))
}

// begin notes what lies where a breakpoint is about to be set.
func (s *server) begin(b *breakpoint) {
	b.before = s.nearby(s.memory, b.Addr-nearbySize)
	b.list = []version{{b.original, s.behind(s.memory, b)}}
}

// underIn returns what lies under a breakpoint, in the memory of the target or of a child that has a copy.
func (s *server) underIn(memory memory, b *breakpoint) Code {
	now := s.behind(memory, b)
	best, length := 0, -1
	for i, v := range b.list {
		n := v.behind.agrees(&now)
		if n > length || n == length && v.code == b.original {
			best, length = i, n
		}
	}
	code := b.list[best].code
	if length < nearbySize && len(b.list) < maxVersions {
		b.list = append(b.list, version{code, now})
	}
	return code
}

// under returns the version in the target's memory.
func (s *server) under(b *breakpoint) Code {
	if len(b.list) > 1 {
		s.settleVersion(b)
	}
	return b.original
}

// settleVersion finds out which version lies there now.
func (s *server) settleVersion(b *breakpoint) {
	if code := s.underIn(s.memory, b); code != b.original {
		b.original = code
		s.ledger.set(b.Addr, code)
		s.out.event(&Event{Kind: Missed, Time: time.Now().UnixNano(), Addr: b.Addr, Armed: true, Under: code})
	}
	b.decode(s.memory, s.shadowed)
}

// setAgain sets a breakpoint again over what the target has written in its place, or returns the reason why not. An instruction begins there if one
// still ends before it. If the target has only begun to write, the rest is found when a thread gets there.
func (s *server) setAgain(b *breakpoint, is Code) (why string) {
	before, now := s.nearby(s.memory, b.Addr-nearbySize), version{is, s.behind(s.memory, b)}
	if before.agrees(&b.before) < nearbySize {
		return "what it has written begins in front of it"
	}
	known := false
	for _, v := range b.list {
		switch same := v.behind.agrees(&now.behind) == nearbySize; {
		case same && v.code != is:
			return "what it has written differs in nothing else from what lay there, which it may have kept, with the breakpoint"
		case same:
			known = true
		}
	}
	switch {
	case known:
	case len(b.list) == maxVersions:
		return "it has done so too often"
	default:
		b.list = append(b.list, now)
	}
	if shared := s.sharedNow(b.Addr); shared != "" {
		return errShared(shared).Error()
	}
	if err := s.write(b.Addr, is); err != nil {
		return err.Error()
	}
	b.original = is
	b.decode(s.memory, s.shadowed)
	return ""
}
