package tracer

const hasTables = true

// General are the general registers as the kernel hands them out: struct user_regs_struct (sys/user.h).
type General struct {
	R15, R14, R13, R12, Rbp, Rbx, R11, R10, R9, R8, Rax, Rcx, Rdx, Rsi, Rdi,
	OrigRax, Rip, Cs, Eflags, Rsp, Ss, FSBase, GSBase, Ds, Es, Fs, Gs uint64
}

// Code is as much of the code as a breakpoint takes.
type Code [1]byte

// Trap is the breakpoint instruction: int3.
var Trap = Code{0xcc}

// HardwareBreakpoints is the number of breakpoints that the processor holds for a thread.
const HardwareBreakpoints = 4
