package livetest

import (
	"math"
	"runtime"
)

// Allocated returns the number of bytes that f allocates. It calls f three times and returns the smallest count, because the count covers the whole
// process and other allocations only add to it.
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
