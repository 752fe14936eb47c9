package frame

import (
	"slices"
	"strconv"
	"strings"
)

// GC describes how the record of a statepoint lists a place that holds a pointer for the garbage collector. LLVM records a pair for each pointer:
// the pointer to the object, which is the base, and the pointer derived from it, or the base again ("Garbage Collection Safepoints in LLVM", Base &
// Derived Pointers). With it the collector finds the object, and updates the pointer when the object moves.
type GC struct {
	Pair   bool   `json:"pair"`             // the record has a pair; false: the record does not tell the collector of this reference
	Base   *int   `json:"base,omitempty"`   // of a derived pointer: index of the slot that has its base
	Object Hex    `json:"object,omitempty"` // of a derived pointer: the base
	Offset string `json:"offset,omitempty"` // from the base, in bytes
}

// String is "derived: 0x7f00 + 16", or "no gc pair"; "" of a pointer that is its own base.
func (g *GC) String() string {
	switch {
	case g == nil:
		return ""
	case !g.Pair:
		return "no gc pair"
	case g.Base == nil:
		return ""
	case g.Offset == "":
		return "derived"
	}
	sign, offset := "+", g.Offset
	if rest, below := strings.CutPrefix(offset, "-"); below {
		sign, offset = "-", rest
	}
	return "derived: " + string(g.Object) + " " + sign + " " + offset
}

// RelateDerived sets the distance of each derived pointer from its base, if both were read.
func RelateDerived(slots []Slot) {
	for k := range slots {
		s := &slots[k]
		if s.GC == nil || s.GC.Base == nil {
			continue
		}
		s.GC = &GC{Pair: true, Base: s.GC.Base} // the GC of another view stays unchanged
		n := slices.IndexFunc(slots, func(of Slot) bool { return of.Index == *s.GC.Base })
		if n < 0 || !slots[n].Read() || !s.Read() {
			continue
		}
		base, err := slots[n].Hex.word()
		at, late := s.Hex.word()
		if err == nil && late == nil {
			s.GC.Object, s.GC.Offset = slots[n].Hex, strconv.FormatInt(int64(at-base), 10)
		}
	}
}

// word is the number that up to 64 bits are.
func (h Hex) word() (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(string(h), "0x"), 16, 64)
}
