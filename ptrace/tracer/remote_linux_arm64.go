package tracer

import "golang.org/x/sys/unix"

// syscallCode is the system call instruction: svc #0.
var syscallCode = []byte{0x01, 0x00, 0x00, 0xd4}

// seekStep is the alignment of instructions.
const seekStep = 4

// setCall sets registers so that the next instruction is the system call instruction at an address. If the tracer is killed before it restores the
// registers, the code after the call has no valid stack pointer and crashes, so that it cannot compute a wrong result.
func (g *General) setCall(at, number uint64, args [6]uint64) {
	g.PC, g.SP, g.X[8] = at, 0, number
	copy(g.X[:], args[:])
}

// called returns the result of that system call. ok is false if the thread has not returned from it.
func (g *General) called(at uint64) (result uint64, ok bool) {
	return g.X[0], g.PC == at+uint64(len(syscallCode))
}

const sysSigaction = unix.SYS_RT_SIGACTION

// keepCall returns a function that restores the number of the system call from which a thread is about to return. The kernel uses the number to
// restart the call.
func keepCall(tid int) (restore func()) {
	const systemCall = 0x404 // NT_ARM_SYSTEM_CALL, linux/elf.h
	set, err := getSet(tid, systemCall)
	return func() {
		if err == nil && len(set) > 0 {
			_ = setSet(tid, systemCall, set)
		}
	}
}
