//go:build linux

package system

import (
	"debug/elf"
	"math"
	"runtime"
	"strconv"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
)

// pagesScan is struct pm_scan_arg of linux/fs.h.
type pagesScan struct {
	size, flags, start, end, walkEnd, regions, room, maxPages uint64
	inverted, all, anyOf, wanted                              uint64 // masks of categories
}

// Categories of pages, and the number of the request (Documentation/admin-guide/mm/pagemap.rst of Linux, since 6.7).
const (
	pageIsPresent = 1 << 3
	pageIsSwapped = 1 << 4
	scanPages     = 0xc0606610 // PAGEMAP_SCAN
)

// Pages yields the parts of memory that have pages, present or swapped, in ascending order. pagemap is a file descriptor of /proc/PID/pagemap. The
// time depends on the number of pages, and not, as for reading pagemap, on the size of the memory. Pages returns an error if the kernel does not
// support the request, or if the request fails.
func Pages(pagemap uintptr, start, end machine.Addr, yield func(start, end machine.Addr)) error {
	regions := make([]struct{ start, end, categories uint64 }, 512)
	for at := uint64(start); at < uint64(end); {
		scan := pagesScan{start: at, end: uint64(end), regions: uint64(uintptr(unsafe.Pointer(&regions[0]))), room: uint64(len(regions)), anyOf: pageIsPresent | pageIsSwapped, wanted: pageIsPresent | pageIsSwapped}
		scan.size = uint64(unsafe.Sizeof(scan))
		n, _, errno := unix.Syscall(unix.SYS_IOCTL, pagemap, scanPages, uintptr(unsafe.Pointer(&scan)))
		runtime.KeepAlive(regions)
		switch {
		case errno == unix.EINTR:
			continue
		case errno != 0:
			return errno
		case scan.walkEnd <= at:
			return unix.EIO
		}
		for _, r := range regions[:min(int(n), len(regions))] {
			yield(machine.Addr(r.start), machine.Addr(r.end))
		}
		at = scan.walkEnd
	}
	return nil
}

// ThisThread returns the number of the calling thread.
func ThisThread() int { return unix.Gettid() }

// Request makes a ptrace(2) request whose address argument is 0.
func Request(request, tid int, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// PtraceDenied reports whether the kernel denies all ptrace(2) requests of this process, for example because of a seccomp(2) filter. No thread has
// the number 0, so a permitted request fails with ESRCH.
func PtraceDenied() bool {
	switch Request(unix.PTRACE_SEIZE, 0, 0) {
	case unix.EPERM, unix.EACCES, unix.ENOSYS:
		return true
	}
	return false
}

// FileOwner returns the user who owns a file.
func FileOwner(path string) (uid int, known bool) {
	var st unix.Stat_t
	err := unix.Stat(path, &st)
	return int(st.Uid), err == nil
}

// Exists reports whether a process with this number exists, even if /proc does not show it.
func Exists(pid int) bool {
	if pid <= 0 || pid > math.MaxInt32 { // the kernel would truncate the number
		return false
	}
	err := unix.Kill(pid, 0)
	return err == nil || err == unix.EPERM
}

// PollStop reports, without waiting, whether a thread has stopped, and the signal that is being delivered to it, or 0.
func PollStop(tid int) (Progress, syscall.Signal) {
	var ws unix.WaitStatus
	got, err := unix.Wait4(tid, &ws, unix.WALL|unix.WNOHANG, nil)
	switch {
	case err == unix.EINTR || err == nil && got == 0:
		return StillRuns, 0
	case err != nil || !ws.Stopped():
		return HasEnded, 0
	// A stop by an event is the requested stop, or the group-stop in which the thread already was and to which it returns. Any other stop is for a
	// signal.
	case int(ws)>>16 == unix.PTRACE_EVENT_STOP:
		return StandsStill, 0
	}
	return StandsStill, ws.StopSignal()
}

// RegisterSet reads a register set of a stopped thread into b, and returns the length of the set.
func RegisterSet(tid int, kind elf.NType, b []byte) (int, error) {
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), uintptr(kind), uintptr(unsafe.Pointer(&iov)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(min(uint64(iov.Len), uint64(len(b)))), nil
}

// userTicks is the number of clock ticks per second in /proc, on all supported architectures.
const userTicks = 100

// ProcessStart returns the time when a process started, with a precision of 10 ms, or the zero time if unknown. The kernel reports it relative to its
// boot (proc_pid_stat(5), starttime).
func ProcessStart(pid int) time.Time {
	fields, err := StatFields(pid)
	if err != nil || len(fields) < 20 {
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
