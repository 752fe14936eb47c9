package vmlayout

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// boundMemory bounds the additional writable memory of this process: RLIMIT_DATA includes private mappings (setrlimit(2), since Linux 4.7). The Go
// runtime ends a process that cannot allocate memory.
func boundMemory() error {
	debug.SetMemoryLimit(childMemory / 2)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: childMemory, Max: childMemory})
}
