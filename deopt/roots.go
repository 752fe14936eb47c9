package deopt

import (
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
)

// Roots holds what the record of a statepoint lists for the garbage collector.
type Roots struct {
	// Pointers holds the slots of the frame that are in a pair of base and derived pointer, one for each location. A null constant is not a root.
	Pointers []RootPointer
	// Allocas holds the addresses of the stack objects whose content the collector reads.
	Allocas []frame.Slot
	// Lost is a slot without a value if the record lacks a deopt value, so that it is not known which locations are pairs; otherwise nil.
	Lost *frame.Slot
}

// RootPointer is a pointer that the collector reads.
type RootPointer struct {
	frame.Slot
	// BaseOnly is set if no pair relocates the pointer: it is only the base of others. The collector may leave it unchanged when the object moves.
	BaseOnly bool
}

// Roots returns the roots of the frame, or nil if its record is not that of a statepoint.
func (f *Frame) Roots() *Roots {
	m := f.match
	if m == nil || m.Kind != ir.StatepointSite && m.Kind != ir.DeoptimizeSite {
		return nil
	}
	sp, ok := m.Entry.Record.AsStatepoint()
	if !ok {
		return nil
	}
	out := &Roots{}
	for k := range f.Slots {
		switch s := &f.Slots[k]; {
		case s.Code == frame.AfterOmitted:
			return &Roots{Lost: s}
		case s.GC != nil && s.GC.Pair && !slices.ContainsFunc(out.Pointers, func(of RootPointer) bool { return of.Location.Same(s.Location) }):
			relocated := slices.ContainsFunc(sp.Pairs, func(p stackmap.Pair) bool {
				at := stackmap.LocationOf(m.Entry.Map, p.Derived, f.view.target.Arch())
				return at.Same(s.Location)
			})
			out.Pointers = append(out.Pointers, RootPointer{*s, !relocated})
		}
	}
	r := f.Reader()
	for n, l := range sp.Allocas {
		if !slices.Contains(sp.Allocas[:n], l) {
			out.Allocas = append(out.Allocas, r.slot(len(f.Slots)+n, fmt.Sprintf("alloca%d", n), frame.Type{}, l))
		}
	}
	return out
}
