package unwind

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// Bounds of the search through the jumps of a function to other functions.
const (
	maxOthers      = 64       // number of functions
	maxOthersBytes = 64 << 10 // bytes per function
)

// arm64Ways holds the calls and jumps by which a function may lead to a callee.
type arm64Ways struct {
	calls []machine.Addr // return addresses of calls that lead to the callee, or whose target is unknown
	jumps []machine.Addr // addresses after jumps that leave the function and may lead to the callee with the same frame
}

// arm64Search is a search for the calls and jumps that lead to one callee.
type arm64Search struct {
	*walk
	callee machine.Addr
	leads  map[machine.Addr]bool // whether functions may lead to the callee; false while a function is examined
}

// arm64Others returns the calls and jumps by which a called function may lead to callee. The function may tail-call another one with a frame that
// looks the same on the stack: the calls of that function count as the jump to it. Code that cannot be read counts as a jump.
func (w *walk) arm64Others(start, callee machine.Addr) *arm64Ways {
	return (&arm64Search{w, callee, map[machine.Addr]bool{}}).ways(start)
}

// mayLead reports whether a function may lead to the callee.
func (w *arm64Search) mayLead(start machine.Addr) bool {
	if leads, known := w.leads[start]; known {
		return leads
	}
	if len(w.leads) >= maxOthers {
		return true
	}
	w.leads[start] = false
	ways := w.ways(start)
	w.leads[start] = len(ways.calls)+len(ways.jumps) > 0
	return w.leads[start]
}

// ways returns the calls and jumps from a function to the callee.
func (w *arm64Search) ways(start machine.Addr) *arm64Ways {
	ways := &arm64Ways{}
	s, err := w.Finder.Code(start).cfi(start)
	if err != nil || s == nil || s.Start != start || s.End-s.Start > maxOthersBytes {
		ways.jumps = append(ways.jumps, start)
		return ways
	}
	code := make([]byte, s.End-s.Start)
	if w.Memory.ReadMemory(code, s.Start) != nil {
		ways.jumps = append(ways.jumps, start)
		return ways
	}
	course := w.arm64Read(start)
	for n := 0; n+arm64.Size <= len(code); n += arm64.Size {
		at := s.Start + machine.Addr(n)
		to, jumps := arm64.Jump(code[n:], at)
		switch word := binary.LittleEndian.Uint32(code[n:]); {
		case arm64.IsCall(code[n:]):
			if w.callMayLead(course, at) {
				ways.calls = append(ways.calls, at+arm64.Size)
			}
		case jumps && !s.Contains(to), word&0xfeff0000 == 0xd61f0000: // br and its authenticating variants
			if w.jumpMayLead(course, at, to) {
				ways.jumps = append(ways.jumps, at+arm64.Size)
			}
		}
	}
	return ways
}

// callMayLead reports whether the call at an address may lead to the callee, directly or through a function that makes a call before it has a frame.
func (w *arm64Search) callMayLead(course *ARM64Course, at machine.Addr) bool {
	to := w.arm64Target(at + arm64.Size)
	if to == 0 {
		to = w.arm64Through(course, at)
	}
	if to == 0 || w.arm64Leads(to, w.callee) {
		return true
	}
	into := w.arm64Read(to)
	frameless := len(into.At) == 0 // too long to follow
	for _, m := range into.Returns {
		by, known := m.regs[arm64SP].fromSP()
		frameless = frameless || !known || by == 0
	}
	return frameless && w.mayLead(to)
}

// jumpMayLead reports whether a jump that leaves a function may lead to the callee with a frame that looks like the function's. to is 0 for a jump
// through a register.
func (w *arm64Search) jumpMayLead(course *ARM64Course, at, to machine.Addr) bool {
	m := course.At[at]
	popped := false // whether the frame was popped
	if m != nil {
		by, known := m.regs[arm64SP].fromSP()
		popped = known && by == 0
		if to == 0 && known && by != 0 && w.arm64Through(course, at) == 0 {
			return false // a jump table inside the function
		}
	}
	if to == 0 {
		if to = w.arm64Through(course, at); to == 0 {
			return true
		}
	}
	if to = w.ThunkTo(to); w.arm64Leads(to, w.callee) {
		return !popped
	}
	return w.mayLead(to)
}

// arm64Through returns the target of the branch through a register at an address, following thunks; 0 if it is unknown.
func (w *walk) arm64Through(course *ARM64Course, at machine.Addr) machine.Addr {
	var b [arm64.Size]byte
	m := course.At[at]
	if m == nil || w.Memory.ReadMemory(b[:], at) != nil {
		return 0
	}
	if v := m.get(binary.LittleEndian.Uint32(b[:]) >> 5 & 31); v.kind == arm64Number && v.n != 0 {
		return w.ThunkTo(machine.Addr(v.n))
	}
	return 0
}
