package tracer

const hasTables = true

// General are the general registers as the kernel hands them out: struct user_pt_regs (asm/ptrace.h).
type General struct {
	X              [31]uint64
	SP, PC, PState uint64
}

// Code is as much of the code as a breakpoint takes: one instruction, which lies at a multiple of its size.
type Code [4]byte

// Trap is the breakpoint instruction: brk #0.
var Trap = Code{0x00, 0x00, 0x20, 0xd4}

// HardwareBreakpoints is 0: those of arm64 (NT_ARM_HW_BREAK) are not used. Linux does not let a thread pass one by itself there.
const HardwareBreakpoints = 0
