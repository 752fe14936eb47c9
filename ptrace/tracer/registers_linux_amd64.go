package tracer

import (
	"encoding/binary"
	"unsafe"

	"golang.org/x/sys/unix"
)

// trapCode is the code of SIGTRAP for a breakpoint instruction: SI_KERNEL (sigaction(2)).
const trapCode = 0x80

// steppedCall reports whether SIGTRAP reports a single step that ended with a system call: TRAP_BRKPT.
func (info *sigInfo) steppedCall() bool { return info.Code == 1 }

// noReason reports whether the kernel found no reason for a debug exception in DR6: TRAP_BRKPT (get_si_code of Linux's arch/x86/include/asm/traps.h).
// This happens after INT1, an instruction of the program's own. It also happens if a hypervisor loses the bit of a breakpoint, as some do once in a
// few thousand hits.
func (info *sigInfo) noReason() bool { return info.Code == 1 }

func getRegs(tid int, r *General) error {
	return ptraceAt(unix.PTRACE_GETREGS, tid, 0, unsafe.Pointer(r))
}

func setRegs(tid int, r *General) error {
	return ptraceAt(unix.PTRACE_SETREGS, tid, 0, unsafe.Pointer(r))
}

func (g *General) pc() uint64 { return g.Rip }
func (g *General) sp() uint64 { return g.Rsp }

// trapped returns the address of the breakpoint instruction after which a thread has stopped.
func (g *General) trapped() uint64 { return g.Rip - 1 }

// rewind moves the thread before the breakpoint instruction. It also sets RF, which tells the SIGTRAP handler (trapcode.go) that the thread was
// moved. Without RF, the handler would move the thread once more if another breakpoint is just before this one.
func (g *General) rewind() {
	g.Rip = g.trapped()
	g.pass()
}

// pass sets RF, with which the thread executes its current instruction despite a debug register (Intel, "Instruction-Breakpoint Exception
// Condition").
func (g *General) pass() { g.Eflags |= resumeFlag }

// arrive clears RF, which pass or rewind has set.
func (g *General) arrive() { g.Eflags &^= resumeFlag }

const resumeFlag = 1 << 16

// resembles reports whether all registers are equal, except the flags and orig_rax, which the processor and the kernel change.
func (g General) resembles(other General) bool {
	other.Eflags = g.Eflags // RF, TF
	other.OrigRax = g.OrigRax
	return g == other
}

// setGeneral sets the general registers in such a way that the kernel does not restart a system call.
func setGeneral(tid int, g General) error {
	g.OrigRax = ^uint64(0)
	return setRegs(tid, &g)
}

// pushedByCall is the number of bytes that a call pushes: the return address (Intel SDM, volume 2, CALL).
const pushedByCall = 8

// calledFrom returns the return address of a thread that has just gone from one place to another, and the stack pointer after the return. called
// reports whether a call led there. If not, back is not valid, because the top of the stack may hold any number.
func (s *server) calledFrom(g *General, from place) (back place, called bool) {
	const longest = 15 // maximum size of an instruction
	var word [8]byte
	if n, err := s.memory.read(word[:], g.Rsp); err != nil || n < len(word) {
		return place{}, false
	}
	back = place{binary.LittleEndian.Uint64(word[:]), from.sp}
	return back, g.Rsp == from.sp-8 && back.pc > from.pc && back.pc-from.pc <= longest
}
