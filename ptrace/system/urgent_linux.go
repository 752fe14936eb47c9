//go:build linux

package system

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Urgently runs f on a thread that is not preempted by others, if that is permitted (CAP_SYS_NICE, or root): a process is stopped for f, and when f
// resumes it, its own threads would run before the rest of f. Otherwise f at least begins with a fresh time slice. Afterwards the thread is
// scheduled as before.
func Urgently(f func() error) error {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return f()
	}
	urgent := []unix.SchedAttr{
		{Policy: unix.SCHED_RR, Priority: 1},
		{Policy: before.Policy, Nice: -20}, // where groups are given no real time at all
	}
	for i := range urgent {
		urgent[i].Size, urgent[i].Flags = unix.SizeofSchedAttr, unix.SCHED_FLAG_RESET_ON_FORK
		if unix.SchedSetAttr(0, &urgent[i], 0) == nil {
			defer func() { _ = unix.SchedSetAttr(0, before, 0) }() // it was permitted to be more
			return f()
		}
	}
	Nap()
	return f()
}

// napTime is the length of one nap, for which others have the processor.
const napTime = 20 * time.Microsecond

// Nap lets others run. A yield is not enough: Linux counts a thread that yields as having used its share, and with others on its processor it waits
// for the length of their shares.
func Nap() {
	ts := unix.NsecToTimespec(int64(napTime))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// WakeOnTime makes the naps of this thread as short as they are: Linux adds 50 microseconds otherwise (PR_SET_TIMERSLACK of prctl(2)).
func WakeOnTime() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
