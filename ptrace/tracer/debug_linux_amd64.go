package tracer

import (
	"os"
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// Constants of debug registers. debugOffset is the offset of u_debugreg in struct user (sys/user.h). Bits 0, 2, 4 and 6 of DR7 enable the registers
// for one thread; all other bits are 0 for instruction breakpoints (Intel, "Debug Registers").
const (
	debugOffset  = 848
	debugControl = 7
	debugOn      = 0x55
)

func pokeDebug(tid, n int, v uint64) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_POKEUSR, uintptr(tid), uintptr(debugOffset+8*n), uintptr(v), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

func peekDebug(tid, n int) (v uint64, err error) {
	err = ptraceAt(unix.PTRACE_PEEKUSR, tid, uintptr(debugOffset+8*n), unsafe.Pointer(&v))
	return v, err
}

// control returns the value of DR7 that enables the registers in use.
func (d *debugRegisters) control() (v uint64) {
	for n, addr := range d {
		if addr != 0 {
			v |= 1 << (2 * n)
		}
	}
	return v
}

// setDebug sets the debug registers of a stopped thread. If it returns an error, the thread has no breakpoints in them.
func (t *thread) setDebug(want debugRegisters) error {
	if t.left {
		if err := t.clearDebug(func(uint64) bool { return true }); err != nil {
			return err
		}
		t.left, t.debug = false, debugRegisters{}
	}
	have := t.debug
	if have == want {
		return nil
	}
	if have == (debugRegisters{}) {
		if err := t.freeDebug(); err != nil {
			return err
		}
	}
	for n, addr := range want {
		if addr == 0 || addr == have[n] {
			continue
		}
		if err := pokeDebug(t.tid, n, addr); err != nil {
			_ = pokeDebug(t.tid, debugControl, 0) // an error means that it has ended
			t.debug = debugRegisters{}
			return err
		}
	}
	if err := pokeDebug(t.tid, debugControl, want.control()); err != nil {
		return err
	}
	t.debug = want
	return nil
}

// freeDebug returns an error if a thread's debug registers are already in use. A new thread inherits the control register of its parent, but no
// addresses (copy_thread of Linux's arch/x86/kernel/process.c).
func (t *thread) freeDebug() error {
	control, err := peekDebug(t.tid, debugControl)
	for n := 0; err == nil && n < HardwareBreakpoints; n++ {
		if control>>(2*n)&3 == 0 {
			continue
		}
		var addr uint64
		if addr, err = peekDebug(t.tid, n); addr != 0 {
			return errTaken
		}
	}
	return err
}

// clearDebug disables the debug registers of a stopped thread that hold instruction breakpoints at addresses for which ours returns true.
func (t *thread) clearDebug(ours func(addr uint64) bool) error {
	control, err := peekDebug(t.tid, debugControl)
	if err != nil || control&debugOn == 0 {
		return err
	}
	for n := range HardwareBreakpoints {
		addr, err := peekDebug(t.tid, n)
		if err != nil {
			return err
		}
		if kind := control >> (16 + 4*n) & 0xf; kind == 0 && ours(addr) {
			control &^= 3 << (2 * n)
		}
	}
	return pokeDebug(t.tid, debugControl, control)
}

// probeName is the name of the process that tests whether debug registers work.
const probeName = "rf-probe"

func init() {
	if len(os.Args) > 0 && os.Args[0] == probeName {
		os.Exit(0)
	}
}

// DebugFires reports whether breakpoints in debug registers are hit on this machine. The processors of some virtual machines accept and return the
// registers, but do not stop at any breakpoint in them (seen: Firecracker on AMD's family 26). DebugFires tests this once, at the first instruction
// of another process of this program.
var DebugFires = sync.OnceValue(func() bool {
	runtime.LockOSThread() // this thread traces the process
	defer runtime.UnlockOSThread()
	pid, err := syscall.ForkExec("/proc/self/exe", []string{probeName}, &syscall.ProcAttr{Sys: &syscall.SysProcAttr{Ptrace: true}})
	if err != nil {
		return false
	}
	stops := func() bool {
		var ws unix.WaitStatus
		_, err := wait(pid, &ws, unix.WALL)
		return err == nil && ws.Stopped() && ws.StopSignal() == unix.SIGTRAP
	}
	var regs unix.PtraceRegs
	fires := stops() && unix.PtraceGetRegs(pid, &regs) == nil && pokeDebug(pid, 0, regs.Rip) == nil && pokeDebug(pid, debugControl, 1) == nil &&
		unix.PtraceCont(pid, 0) == nil && stops()
	_ = unix.Kill(pid, unix.SIGKILL) // an error means that it has ended
	var ws unix.WaitStatus
	for {
		if tid, err := wait(pid, &ws, unix.WALL); err != nil || tid == pid && (ws.Exited() || ws.Signaled()) {
			return fires
		}
	}
})
