package text

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// sameStacks groups the parked goroutines whose stacks would be printed as the same text. groups maps the index of a group's first goroutine in
// threads to the other goroutines of that group. shown holds the indexes of these others.
func sameStacks(threads []deopt.Thread) (groups map[int][]*deopt.Thread, shown map[int]bool) {
	groups, shown = map[int][]*deopt.Thread{}, map[int]bool{}
	first := map[string]int{}
	for i := range threads {
		t := &threads[i]
		shape, plain := shapeOf(t)
		k, again := first[shape]
		switch {
		case !t.Parked() || !plain:
		case again:
			groups[k], shown[i] = append(groups[k], t), true
		default:
			first[shape] = i
		}
	}
	return groups, shown
}

// shapeOf returns a key that is equal for goroutines whose stacks would be printed as the same text. plain is false for a stack with values or notes.
func shapeOf(t *deopt.Thread) (shape string, plain bool) {
	if !t.Parked() {
		return "", false
	}
	var b strings.Builder
	fmt.Fprintln(&b, t.Goroutine.State, t.Goroutine.Start, t.Goroutine.Labels, t.Total, t.End.Reason) // fmt sorts the keys of a map
	for _, f := range t.Frames {
		if !same(f, f) {
			return "", false
		}
		fmt.Fprintln(&b, f.Index, f.PC, f.Rule)
	}
	return b.String(), true
}

// maxRanges bounds the ranges of numbers that one line lists.
const maxRanges = 8

// alsoThere returns a line with the number of further goroutines that have the same stack as the one before, and their numbers.
func alsoThere(list []*deopt.Thread) string {
	var ranges []string
	for i := 0; i < len(list); {
		n := i + 1
		for n < len(list) && list[n].Goroutine.ID == list[n-1].Goroutine.ID+1 {
			n++
		}
		text := fmt.Sprint(list[i].Goroutine.ID)
		if n > i+1 {
			text += fmt.Sprintf(" to %d", list[n-1].Goroutine.ID)
		}
		if ranges = append(ranges, text); len(ranges) == maxRanges && n < len(list) {
			ranges = append(ranges, "…")
			break
		}
		i = n
	}
	return fmt.Sprintf("and %s with the same stack: %s", Count(len(list), "more goroutine"), strings.Join(ranges, ", "))
}

// titleOfGoroutine returns the title of a goroutine in the form of Go's tracebacks.
func titleOfGoroutine(g *frame.Goroutine) string {
	out := fmt.Sprintf("goroutine %d [%s]", g.ID, g.State)
	if g.Start != "" {
		out += " of " + Printable(g.Start)
	}
	var labels []string
	for key, value := range g.Labels {
		labels = append(labels, Printable(key)+"="+Printable(value))
	}
	if len(labels) > 0 {
		slices.Sort(labels)
		out += " {" + strings.Join(labels, ", ") + "}"
	}
	return out
}
