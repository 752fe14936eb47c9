// Package near suggests names that are close to a misspelled one. Its main function is [Sorted]. Names may be anything, and none is trusted.
package near

import (
	"cmp"
	"slices"
)

// compared bounds the part of a name that is compared, in bytes.
const compared = 128

// Sorted returns the names sorted by the number of insertions, deletions and changes of one byte that turn them into want (the Levenshtein
// distance), fewest first; names at the same distance are in alphabetical order.
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

// Distance returns the number of bytes to insert, delete or change to turn a into b, comparing the first 128 bytes of each.
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
