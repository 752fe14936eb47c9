//go:build linux

package ptrace

import (
	"debug/elf"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// readProcess reads ranges of another process one after the other, up to the first byte that cannot be read, and
// returns how much it read (process_vm_readv(2)).
func readProcess(pid int, wants []want) (int, error) {
	local, remote := make([]unix.Iovec, len(wants)), make([]unix.RemoteIovec, len(wants))
	for i := range wants {
		w := &wants[i]
		local[i].Base = &w.buf[0]
		local[i].SetLen(len(w.buf))
		remote[i] = unix.RemoteIovec{Base: uintptr(w.addr), Len: len(w.buf)}
	}
	return unix.ProcessVMReadv(pid, local, remote, 0)
}

// thisThread is the thread that it runs on.
func thisThread() int { return unix.Gettid() }

// ptraceRequest makes a request whose address argument is 0.
func ptraceRequest(request, tid int, data uintptr) error {
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// pollStop asks, without waiting, whether a thread has stopped, and with which signal that is on its way to it, or 0.
func pollStop(tid int) (progress, syscall.Signal) {
	var ws unix.WaitStatus
	got, err := unix.Wait4(tid, &ws, unix.WALL|unix.WNOHANG, nil)
	switch {
	case err == unix.EINTR || err == nil && got == 0:
		return stillRuns, 0
	case err != nil || !ws.Stopped():
		return hasEnded, 0
	// A stop that is an event is ours, or the group-stop that the thread was
	// in already, which it returns to by itself. Any other is a signal.
	case int(ws)>>16 == unix.PTRACE_EVENT_STOP:
		return standsStill, 0
	}
	return standsStill, ws.StopSignal()
}

// getRegisterSet reads a register set of a stopped thread into b, and returns how long it is.
func getRegisterSet(tid int, kind elf.NType, b []byte) (int, error) {
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_GETREGSET, uintptr(tid), uintptr(kind), uintptr(unsafe.Pointer(&iov)), 0, 0)
	if errno != 0 {
		return 0, errno
	}
	return int(min(uint64(iov.Len), uint64(len(b)))), nil
}
