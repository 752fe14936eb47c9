package tracer

const hasTables = true

// General holds the general registers in the kernel's format: struct user_pt_regs (asm/ptrace.h).
type General struct {
	X              [31]uint64
	SP, PC, PState uint64
}

// Code is the code that a breakpoint instruction replaces: one instruction, which is aligned to its size.
type Code [4]byte

// Trap is the breakpoint instruction: brk #0.
var Trap = Code{0x00, 0x00, 0x20, 0xd4}

// HardwareBreakpoints is 0: the tracer does not use the breakpoint registers of arm64 (NT_ARM_HW_BREAK), since Linux does not let a thread pass one
// of them.
const HardwareBreakpoints = 0
