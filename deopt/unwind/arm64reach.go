package unwind

import (
	"slices"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/isa/arm64"
)

// maxReached bounds the functions that one search visits.
const maxReached = 256

// An arm64Reach finds the functions that may jump to a callee without leaving a frame: with the stack pointer of their own entry.
type arm64Reach struct {
	*arm64Code
	callee   machine.Addr
	branches []machine.Addr // see Unwinder.Branches
	missing  error          // why there may be other branches, or nil
	known    map[machine.Addr]evidence
}

// from grades whether the function at start may reach the callee with the stack pointer of its own entry. The grade is plausible if jumps alone lead
// there, and doubtful if the function makes a call without a frame that leads there. If the budget is used up, the grade is plausible.
func (r *arm64Reach) from(start machine.Addr) evidence {
	how, known := r.known[start]
	if known {
		return how
	}
	how, err := r.search(start)
	if err != nil {
		return plausible
	}
	r.known[start] = how
	return how
}

// search does the work of from without the cache. It returns an error if the budget is used.
func (r *arm64Reach) search(start machine.Addr) (evidence, error) {
	seen := map[machine.Addr]evidence{}
	var queue []machine.Addr
	callee, _ := r.rangeOf(r.callee)
	add := func(to machine.Addr, how evidence) {
		to, certain := r.afterThunks(to)
		if !certain || callee.Contains(to) { // the callee may have other entries: stubs often share one FDE
			to = r.callee
		}
		if how > seen[to] {
			seen[to] = how
			queue = append(queue, to)
		}
	}
	add(start, plausible)
	for len(queue) > 0 && seen[r.callee] != plausible {
		at := queue[0]
		queue = queue[1:]
		if err := r.spend(1); err != nil {
			return excluded, err
		}
		if at != r.callee && (len(seen) > maxReached || !r.edges(at, func(to machine.Addr, how evidence) { add(to, min(how, seen[at])) })) {
			return seen[at], nil
		}
	}
	return seen[r.callee], nil
}

// edges calls edge for each function that a function may jump to or call while it has no frame. It returns false if these are unknown.
func (r *arm64Reach) edges(function machine.Addr, edge func(to machine.Addr, how evidence)) (known bool) {
	own, known := r.rangeOf(function)
	if !known {
		return false
	}
	n, _ := slices.BinarySearch(r.branches, own.Start+arm64.Size)
	for ; n < len(r.branches) && r.branches[n] <= own.End; n++ {
		if r.spend(1) != nil {
			return false
		}
		at := r.branches[n] - arm64.Size
		var code [arm64.Size]byte
		if r.Memory.ReadMemory(code[:], at) != nil {
			return false
		}
		call := arm64.IsCall(code[:])
		to, direct := arm64.Jump(code[:], at)
		if direct {
			edge(to, plausible)
			continue
		}
		if r.hasFrame(at, call, own.Start) { // a call that leaves a frame; a jump in a table
			continue
		}
		if call {
			to = r.target(at + arm64.Size)
		}
		if to == 0 {
			to = r.number(r.read(own.Start), at)
		}
		switch {
		case to == 0:
			return false
		case call:
			edge(to, doubtful)
		default:
			edge(to, plausible)
		}
	}
	return true
}

// rangeOf returns the code of the function at an address.
func (r *arm64Reach) rangeOf(function machine.Addr) (own machine.Range, known bool) {
	code := r.Finder.Code(function)
	if s, err := code.cfi(function); err != nil {
		return own, false
	} else if s != nil {
		return s.Range, true
	}
	if code.Functions == nil {
		return own, false
	}
	start, end := code.Functions.Function(function)
	return machine.Range{Start: start, End: end}, start != 0 && end > start
}

// hasFrame reports whether a function that starts at an address certainly has a frame at a branch. CFI proves that only at calls: without
// uwtable(async), LLVM does not describe epilogues for AArch64, so that the row at a jump after one still has the frame.
func (r *arm64Reach) hasFrame(at machine.Addr, call bool, function machine.Addr) bool {
	if s, err := r.Finder.Code(at).cfi(at); err != nil {
		return false
	} else if s != nil && call {
		return s.row.CFA.Kind == cfi.CFARegister && (s.row.CFA.Register != arm64SP || s.row.CFA.Offset > 0)
	}
	course := r.read(function)
	m := course.At[at]
	if call {
		m = course.Returns[at+arm64.Size]
	}
	if m == nil {
		return false
	}
	by, known := m.regs[arm64SP].fromSP()
	return known && by != 0
}
