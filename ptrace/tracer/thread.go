//go:build linux

package tracer

import (
	"bytes"
	"debug/elf"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"

	"example.com/reframe/ptrace/regset"
	"example.com/reframe/ptrace/system"
)

// thread is a traced thread.
type thread struct {
	tid     int
	guest   bool // a thread of another process that shares the target's memory until its exec (vfork(2))
	running bool
	group   bool // it is in a group-stop, in which it must stay (PTRACE_LISTEN)
	// late means that the thread did not stop when requested: it sleeps uninterruptibly in the kernel, as the parent of a vfork does. Meanwhile it
	// executes none of its own code.
	late bool
	// report is a report of the thread that arrived while all threads were being stopped. It is handled when they resume.
	report    unix.WaitStatus
	hasReport bool
	rewound   bool        // it hit a breakpoint, and collect moved it back before the breakpoint
	signal    unix.Signal // the signal to deliver when it resumes
	at        *breakpoint // the breakpoint at its pc, over which it must be stepped when it resumes
	again     *place      // the position at which it reaches a breakpoint again without a new hit
	raised    *General    // registers at again, if the instruction there raised a signal
	rejoin    bool        // it left a group-stop to execute an instruction, and must return to it
	put       putOff
	stepping  bool           // it was last resumed with PTRACE_SINGLESTEP
	debug     debugRegisters // its current debug registers
	left      bool           // a killed tracer may have left breakpoints in its debug registers
	ending    bool           // it will no longer execute its own code
	passes    uint64         // number of counted hits that it passes without a report
	vforks    bool           // it waits for its child of vfork; ptrace requests fail, and its debug registers are cleared meanwhile
	backs     []place        // return addresses of calls from code inside to code outside while it ran alone, the latest last
	fault     place          // the place inside at which the signal was raised whose handler runs, or the zero place
	handling  bool           // as [SingleThreadRun].Handling
}

// place is the position of a thread: its pc and its stack pointer.
type place struct{ pc, sp uint64 }

// comesBack reports whether a thread at a breakpoint only begins the same instruction again, which is not a new hit. If the instruction raised a
// signal, the registers must be the same as before, because the signal's handler may resume elsewhere.
func (t *thread) comesBack(regs *General) bool {
	at, raised := t.again, t.raised
	t.again, t.raised = nil, nil
	if at == nil || *at != (place{regs.pc(), regs.sp()}) {
		return false
	}
	return raised == nil || raised.resembles(*regs)
}

// ptrace makes a request whose data is a number.
func ptrace(request, tid int, data uintptr) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), 0, data, 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// ptraceAt makes a request whose data is memory of this process.
func ptraceAt(request, tid int, addr uintptr, data unsafe.Pointer) error {
	_, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, uintptr(request), uintptr(tid), addr, uintptr(data), 0, 0)
	if errno != 0 {
		return errno
	}
	return nil
}

// maxSet bounds a register set; an XSAVE area with AMX has 11 KiB.
const maxSet = 1 << 16

// getSet reads a set of registers.
func getSet(tid int, set elf.NType) ([]byte, error) {
	b := make([]byte, maxSet)
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	if err := ptraceAt(unix.PTRACE_GETREGSET, tid, uintptr(set), unsafe.Pointer(&iov)); err != nil {
		return nil, err
	}
	return bytes.Clone(b[:iov.Len]), nil
}

func setSet(tid int, set elf.NType, b []byte) error {
	iov := unix.Iovec{Base: &b[0]}
	iov.SetLen(len(b))
	return ptraceAt(unix.PTRACE_SETREGSET, tid, uintptr(set), unsafe.Pointer(&iov))
}

// otherSets are the register sets besides the general one. The vector set comes first.
var otherSets = regset.Others(runtime.GOARCH)

// getOthers reads the otherSets. A set that the kernel does not provide is nil.
func getOthers(tid int) [][]byte {
	list := make([][]byte, len(otherSets))
	for i, set := range otherSets {
		list[i], _ = getSet(tid, set.Kind)
	}
	return list
}

// sigInfo is the head of the kernel's siginfo_t, with room for all of it.
type sigInfo struct {
	Signo, Errno, Code int32
	_                  int32
	PID, UID           uint32 // sender, for a signal that a process sent
	_                  [26]int32
}

// Codes of SIGTRAP (sigaction(2)).
const (
	trapTrace     = 2 // after a single step
	trapHardware  = 4 // at a debug register
	trapAtHandler = 5 // after a single step that entered a signal handler; the code is the signal's number, without a siginfo
)

// Codes of signals that a process sent (sigaction(2)): by kill(2), sigqueue(3) or pthread_sigqueue(3), and tgkill(2).
const (
	siUser  = 0
	siQueue = -1
	siTkill = -6

	siKernel = 0x80 // an instruction raised it, without an address
)

func getSigInfo(tid int) (info sigInfo, err error) {
	err = ptraceAt(unix.PTRACE_GETSIGINFO, tid, 0, unsafe.Pointer(&info))
	return info, err
}

