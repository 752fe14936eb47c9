package deopt

import (
	"fmt"
	"slices"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// fillGC adds the gc pointers that are not deopt values. The record has their pairs in an order that the compiler chose, and no pair for a pointer
// that is not relocated. So a pair gets a name only if nothing else is possible: its location is that of a named deopt value, or one pointer and one
// pair are left.
func (f *Frame) fillGC(r *Reader, sp *stackmap.Statepoint, deopt []stackmap.Location) {
	var left []ir.Value
	for _, v := range f.match.Site.GCLive {
		if i, ok := v.(*ir.Instr); ok && i.Op == ir.OpAlloca {
			continue
		}
		known := slices.ContainsFunc(f.values, func(b bound) bool { return b.value == v })
		if !known && !slices.Contains(left, v) && sites.NameOf(v) != "" {
			left = append(left, v)
		}
	}
	var pairs []stackmap.Location
	for _, p := range sp.Pairs {
		for _, l := range []stackmap.Location{p.Base, p.Derived} {
			if !slices.Contains(deopt, l) && !slices.Contains(pairs, l) {
				pairs = append(pairs, l)
			}
		}
	}
	sure := len(left) == 1 && len(pairs) == 1 && f.deoptPaired(sp, deopt) && !f.constantPaired(pairs[0])
	for _, l := range pairs {
		index := len(f.Slots)
		if sure {
			slot := r.operand(index, sites.NameOf(left[0]), f.match.Site, left[0].Type(), interp.FrameType(f.dataLayout(), left[0].Type()), l)
			if slot.Status == frame.OK && sites.MarksUndef(r.Map, l) {
				slot.Clear(frame.Missing, frame.Because(frame.MayBeUndef, sites.UndefMark))
			}
			f.Slots = append(f.Slots, slot)
			f.values = append(f.values, bound{left[0], index})
			continue
		}
		f.Slots = append(f.Slots, r.slot(index, fmt.Sprintf("loc%d", index), frame.Type{}, l))
	}
}

// constantPaired reports whether the pair at a location may belong to a constant among the gc pointers. Null is recorded as a number. Undef, the
// address of a global and expressions on one may be anywhere.
func (f *Frame) constantPaired(l stackmap.Location) bool {
	number := l.Kind == stackmap.Constant || l.Kind == stackmap.ConstantIndex
	return slices.ContainsFunc(f.match.Site.GCLive, func(v ir.Value) bool {
		c, constant := v.(*ir.Const)
		return constant && (number || c.Kind != ir.ConstNull) || !constant && sites.NameOf(v) == ""
	})
}

// deoptPaired reports whether each pointer among the deopt values has a pair at its own location. LLVM records every such gc pointer as the pair
// (self, self), but may put the deopt value and the pair in different places. Then the pointer's pair is at another location.
func (f *Frame) deoptPaired(sp *stackmap.Statepoint, deopt []stackmap.Location) bool {
	for k, v := range f.match.Site.Live {
		t := v.Type()
		if t.Kind == ir.VectorKind {
			t = t.Elem
		}
		paired := slices.ContainsFunc(sp.Pairs, func(p stackmap.Pair) bool { return p.Base == deopt[k] || p.Derived == deopt[k] })
		if _, constant := v.(*ir.Const); t.Kind == ir.PointerKind && !constant && !paired && deopt[k].Kind != stackmap.Direct {
			return false
		}
	}
	return true
}
