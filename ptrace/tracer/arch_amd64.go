package tracer

const hasTables = true

// General holds the general registers in the kernel's format: struct user_regs_struct (sys/user.h).
type General struct {
	R15, R14, R13, R12, Rbp, Rbx, R11, R10, R9, R8, Rax, Rcx, Rdx, Rsi, Rdi,
	OrigRax, Rip, Cs, Eflags, Rsp, Ss, FSBase, GSBase, Ds, Es, Fs, Gs uint64
}

// Code is the code that a breakpoint instruction replaces.
type Code [1]byte

// Trap is the breakpoint instruction: int3.
var Trap = Code{0xcc}

// HardwareBreakpoints is the number of breakpoints that debug registers can hold for a thread.
const HardwareBreakpoints = 4
