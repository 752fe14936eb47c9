// Package near finds the names that somebody may have meant who typed another one. Its main function is [Sorted]. Names may be
// anything, and none is trusted.
package near

import (
	"cmp"
	"slices"
)

// compared is how much of a name is looked at, in bytes.
const compared = 128

// Sorted returns the names, those first that differ from want by the fewest insertions, deletions and changes of one byte (the Levenshtein
// distance); of equal ones in alphabetical order.
func Sorted(want string, names []string) []string {
	type distant struct {
		name string
		far  int
	}
	list := make([]distant, len(names))
	for i, name := range names {
		list[i] = distant{name, Distance(want, name)}
	}
	slices.SortFunc(list, func(a, b distant) int { return cmp.Or(a.far-b.far, cmp.Compare(a.name, b.name)) })
	out := make([]string, len(list))
	for i := range list {
		out[i] = list[i].name
	}
	return out
}

// Distance is how many bytes are to be inserted, deleted or changed until a is b, of the first 128 of both.
func Distance(a, b string) int {
	a, b = a[:min(len(a), compared)], b[:min(len(b), compared)]
	row := make([]int, len(b)+1) // from the beginning of a so far to that of b up to each place
	for j := range row {
		row[j] = j
	}
	for i := range len(a) {
		diagonal := row[0]
		row[0] = i + 1
		for j := range len(b) {
			change := diagonal
			if a[i] != b[j] {
				change++
			}
			diagonal = row[j+1]
			row[j+1] = min(change, row[j]+1, row[j+1]+1)
		}
	}
	return row[len(b)]
}
