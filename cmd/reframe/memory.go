package main

import (
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
)

// collectAt is the memory in bytes at which a short verb starts to collect garbage, unless maxMemory allows less.
const collectAt = 1 << 30

// maxMemory returns the memory limit in bytes for the Go runtime: the lower of GOMEMLIMIT and half of the control group's limit. The tracer and the
// target may share the group.
func maxMemory() int64 {
	limit := debug.SetMemoryLimit(-1)
	if group, err := memlimit.FromCgroup(); err == nil { // an error means that no control group has a limit
		limit = min(limit, int64(group/2))
	}
	return limit
}

// withoutCollecting disables garbage collection until collectAt bytes are in use. A short verb ends before a collection would be useful, and a
// collection lengthens the stop of the target.
func withoutCollecting() {
	mayUse = maxMemory()
	debug.SetMemoryLimit(min(collectAt, mayUse))
	debug.SetGCPercent(-1)
}

// mayUse is the value of [maxMemory] at the start.
var mayUse int64

// collecting enables garbage collection for a long-running verb: a collection starts when the heap has grown by this percentage.
func collecting(percent int) {
	debug.SetMemoryLimit(mayUse)
	debug.SetGCPercent(percent)
}
