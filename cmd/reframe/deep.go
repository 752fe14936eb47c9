package main

import (
	"strconv"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/unwind"
)

// maxKept bounds the number of frames that --depth all keeps at each end of a stack, because each frame takes some kilobytes of memory.
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
