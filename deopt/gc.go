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

// fillGC adds the gc pointers that are not deopt values, with their names and types where these are certain. If several pointers of the module
// are possible, a slot has their common type and no name; [frame.GC].OneOf lists them.
func (f *Frame) fillGC(r *Reader, sp *stackmap.Statepoint) {
	held := sites.GCPointers(f.match.Site, sp)
	oneOf := map[int][]ir.Value{}
	taken := map[stackmap.Location]bool{}
	for _, l := range sp.Deopt {
		taken[l] = true
	}
	for _, p := range sp.Pairs {
		for _, l := range []stackmap.Location{p.Base, p.Derived} {
			if taken[l] {
				continue
			}
			taken[l] = true
			index := len(f.Slots)
			slot, bindable := f.pointer(r, index, l, held[l])
			f.Slots = append(f.Slots, slot)
			switch {
			case bindable:
				f.values = append(f.values, bound{held[l][0], index})
			case len(held[l]) > 1:
				oneOf[index] = held[l]
			}
		}
	}
	stackmap.Pairs(f.Slots, sp, r.Map, r.Arch)
	for index, values := range oneOf {
		if gc := f.Slots[index].GC; gc != nil {
			gc.OneOf, gc.OneOfMore = sites.PossibleNames(values)
		}
	}
}

// pointer reads a gc pointer that may be any of the module's values. bindable reports whether the pointer is certainly a single value that no
// slot holds yet.
func (f *Frame) pointer(r *Reader, index int, l stackmap.Location, values []ir.Value) (slot frame.Slot, bindable bool) {
	name := fmt.Sprintf("loc%d", index)
	t := sites.CommonType(values)
	if t == nil {
		slot = r.slot(index, name, frame.Type{}, l)
		markUndef(r, &slot, l)
		return slot, false
	}
	v := values[0]
	if len(values) == 1 && sites.NameOf(v) != "" {
		name = sites.NameOf(v)
		bindable = !slices.ContainsFunc(f.values, func(b bound) bool { return b.value == v })
	}
	slot = r.operand(index, name, f.match.Site, t, interp.FrameType(f.dataLayout(), t), l)
	markUndef(r, &slot, l)
	return slot, bindable
}

// markUndef clears a slot whose location has LLVM's mark of an undefined value.
func markUndef(r *Reader, slot *frame.Slot, l stackmap.Location) {
	if slot.Status == frame.OK && sites.MarksUndef(r.Map, l) {
		slot.Clear(frame.Missing, frame.Because(frame.MayBeUndef, sites.UndefMark))
	}
}
