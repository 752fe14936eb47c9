package ptrace

import (
	"os"
	"strconv"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// nonblocking has open(2) not wait for whoever writes to a pipe.
const nonblocking = syscall.O_NONBLOCK

// ownerOf returns the user that a file belongs to.
func ownerOf(info os.FileInfo) (uid int, ok bool) {
	st, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return -1, false
	}
	return int(st.Uid), true
}

// userTicks is how many ticks a second /proc counts in, on all machines that have live targets.
const userTicks = 100

// processStart returns when a process began, to 10 ms, or the zero time where that is not known. The kernel says how long after it was
// booted that was (proc_pid_stat(5), starttime).
func processStart(pid int) time.Time {
	fields := statFields(pid)
	if len(fields) < 20 {
		return time.Time{}
	}
	ticks, err := strconv.ParseInt(fields[19], 10, 64)
	var booted unix.Timespec
	if err != nil || unix.ClockGettime(unix.CLOCK_BOOTTIME, &booted) != nil {
		return time.Time{}
	}
	age := time.Duration(booted.Nano()) - time.Duration(ticks)*(time.Second/userTicks)
	return time.Now().Add(-age)
}
