//go:build linux

package tracer

import (
	"math"
	"runtime"
	"strings"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/system"
)

// capabilities is a set of capabilities, with one bit for each (capabilities(7)).
type capabilities uint64

const (
	capDACOverride capabilities = 1 << unix.CAP_DAC_OVERRIDE
	capKill        capabilities = 1 << unix.CAP_KILL
	capSysPtrace   capabilities = 1 << unix.CAP_SYS_PTRACE
	capSysAdmin    capabilities = 1 << unix.CAP_SYS_ADMIN
)

// needed returns the capabilities that the tracer needs while it traces its target. CAP_DAC_OVERRIDE: a target may change its user by execve(2),
// after which its memory file is opened again. CAP_KILL: to kill a program that has changed its user. CAP_SYS_ADMIN: to suspend a seccomp filter of
// the target.
func (s *server) needed() capabilities {
	need := capDACOverride | capSysPtrace
	if s.bound {
		need |= capKill
	}
	for tid := range s.threads {
		if filtered(tid) {
			need |= capSysAdmin
		}
	}
	return need
}

// filtered reports whether a seccomp filter applies to a thread.
func filtered(tid int) bool {
	mode := strings.TrimSpace(system.StatusField(tid, "Seccomp"))
	return mode != "0" && mode != ""
}

// dropPrivileges drops all capabilities except keep in all threads of this process, and sets no_new_privs. Programs that this process has already
// started keep theirs. Errors are ignored, because the tracer also works with more capabilities.
func dropPrivileges(keep capabilities) {
	header := unix.CapUserHeader{Version: unix.LINUX_CAPABILITY_VERSION_3}
	var data [2]unix.CapUserData
	if unix.Capget(&header, &data[0]) != nil {
		return
	}
	for n := range data {
		kept := uint32(keep >> (32 * n) & math.MaxUint32)
		data[n].Effective &= kept
		data[n].Permitted &= kept
		data[n].Inheritable = 0
	}
	inAll(unix.SYS_CAPSET, uintptr(unsafe.Pointer(&header)), uintptr(unsafe.Pointer(&data[0])))
	inAll(unix.SYS_PRCTL, unix.PR_SET_NO_NEW_PRIVS, 1)
	runtime.KeepAlive(&header)
	runtime.KeepAlive(&data)
}

// inAll makes a system call in all threads of this process. In a program built with cgo the runtime does not support that, so only this thread, which
// traces, makes the call.
func inAll(number, a, b uintptr) {
	if _, _, errno := syscall.AllThreadsSyscall6(number, a, b, 0, 0, 0, 0); errno == unix.ENOTSUP {
		_, _, _ = unix.RawSyscall6(number, a, b, 0, 0, 0, 0)
	}
}
