//go:build linux

package tracer

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// collect calls wait4(2), but first moves a thread that hit a breakpoint back before the breakpoint. After a wait the kernel forgets the signal of a
// stop: if the tracer is then killed, the thread resumes without the signal. On x86-64 the thread would resume after the int3, in the middle of the
// original instruction, and the program would compute a wrong result.
func (s *server) collect(tid int, ws *unix.WaitStatus, options int) (int, error) {
	which, id := unix.P_PID, tid
	if tid == -1 {
		which, id = unix.P_ALL, 0
	}
	var info waitInfo
	s.asleep.Store(true)
	err := info.peek(which, id, options)
	s.asleep.Store(false)
	if err != nil {
		return -1, err
	}
	if info.PID == 0 {
		return 0, nil // with WNOHANG
	}
	const cldTrapped = 4 // sigaction(2)
	s.payBack(int(info.PID), info.Code == cldTrapped, int(info.Status)>>8)
	if t := s.threads[int(info.PID)]; t != nil {
		t.rewound = info.trapped() && s.moveBack(t)
	}
	got, err := unix.Wait4(int(info.PID), ws, options|unix.WNOHANG, nil)
	if got == 0 || err == unix.ECHILD { // the thread was killed meanwhile, or another thread's exec ended it
		return 0, unix.EINTR
	}
	return got, err
}

// waitInfo is the siginfo_t that waitid(2) writes.
type waitInfo struct {
	Signo, Errno, Code int32
	_                  int32
	PID, UID           uint32
	Status             int32
	_                  [25]int32
}

// peek waits like wait4(2) with the same options, but does not consume the report.
func (info *waitInfo) peek(which, id, options int) error {
	_, _, errno := syscall.Syscall6(unix.SYS_WAITID, uintptr(which), uintptr(id), uintptr(unsafe.Pointer(info)), uintptr(options|unix.WEXITED|unix.WSTOPPED|unix.WNOWAIT), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// trapped reports whether a thread is stopped at a SIGTRAP that is not an event of ptrace(2).
func (info *waitInfo) trapped() bool {
	const cldTrapped = 4 // sigaction(2)
	return info.Code == cldTrapped && info.Status == int32(unix.SIGTRAP)
}

// moveBack moves a thread that is stopped at a SIGTRAP back before the breakpoint that it hit. It reports whether the thread has hit a breakpoint.
func (s *server) moveBack(t *thread) bool {
	var regs General
	info, err := getSigInfo(t.tid)
	if err != nil || info.Code != trapCode || getRegs(t.tid, &regs) != nil {
		return false
	}
	if b := s.breakpoints[regs.trapped()]; !s.isPlaced(regs.trapped()) && (b == nil || b.held || b.lifted) {
		return false
	}
	regs.rewind()
	return setRegs(t.tid, &regs) == nil
}
