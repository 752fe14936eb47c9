package trace

import (
	"cmp"
	"maps"
	"slices"

	"example.com/reframe/deopt/frame"
)

// Reasons counts reasons why an action on exits was not possible. It removes the addresses in them, so that similar reasons are counted together. The
// map must be made before the first Add.
type Reasons map[string]uint64

// maxReasons bounds the number of distinct reasons.
const maxReasons = 1000

// Add counts a reason.
func (r Reasons) Add(why error) {
	text := frame.TextWith(why, func(uint64) string { return "0x…" })
	if r[text] == 0 && len(r) >= maxReasons {
		text = "other reasons"
	}
	r[text]++
}

// Sorted returns the reasons, the most frequent first.
func (r Reasons) Sorted() []string {
	return slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b)) })
}
