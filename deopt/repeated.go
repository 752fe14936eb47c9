package deopt

import (
	"fmt"
	"strings"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/sites"
)

// repeated returns, for each SSA value that the record has more than once, the numbers of its slots. These numbers are the same for every frame with
// this record.
func (m *Match) repeated(slots []frame.Slot) [][]int {
	if m.repeats == nil {
		m.repeats = [][]int{}
		of := map[string][]int{}
		for k := range slots {
			if name := slots[k].Name; name != "" {
				of[name] = append(of[name], k)
			}
		}
		for k := range slots {
			if all := of[slots[k].Name]; len(all) > 1 && all[0] == k {
				m.repeats = append(m.repeats, all)
			}
		}
	}
	return m.repeats
}

// refuseContradictions makes an SSA value unavailable in all of its slots if the locations of the record hold different values. An SSA value has
// one value. So the record or the code is wrong, or LLVM found the value undefined and recorded arbitrary locations. The frame does not show
// which of these is the case.
func (f *Frame) refuseContradictions() {
	for _, all := range f.match.repeated(f.Slots) {
		why := contradiction(f.Slots, all)
		if why == "" {
			continue
		}
		for _, k := range all {
			if s := &f.Slots[k]; s.Status == frame.OK {
				s.Clear(frame.Missing, frame.Because(frame.Contradiction, why))
			}
		}
	}
}

// contradiction returns the reason why the slots of one SSA value contradict each other, or "".
func contradiction(slots []frame.Slot, all []int) string {
	var first *frame.Slot
	differ := false
	var places []string
	for _, k := range all {
		s := &slots[k]
		if s.Code == frame.MayBeUndef {
			return "another location of the same value in the record may be undefined: " + sites.UndefMark
		}
		if s.Status != frame.OK || s.Type.IsZero() { // without a type, the bits above the value are unknown
			continue
		}
		places = append(places, string(s.Hex)+" in "+s.Location.String()) // in hexadecimal, because summaries of reasons remove such numbers
		if first == nil {
			first = s
		}
		differ = differ || !sameValue(first, s)
	}
	if !differ {
		return ""
	}
	return fmt.Sprintf("the record has %s in %d locations, and they hold different values: %s", slots[all[0]].Name, len(places), strings.Join(places, ", "))
}

// sameValue reports whether two slots of one type have the same value. The payload of a NaN is unspecified (LangRef, "Floating-Point NaN Values"),
// and so is the padding of an aggregate.
func sameValue(a, b *frame.Slot) bool {
	return a.Hex == b.Hex || a.Value != "" && a.Value == b.Value
}
