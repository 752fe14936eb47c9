package main

import (
	"fmt"
	"io"
	"strconv"
	"strings"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
)

// maxKept is the number of frames that --depth all keeps at each end of a stack. A frame takes some kilobytes of memory.
const maxKept = 1 << 16

// depthOf parses --depth, and increases the depth so that it includes the chosen frame.
func depthOf(text string, c *deopt.Choice) (unwind.Depth, error) {
	d := c.Depth()
	switch n, err := strconv.ParseUint(text, 10, 31); {
	case text == "":
	case text == "all":
		d.Inner, d.Outer = max(d.Inner, maxKept), max(d.Outer, maxKept)
	case err != nil || n == 0:
		return d, usage("--depth %s: expected a number above 0, or all", text)
	case n > 2*maxKept:
		return d, usage("--depth %d: must be at most %d, which is all", n, 2*maxKept)
	default:
		d.Inner, d.Outer = int(n+1)/2, max(int(n)/2, -1-c.Frame)
		if d.Around = 0; c.Frame >= d.Inner {
			d.Around = c.Frame
		}
	}
	return d, nil
}

// Frames that repeat are folded where at most maxPeriod frames repeat at least leastTurns times.
const (
	leastTurns = 4
	maxPeriod  = 8
)

// repeated returns the period, in frames, with which the start of list repeats, and the number of frames that do; 0 and 0 if it does not repeat.
// Frames with a record never repeat: their values differ.
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

func printRepeated(w io.Writer, s style, turn []*deopt.Frame, more int) {
	var where []string
	for _, f := range turn {
		where = append(where, place(&f.Frame))
	}
	last := turn[len(turn)-1].Index
	fmt.Fprintf(w, "  %s\n", s.Dim(fmt.Sprintf("… #%d to #%d, %s of %s, not shown", last+1, last+more, count(more, "frame"), strings.Join(where, ", "))))
}

// printOmitted prints which functions the omitted frames in the middle of a deep stack belong to.
func printOmitted(w io.Writer, s style, o *frame.Omitted) {
	var where []string
	known := 0
	for _, p := range o.PCs {
		at := string(p.PC)
		if p.Function != "" {
			at = fmt.Sprintf("%s+%#x", printable(p.Function), *p.Offset)
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
	fmt.Fprintf(w, "  %s\n", s.Dim(fmt.Sprintf("… #%d to #%d, %s %s, not rebuilt; see --depth and -f", o.From, o.From+o.Count-1, count(o.Count, "frame"), text)))
}