func setSigInfo(tid int, info *sigInfo) error {
	return ptraceAt(unix.PTRACE_SETSIGINFO, tid, 0, unsafe.Pointer(info))
}

// stepped reports whether a SIGTRAP only reports the end of a single step.
func (t *thread) stepped(info *sigInfo) bool {
	return t.stepping && info.Signo == int32(unix.SIGTRAP) && (info.Code == trapTrace || info.Code == trapAtHandler || info.steppedCall())
}

// sigInfo returns the kernel's description of the signal at which a thread is stopped. If a SIGTRAP has no reason and a debug register contains the
// address of the next instruction, sigInfo attributes it to that register. It then lets the thread pass, as the kernel does for such a trap with a
// reason.
func (t *thread) sigInfo() (sigInfo, error) {
	info, err := getSigInfo(t.tid)
	if err == nil && info.Signo == int32(unix.SIGTRAP) && info.noReason() && !t.stepped(&info) {
		var regs General
		if getRegs(t.tid, &regs) == nil && t.debug.holds(regs.pc()) {
			regs.pass()
			if err := setRegs(t.tid, &regs); err != nil {
				return info, err
			}
			info.Code = trapHardware
		}
	}
	return info, err
}

// synchronous reports whether the thread's last instruction raised the signal.
func synchronous(info *sigInfo) bool {
	switch unix.Signal(info.Signo) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP, unix.SIGSYS:
		return info.Code > 0
	}
	return false
}

// trapPending reports whether a thread has a pending SIGTRAP, because it hit a breakpoint and was stopped before it reported the signal.
func trapPending(tid int) bool {
	pending, err := strconv.ParseUint(system.StatusField(tid, "SigPnd"), 16, 64)
	return err == nil && pending>>(unix.SIGTRAP-1)&1 != 0
}

// queued reports whether a thread or its process has pending signals. It also returns true if that cannot be read.
func queued(tid int) bool {
	var first sigInfo
	for _, queue := range []uint32{0, unix.PTRACE_PEEKSIGINFO_SHARED} {
		args := struct {
			off   uint64
			flags uint32
			count int32
		}{flags: queue, count: 1}
		n, _, errno := unix.RawSyscall6(unix.SYS_PTRACE, unix.PTRACE_PEEKSIGINFO, uintptr(tid), uintptr(unsafe.Pointer(&args)), uintptr(unsafe.Pointer(&first)), 0, 0)
		if errno != 0 || n > 0 {
			return true
		}
	}
	return false
}

// pending returns the mask of the pending signals of a thread and of its process.
func pending(tid int) (mask uint64) {
	for _, field := range []string{"SigPnd", "ShdPnd"} {
		if m, err := strconv.ParseUint(system.StatusField(tid, field), 16, 64); err == nil {
			mask |= m
		}
	}
	return mask
}

// sameMemory reports whether two processes share their memory. known is false if the kernel does not report it.
func sameMemory(a, b int) (same, known bool) {
	const vm = 1 // KCMP_VM, kcmp(2)
	r, _, errno := unix.RawSyscall6(unix.SYS_KCMP, uintptr(a), uintptr(b), vm, 0, 0, 0)
	return r == 0, errno == 0
}

// killed reports whether a stopped thread has been killed since. Such a thread may be exiting. It then still has registers and memory, but no longer
// executes code written there.
func (t *thread) killed() bool {
	info, err := getSigInfo(t.tid) // fails with EINVAL in a group-stop (ptrace(2))
	return err == unix.ESRCH || err == nil && info.Code == int32(unix.SIGTRAP)|unix.PTRACE_EVENT_EXIT<<8
}

// ended reports whether a thread has ended or is about to end.
func (t *thread) ended() bool {
	return t.ending || system.Ended(t.tid, t.tid)
}

// rseq returns the area that a thread has registered by rseq(2), in which the kernel records the thread's processor. It is empty if the thread has
// not registered one, or if the kernel cannot report it (before 5.13).
func rseq(tid int) Range {
	const getConfiguration = 0x420f // PTRACE_GET_RSEQ_CONFIGURATION, linux/ptrace.h
	var c struct {
		pointer         uint64
		size, signature uint32
		flags, pad      uint32
	}
	if ptraceAt(getConfiguration, tid, unsafe.Sizeof(c), unsafe.Pointer(&c)) != nil || c.pointer == 0 {
		return Range{}
	}
	return Range{c.pointer, c.pointer + uint64(c.size)}
}

// onProcessor returns the processor time of a thread (proc(5), schedstat). If the kernel does not report it, the result is the time of day, so that
// differences are upper bounds.
func onProcessor(tid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", tid, tid))
	first, _, _ := bytes.Cut(text, []byte(" "))
	if ns, bad := strconv.ParseInt(string(first), 10, 64); err == nil && bad == nil && ns > 0 {
		return time.Duration(ns)
	}
	return time.Duration(time.Now().UnixNano())
}
