package tracer

import (
	"unsafe"

	"golang.org/x/sys/unix"
)

// trapCode is the code of SIGTRAP for a breakpoint instruction: TRAP_BRKPT (sigaction(2)).
const trapCode = 1

// steppedCall reports whether SIGTRAP reports a single step that ended with a system call: it has no sender (user_single_step_report of Linux's
// include/linux/ptrace.h).
func (info *sigInfo) steppedCall() bool { return info.Code == 0 && info.PID == 0 }

// noReason returns false, because it concerns DR6 of x86-64.
func (info *sigInfo) noReason() bool { return false }

// prStatus is the set of the general registers: NT_PRSTATUS (linux/elf.h).
const prStatus = 1

func getRegs(tid int, r *General) error {
	iov := unix.Iovec{Base: (*byte)(unsafe.Pointer(r)), Len: uint64(unsafe.Sizeof(*r))}
	return ptraceAt(unix.PTRACE_GETREGSET, tid, prStatus, unsafe.Pointer(&iov))
}

func setRegs(tid int, r *General) error {
	return setSet(tid, prStatus, unsafe.Slice((*byte)(unsafe.Pointer(r)), unsafe.Sizeof(*r)))
}

func (g *General) pc() uint64 { return g.PC }
func (g *General) sp() uint64 { return g.SP }

// trapped returns the address of the breakpoint instruction at which a thread has stopped. The pc has not moved past it.
func (g *General) trapped() uint64 { return g.PC }

// rewind does nothing, since the pc is at the breakpoint instruction.
func (g *General) rewind() {}

// pass and arrive do nothing, because debug registers are not used on arm64.
func (g *General) pass()   {}
func (g *General) arrive() {}

// resembles reports whether all registers are equal, except those that the processor and the kernel change.
func (g General) resembles(other General) bool {
	const singleStep = 1 << 21 // PSTATE.SS (Arm ARM, D2.12)
	other.PState = other.PState&^singleStep | g.PState&singleStep
	return g == other
}

// setGeneral sets the general registers in such a way that the kernel does not restart a system call. It also clears the branch type. Otherwise,
// after an indirect branch, the instruction at which the thread resumes would have to be a landing pad (Arm ARM, PSTATE.BTYPE).
func setGeneral(tid int, g General) error {
	const branchType = 3 << 10 // PSTATE.BTYPE
	g.PState &^= branchType
	none := int32(-1)
	const systemCall = 0x404 // NT_ARM_SYSTEM_CALL, linux/elf.h
	if err := setSet(tid, systemCall, unsafe.Slice((*byte)(unsafe.Pointer(&none)), unsafe.Sizeof(none))); err != nil {
		return err
	}
	return setRegs(tid, &g)
}

// pushedByCall is 0: bl leaves the return address in x30 (Arm ARM, BL).
const pushedByCall = 0

// calledFrom returns the return address of a thread that has just gone from one place to another, and the stack pointer after the return. called
// reports whether a call led there, so that the link register holds the return address.
func (s *server) calledFrom(g *General, from place) (back place, called bool) {
	back = place{g.X[30], from.sp}
	return back, g.SP == from.sp && back.pc == from.pc+uint64(len(Code{})) // all instructions have this size
}
