package vmlayout

import (
	"runtime/debug"

	"golang.org/x/sys/unix"
)

// boundMemory bounds what this process may have of memory that it can write to, beside what it has: RLIMIT_DATA counts private mappings
// too (setrlimit(2), since Linux 4.7). Go ends a process that gets no more.
func boundMemory() error {
	debug.SetMemoryLimit(childMemory / 2)
	return unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: childMemory, Max: childMemory})
}
