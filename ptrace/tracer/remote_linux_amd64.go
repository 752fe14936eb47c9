package tracer

import "golang.org/x/sys/unix"

// syscallCode is the system call instruction: syscall.
var syscallCode = []byte{0x0f, 0x05}

// seekStep is the alignment of instructions.
const seekStep = 1

// setCall sets registers so that the next instruction is the system call instruction at an address. If the tracer is killed before it restores the
// registers, the code after the call has no valid stack pointer and crashes, so that it cannot compute a wrong result.
func (g *General) setCall(at, number uint64, args [6]uint64) {
	g.Rip, g.Rsp, g.Rax, g.OrigRax = at, 0, number, ^uint64(0)
	g.Rdi, g.Rsi, g.Rdx, g.R10, g.R8, g.R9 = args[0], args[1], args[2], args[3], args[4], args[5]
}

// called returns the result of the system call whose instruction is at an address. ok is false if the thread has not returned from it.
func (g *General) called(at uint64) (result uint64, ok bool) {
	return g.Rax, g.Rip == at+uint64(len(syscallCode))
}

const sysSigaction = unix.SYS_RT_SIGACTION

// keepCall does nothing, because on x86-64 the general registers contain the number of the system call.
func keepCall(int) (restore func()) { return func() {} }
