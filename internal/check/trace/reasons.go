package trace

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
)

// Reasons counts the reasons why something could not be done with exits, without the addresses in them. It must be made before the first Add.
type Reasons map[string]uint64

// maxReasons bounds the number of distinct reasons.
const maxReasons = 1000

// addresses matches the parts that differ between reasons of one kind.
var addresses = regexp.MustCompile(`0x[0-9a-f]+`)

// Add counts a reason.
func (r Reasons) Add(why string) {
	why = addresses.ReplaceAllString(why, "0x…")
	if r[why] == 0 && len(r) >= maxReasons {
		why = "other reasons"
	}
	r[why]++
}

// Sorted returns the reasons, the most frequent first.
func (r Reasons) Sorted() []string {
	return slices.SortedFunc(maps.Keys(r), func(a, b string) int { return cmp.Or(cmp.Compare(r[b], r[a]), cmp.Compare(a, b)) })
}
