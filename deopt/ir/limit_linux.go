package ir

import "golang.org/x/sys/unix"

// limitMemory bounds the address space of a process that was started (prlimit(2)).
func limitMemory(pid int, size uint64) error {
	return unix.Prlimit(pid, unix.RLIMIT_AS, &unix.Rlimit{Cur: size, Max: size}, nil)
}
