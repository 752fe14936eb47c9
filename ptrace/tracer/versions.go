//go:build linux

package tracer

import (
	"time"
)

// versions holds the current and earlier code under a breakpoint that the target overwrites. A target may save the code, including the breakpoint
// byte, and restore it later. The bytes after the breakpoint then show which instruction is under it.
type versions struct {
	list       []version
	before     nearby // the bytes before the breakpoint when it was set
	refused    bool   // the breakpoint is given up as long as the code at its address is refusedFor
	refusedFor Code
}

// version is an instruction, or its beginning, with the bytes after it.
type version struct {
	code   Code
	behind nearby
}

// nearby holds bytes near a breakpoint. A byte is unknown if it cannot be read or if another breakpoint covers it.
type nearby struct {
	data    [nearbySize]byte
	unknown [nearbySize]bool
}

// nearbySize is the maximum size of an instruction of x86-64. While the nearbySize bytes before a breakpoint do not change, an instruction still ends
// there.
const nearbySize = 15

// maxVersions bounds the number of versions.
const maxVersions = 64

// nearby reads bytes near a breakpoint, starting at from.
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

// agrees returns the index of the first byte that is known in both and differs, or nearbySize.
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

// begin records the code under a breakpoint, and near it, before the breakpoint is set.
func (s *server) begin(b *breakpoint) {
	b.before = s.nearby(s.memory, b.Addr-nearbySize)
	b.list = []version{{b.original, s.behind(s.memory, b)}}
}

// underIn returns the code under a breakpoint, in the memory of the target or of a child that has a copy.
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

// under returns the code under a breakpoint in the target's memory.
func (s *server) under(b *breakpoint) Code {
	if len(b.list) > 1 {
		s.updateVersion(b)
	}
	return b.original
}

// updateVersion sets the version of b to the one that is now in the target's memory.
func (s *server) updateVersion(b *breakpoint) {
	if code := s.underIn(s.memory, b); code != b.original {
		b.original = code
		s.ledger.set(b.Addr, code)
		s.out.event(&Event{Kind: Missed, Time: time.Now().UnixNano(), Addr: b.Addr, Armed: true, Under: code})
	}
	b.decode(s.memory, s.shadowed)
}

// setAgain sets a breakpoint again over code that the target has written there, or returns the reason why it cannot. An instruction begins at the
// address if one still ends just before it. If the target has only begun to write, the rest is detected when a thread hits the breakpoint.
func (s *server) setAgain(b *breakpoint, is Code) (why string) {
	before, now := s.nearby(s.memory, b.Addr-nearbySize), version{is, s.behind(s.memory, b)}
	if before.agrees(&b.before) < nearbySize {
		return "the new code begins before the breakpoint"
	}
	known := false
	for _, v := range b.list {
		switch same := v.behind.agrees(&now.behind) == nearbySize; {
		case same && v.code != is:
			return "only the instruction under the breakpoint changed; if the process saved the old code with the breakpoint in it and restores it, " +
				"the two cannot be told apart"
		case same:
			known = true
		}
	}
	switch {
	case known:
	case len(b.list) == maxVersions:
		return "it has changed the code too often"
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
