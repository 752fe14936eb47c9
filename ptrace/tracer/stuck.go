//go:build linux

package tracer

import (
	"fmt"
	"os"
	"strconv"
	"strings"

	"golang.org/x/sys/unix"
)

// Operations of futex(2) and their flags (linux/futex.h).
const (
	futexWait          = 0
	futexLockPI        = 6
	futexWaitBitset    = 9
	futexWaitRequeuePI = 11

	futexPrivate  = 128
	futexRealtime = 256
)

// stuck reports whether a thread that runs alone waits for another thread of its process. Such a wait would not end, because all others are stopped.
// The thread then waits without a timeout at a futex that no other process shares, as for a mutex, a condition variable, a semaphore or the end of a
// thread. stuck returns false if the kernel does not report the system call.
func (a *singleThread) stuck() bool {
	if a.t.vforks {
		return false
	}
	for _, guest := range a.threads {
		if guest.guest {
			return false
		}
	}
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/syscall", a.pid, a.t.tid))
	if err != nil {
		return false
	}
	at, private, waits := untimedFutex(string(text))
	// A futex in private memory is identified by the process and its address, even without FUTEX_PRIVATE (get_futex_key of Linux's
	// kernel/futex/core.c).
	return waits && (private || mappedWith("p", a.pid)(at))
}

// untimedFutex parses /proc/PID/task/TID/syscall: the number and arguments of the system call that blocks the thread (proc(5)). waits reports whether
// the thread waits at a futex without a timeout. at is the futex's address; private reports whether it is private to the process.
func untimedFutex(syscall string) (at uint64, private, waits bool) {
	words := strings.Fields(syscall)
	if len(words) < 5 || words[0] != strconv.Itoa(unix.SYS_FUTEX) {
		return 0, false, false
	}
	var args [4]uint64
	for i := range args {
		var err error
		if args[i], err = strconv.ParseUint(words[i+1], 0, 64); err != nil {
			return 0, false, false
		}
	}
	op, until := uint32(args[1]), args[3]
	switch op &^ (futexPrivate | futexRealtime) {
	case futexWait, futexLockPI, futexWaitBitset, futexWaitRequeuePI:
		return args[0], op&futexPrivate != 0, until == 0
	}
	return 0, false, false
}
