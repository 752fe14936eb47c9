//go:build linux

package system

import (
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Urgently runs f on a thread that other threads do not preempt, if that is permitted (CAP_SYS_NICE, or root). A process is stopped during f, and
// when f resumes it, its threads would otherwise run before the rest of f. Without permission, f at least begins with a fresh time slice. Afterwards
// the thread has its earlier scheduling.
func Urgently(f func() error) error {
	before, err := unix.SchedGetAttr(0, 0)
	if err != nil {
		return f()
	}
	urgent := []unix.SchedAttr{
		{Policy: unix.SCHED_RR, Priority: 1},
		{Policy: before.Policy, Nice: -20}, // for control groups without real-time budget
	}
	for i := range urgent {
		urgent[i].Size, urgent[i].Flags = unix.SizeofSchedAttr, unix.SCHED_FLAG_RESET_ON_FORK
		if unix.SchedSetAttr(0, &urgent[i], 0) == nil {
			defer func() { _ = unix.SchedSetAttr(0, before, 0) }() // lowering the priority is always permitted
			return f()
		}
	}
	Nap()
	return f()
}

// napTime is the length of one nap.
const napTime = 20 * time.Microsecond

// Nap lets other threads run. Yielding is not sufficient: Linux treats a thread that yields as if it had used its time slice, so that it waits while
// the other threads on its processor use theirs.
func Nap() {
	ts := unix.NsecToTimespec(int64(napTime))
	_, _, _ = unix.RawSyscall(unix.SYS_NANOSLEEP, uintptr(unsafe.Pointer(&ts)), 0, 0)
}

// WakeOnTime makes naps of this thread end on time. By default Linux delays the end by up to 50 microseconds (PR_SET_TIMERSLACK of prctl(2)).
func WakeOnTime() { _ = unix.Prctl(unix.PR_SET_TIMERSLACK, 1, 0, 0, 0) }
