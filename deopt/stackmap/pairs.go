package stackmap

import (
	"slices"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Pairs sets [frame.Slot].GC in the slots of a statepoint's record. The collector updates each slot whose location is in a pair of base and derived
// pointer, whatever its type. It does not update constants.
func Pairs(slots []frame.Slot, sp *Statepoint, m *Map, arch *machine.Arch) {
	type place struct{ base, derived frame.Location }
	var pairs []place
	for _, p := range sp.Pairs {
		pairs = append(pairs, place{LocationOf(m, p.Base, arch), LocationOf(m, p.Derived, arch)})
	}
	told := slices.ContainsFunc(pairs, func(p place) bool { return p.derived.Constant == "" })
	for k := range slots {
		l := slots[k].Location
		if l == nil || l.Constant != "" || l.Kind == Direct.String() {
			continue
		}
		at := slices.IndexFunc(pairs, func(p place) bool { return p.derived.Same(l) })
		switch {
		case at >= 0 && !pairs[at].base.Same(l):
			slots[k].GC = &frame.GC{Pair: true}
			if n := slices.IndexFunc(slots, func(s frame.Slot) bool { return s.Location != nil && s.Location.Same(&pairs[at].base) }); n >= 0 {
				slots[k].GC.Base = &slots[n].Index
			}
		case at >= 0, slices.ContainsFunc(pairs, func(p place) bool { return p.base.Same(l) }):
			slots[k].GC = &frame.GC{Pair: true}
		case told && strings.Contains(slots[k].Type.Source, "addrspace("): // LLVM's collectors keep references in address spaces
			slots[k].GC = &frame.GC{}
		}
	}
	frame.RelateDerived(slots)
}
