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

// thread is one thread that is traced.
type thread struct {
	tid     int
	guest   bool // of another process, which has the target's memory until it execs (vfork(2))
	running bool
	group   bool // it is in group-stop, and is to stay there (PTRACE_LISTEN)
	// late means that it did not stop when it was told to: it sleeps uninterruptibly in the kernel, as the parent of a vfork does. It runs no code
	// of its own there.
	late bool
	// report is its stop while all were being stopped, to be handled when they resume.
	report    unix.WaitStatus
	hasReport bool
	rewound   bool        // it ran into a breakpoint, and was moved back before it when that was collected
	signal    unix.Signal // to be delivered when it resumes
	at        *breakpoint // where it is and which it must step over when it resumes
	again     *place      // a breakpoint to which it comes back without a new hit
	raised    *General    // its registers there, where the instruction raised a signal
	rejoin    bool        // it was taken out of a group-stop to run an instruction, and is to go back to it
	put       putOff
	stepping  bool           // it was last resumed for one instruction
	debug     debugRegisters // as they are set
	ending    bool           // it runs no code of its own any more
	passes    uint64         // counted hits that are not reported, before the next one is
	vforks    bool           // it waits for its child of vfork, where nothing reaches it, and has no debug registers set meanwhile
	backs     []place        // where code outside returns to that it called while it ran alone, the latest last
	fault     place          // where code inside raised the signal whose handler runs, or none
	handling  bool           // as [AloneRun].Handling
}

// place is a pc with a stack pointer.
type place struct{ pc, sp uint64 }

// comesBack reports whether a thread that ran into a breakpoint does so for the instruction which it had begun there. One that raised a
// signal is begun anew with the registers as they were, unless the signal's handler went elsewhere.
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

// otherSets are the register sets that come besides the general ones, that of vectors first.
var otherSets = regset.Others(runtime.GOARCH)

// getOthers reads them; those are nil that the kernel does not give.
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
	PID, UID           uint32 // of the sender, if it was sent
	_                  [26]int32
}

// Codes of SIGTRAP and of signals that the thread's own instructions raised (sigaction(2)).
const (
	trapTrace     = 2 // by a single step
	trapHardware  = 4 // by a debug register
	trapAtHandler = 5 // by a single step that entered a signal handler: no siginfo, but the signal's number
)

// Codes of signals that a process sent (sigaction(2)): by kill(2), sigqueue(3) or pthread_sigqueue(3), and tgkill(2).
const (
	siUser  = 0
	siQueue = -1
	siTkill = -6

	siKernel = 0x80 // an instruction raised it, for which the kernel has no address
)

func getSigInfo(tid int) (info sigInfo, err error) {
	err = ptraceAt(unix.PTRACE_GETSIGINFO, tid, 0, unsafe.Pointer(&info))
	return info, err
}

func setSigInfo(tid int, info *sigInfo) error {
	return ptraceAt(unix.PTRACE_SETSIGINFO, tid, 0, unsafe.Pointer(info))
}

// stepped reports whether a SIGTRAP is only the end of a step.
func (t *thread) stepped(info *sigInfo) bool {
	return t.stepping && info.Signo == int32(unix.SIGTRAP) && (info.Code == trapTrace || info.Code == trapAtHandler || info.steppedCall())
}

// sigInfo returns the kernel's description of the signal at which a thread is stopped. A SIGTRAP without a reason, if a debug register holds the
// next instruction, is attributed to that register, and treated as the kernel treats those with a reason: the thread may pass.
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

// synchronous reports whether the instruction that was just run raised the signal.
func synchronous(info *sigInfo) bool {
	switch unix.Signal(info.Signo) {
	case unix.SIGSEGV, unix.SIGBUS, unix.SIGILL, unix.SIGFPE, unix.SIGTRAP, unix.SIGSYS:
		return info.Code > 0
	}
	return false
}

// trapPending reports whether a thread has a SIGTRAP that it has not reported yet: it ran into a breakpoint and was
// stopped before the signal was looked at.
func trapPending(tid int) bool {
	pending, err := strconv.ParseUint(system.StatusField(tid, "SigPnd"), 16, 64)
	return err == nil && pending>>(unix.SIGTRAP-1)&1 != 0
}

// queued reports whether there are signals that a thread, or its process, has not been given yet, or may be.
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

// pending are the signals that a thread has not been given yet, its own and those of its process.
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

// killed reports whether a thread that was stopped has been killed since. It may be in its exit then, where it still has registers and memory, but
// code written there no longer runs.
func (t *thread) killed() bool {
	info, err := getSigInfo(t.tid) // which a group-stop does not have (EINVAL, ptrace(2))
	return err == unix.ESRCH || err == nil && info.Code == int32(unix.SIGTRAP)|unix.PTRACE_EVENT_EXIT<<8
}

// ended reports whether a thread is gone, or about to be.
func (t *thread) ended() bool {
	return t.ending || system.Ended(t.tid, t.tid)
}

// rseq returns the area that a thread has registered by rseq(2), in which the kernel records the processor that it runs on; it is empty if there is
// none, or if the kernel does not report it (before 5.13).
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

// onProcessor returns how long a thread has run (proc(5), schedstat); if the kernel does not report it, it is the time of day, an upper bound.
func onProcessor(tid int) time.Duration {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/schedstat", tid, tid))
	first, _, _ := bytes.Cut(text, []byte(" "))
	if ns, bad := strconv.ParseInt(string(first), 10, 64); err == nil && bad == nil && ns > 0 {
		return time.Duration(ns)
	}
	return time.Duration(time.Now().UnixNano())
}
