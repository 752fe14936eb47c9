package stackmap

import (
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Pairs sets [frame.Slot].GC in the slots of a statepoint's record. The collector updates each slot whose location is in a pair of base and derived
// pointer, whatever the slot's type, except for constants.
func Pairs(slots []frame.Slot, sp *Statepoint, m *Map, arch *machine.Arch) {
	baseOf := map[frame.Place]frame.Place{} // the base in the first pair of each derived pointer
	isBase := map[frame.Place]bool{}
	relocates := false
	for _, p := range sp.Pairs {
		base, derived := LocationOf(m, p.Base, arch), LocationOf(m, p.Derived, arch)
		isBase[base.Place()] = true
		if _, known := baseOf[derived.Place()]; !known {
			baseOf[derived.Place()] = base.Place()
		}
		relocates = relocates || derived.Constant == ""
	}
	first := map[frame.Place]int{} // index of the first slot at each place
	for n, s := range slots {
		if s.Location == nil {
			continue
		}
		if _, known := first[s.Location.Place()]; !known {
			first[s.Location.Place()] = n
		}
	}
	for k := range slots {
		l := slots[k].Location
		if l == nil || l.Constant != "" || l.Kind == Direct.String() {
			continue
		}
		base, derived := baseOf[l.Place()]
		switch {
		case derived && base != l.Place():
			slots[k].GC = &frame.GC{Pair: true}
			if n, known := first[base]; known {
				slots[k].GC.Base = &slots[n].Index
			}
		case derived, isBase[l.Place()]:
			slots[k].GC = &frame.GC{Pair: true}
		case relocates && strings.Contains(slots[k].Type.Source, "addrspace("): // LLVM's collectors keep references in other address spaces than 0
			slots[k].GC = &frame.GC{}
		}
	}
	frame.RelateDerived(slots)
}
