package names

import (
	"cmp"
	"slices"
)

// compared is the number of bytes of a name that are compared.
const compared = 128

// ByDistance returns the names in order of their [Distance] from want, nearest first. Names at the same distance are in alphabetical order.
func ByDistance(want string, names []string) []string {
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

// Distance returns the Levenshtein distance of a and b: the least number of bytes to insert, delete or change. It compares the first 128 bytes of each.
func Distance(a, b string) int {
	a, b = a[:min(len(a), compared)], b[:min(len(b), compared)]
	row := make([]int, len(b)+1) // row[j] is the distance between the beginning of a so far and b[:j]
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
