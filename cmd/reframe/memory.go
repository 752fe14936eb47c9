package main

import (
	"math"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// collectAt is how many bytes are used before a short verb collects garbage, if it may use as many.
const collectAt = 1 << 30

// maxMemory returns how many bytes the Go runtime should use at most: the limit of GOMEMLIMIT, or half of what the control group allows, as the tracer
// and the target may be in the same group.
func maxMemory() int64 {
	limit := debug.SetMemoryLimit(-1)
	if group, err := memlimit.FromCgroup(); err == nil { // an error: there is no group with a limit
		limit = min(limit, int64(min(group/2, math.MaxInt64)))
	}
	return limit
}

// withoutCollecting turns garbage collection off until collectAt: a short verb ends before it would pay, and a collection makes a stop of the target longer.
func withoutCollecting() {
	mayUse = maxMemory()
	debug.SetMemoryLimit(min(collectAt, mayUse))
	debug.SetGCPercent(-1)
}

// mayUse is [maxMemory] at the start.
var mayUse int64

// collecting turns garbage collection on for what takes long: when the heap has grown by so many percent.
func collecting(percent int) {
	debug.SetMemoryLimit(mayUse)
	debug.SetGCPercent(percent)
}
