package livetest

import (
	"math"
	"runtime"
)

// Allocated returns how many bytes f allocates. It is called three times: the count is the
// whole process's, so what else runs in it only adds.
func Allocated(f func()) uint64 {
	least := uint64(math.MaxUint64)
	for range 3 {
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		f()
		runtime.ReadMemStats(&after)
		least = min(least, after.TotalAlloc-before.TotalAlloc)
	}
	return least
}
