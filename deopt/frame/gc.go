package frame

import (
	"fmt"
	"strconv"
	"strings"
)

// GC describes how a statepoint's record lists a pointer for the garbage collector. LLVM records a pair for each pointer ("Garbage Collection
// Safepoints in LLVM", Base & Derived Pointers). A pair consists of the base, which points to the object, and the derived pointer, which may be equal
// to the base. By the pair, the collector finds the object, and updates the pointer when the object moves.
type GC struct {
	Pair   bool   `json:"pair"`             // the record has a pair for the pointer; if false, the collector does not know this reference
	Base   *int   `json:"base,omitempty"`   // for a derived pointer: index of the slot with its base
	Object Hex    `json:"object,omitempty"` // for a derived pointer: value of the base
	Offset string `json:"offset,omitempty"` // for a derived pointer: distance from the base in bytes

	// OneOf lists pointers of the module, as the module spells them. If it is set, this is one of them, and the record does not tell which.
	OneOf     []string `json:"one_of,omitempty"`
	OneOfMore int      `json:"one_of_more,omitempty"` // number of possible pointers that OneOf omits
}

// String returns a text such as "derived: 0x7f00 + 16" or "no gc pair", followed by the possible names. It returns "" for a pointer that is its own
// base and has one name.
func (g *GC) String() string {
	switch {
	case g == nil:
		return ""
	case !g.Pair:
		return "no gc pair"
	}
	var parts []string
	if g.Base != nil {
		parts = append(parts, g.derived())
	}
	if names := g.Possible(); names != "" {
		parts = append(parts, names)
	}
	return strings.Join(parts, ", ")
}

// derived returns "derived", followed by the base and the distance from it, if they are known.
func (g *GC) derived() string {
	if g.Offset == "" {
		return "derived"
	}
	sign, offset := "+", g.Offset
	if rest, below := strings.CutPrefix(offset, "-"); below {
		sign, offset = "-", rest
	}
	return "derived: " + string(g.Object) + " " + sign + " " + offset
}

// Possible returns the possible names of a pointer whose name is not certain, such as "one of %a, %b"; otherwise "".
func (g *GC) Possible() string {
	const most = 8
	if len(g.OneOf) == 0 {
		return ""
	}
	shown := g.OneOf[:min(len(g.OneOf), most)]
	text := "one of " + strings.Join(shown, ", ")
	if more := len(g.OneOf) - len(shown) + g.OneOfMore; more > 0 {
		text += fmt.Sprintf(" and %d more", more)
	}
	return text
}

// RelateDerived sets the distance of each derived pointer from its base, if both were read.
func RelateDerived(slots []Slot) {
	at := map[int]int{} // position in slots, by Slot.Index
	for n := len(slots) - 1; n >= 0; n-- {
		at[slots[n].Index] = n
	}
	for k := range slots {
		s := &slots[k]
		if s.GC == nil || s.GC.Base == nil {
			continue
		}
		s.GC = &GC{Pair: true, Base: s.GC.Base, OneOf: s.GC.OneOf, OneOfMore: s.GC.OneOfMore} // make a new GC, because another view may share the old one
		n, known := at[*s.GC.Base]
		if !known || !slots[n].Read() || !s.Read() {
			continue
		}
		base, err := slots[n].Hex.word()
		value, late := s.Hex.word()
		if err == nil && late == nil {
			s.GC.Object, s.GC.Offset = slots[n].Hex, strconv.FormatInt(int64(value-base), 10)
		}
	}
}

// word parses a number of at most 64 bits.
func (h Hex) word() (uint64, error) {
	return strconv.ParseUint(strings.TrimPrefix(string(h), "0x"), 16, 64)
}
