package text

import (
	"fmt"
	"io"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// Frames are folded if a sequence of at most maxPeriod frames repeats at least leastTurns times.
const (
	leastTurns = 4
	maxPeriod  = 8
)

// repeated returns the period, in frames, with which the start of list repeats, and the number of frames that repeat. It returns 0 and 0 if the start
// does not repeat. Frames with a record do not count as repeated, because their values differ.
func repeated(list []*deopt.Frame) (period, count int) {
	for period = 1; period <= maxPeriod && period < len(list); period++ {
		n := 0
		for n < len(list) && same(list[n], list[n%period]) && (n == 0 || list[n].Index == list[n-1].Index+1) {
			n++
		}
		if n -= n % period; n >= leastTurns*period {
			return period, n
		}
	}
	return 0, 0
}

func same(a, b *deopt.Frame) bool {
	return a.Record == nil && b.Record == nil && a.PC == b.PC && a.Rule == b.Rule && a.Guess() == "" && b.Guess() == "" && len(a.Notes) == 0 && len(b.Notes) == 0 &&
		len(a.Direct) == 0 && len(b.Direct) == 0
}

func printRepeated(w io.Writer, s Style, turn []*deopt.Frame, more int) {
	var where []string
	for _, f := range turn {
		where = append(where, Place(&f.Frame))
	}
	last := turn[len(turn)-1].Index
	fmt.Fprintf(w, "  %s\n", s.Dim(fmt.Sprintf("… #%d to #%d, %s of %s, not shown", last+1, last+more, Count(more, "frame"), strings.Join(where, ", "))))
}

// printOmitted prints the functions of the omitted frames in the middle of a deep stack.
func printOmitted(w io.Writer, s Style, o *frame.Omitted) {
	var where []string
	known := 0
	for _, p := range o.PCs {
		at := string(p.PC)
		if p.Function != "" {
			at = fmt.Sprintf("%s+%#x", Printable(p.Function), *p.Offset)
		}
		if len(o.PCs) > 1 {
			at = fmt.Sprintf("%d of %s", p.Count, at)
		}
		where = append(where, at)
		known += p.Count
	}
	if rest := o.Count - known; rest > 0 {
		where = append(where, fmt.Sprintf("%d of others", rest))
	}
	text := strings.Join(where, ", ")
	if len(o.PCs) > 1 {
		text = "(" + text + ")"
	} else {
		text = "of " + text
	}
	fmt.Fprintf(w, "  %s\n", s.Dim(fmt.Sprintf("… #%d to #%d, %s %s, not rebuilt; see --depth and -f", o.From, o.From+o.Count-1, Count(o.Count, "frame"), text)))
}
