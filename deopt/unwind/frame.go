package unwind

import (
	"fmt"

	"example.com/reframe/internal/machine"
)

// Rule names how a frame was found.
type Rule string

// The rules. All but the first name how the frame before was unwound.
const (
	FromRegisters    Rule = "registers"     // frame 0: the thread's own registers
	FromCFI          Rule = "cfi"           // by call frame information
	FromTrampoline   Rule = "signal frame"  // it is a signal trampoline without CFI: by what the kernel saved
	FromCode         Rule = "code"          // by reading the instructions of its function
	FromStackSize    Rule = "stack size"    // by the size that its stack map gives for its frame
	FromFramePointer Rule = "frame pointer" // by its frame pointer
	FromBackChain    Rule = "back chain"    // by the link at its stack pointer
	FromScan         Rule = "scan"          // by the first word on its stack that is a return address
)

// means returns a phrase for the way in which a frame was left.
func (r Rule) means() string {
	switch r {
	case FromCFI:
		return "its CFI"
	case FromCode:
		return "its instructions"
	case FromStackSize:
		return "the size of its frame"
	case FromScan:
		return "a scan of its stack"
	}
	return "its " + string(r)
}

// Frame is a physical frame: one activation on the machine stack.
type Frame struct {
	Index int // 0 is the innermost
	PC    machine.Addr

	// CFA is the canonical frame address: the value of the stack pointer just before the call that made this frame. It is known once the frame
	// itself was unwound; otherwise NoCFA holds the reason, and CFA is invalid.
	CFA   machine.Addr
	NoCFA string

	// Registers holds the registers as the function of this frame has them at PC. A register that the inner frames did not preserve is unavailable,
	// with the reason.
	Registers *machine.Registers

	Rule Rule // how this frame was found

	// Guess is the reason why this frame may not be the caller of the one before, or why a frame may be missing between the two; "" if there is no
	// doubt.
	Guess string

	// Skipped is the function that this frame called, where that is not the one of the frame
	// before: it left by a jump (a tail call), and its frame is missing between the two.
	Skipped machine.Addr

	// Popped is how many bytes of arguments the function that has just returned to PC popped off the stack.
	Popped uint64

	// Return means that PC is a return address: the call is before it, and may be the last instruction of its function. It is false for frame 0 and
	// for the frame that a signal interrupted.
	Return bool

	// Overwritten is set if PC is the return address of a call that a runtime has written over the function's code.
	Overwritten *Overwritten

	// ambiguous is set if jumps that were written into functions may have led to f, and the stack does not decide.
	ambiguous bool
	undecided string // why it cannot be unwound: its pc may be in one of several functions

	// Signal means that this is the frame of a signal trampoline, which the kernel made; the next frame is the interrupted one.
	Signal bool

	// FDE is the range that the FDE which covers PC describes; zero for none.
	FDE machine.Range
	// Source names the image that holds the code, or is "".
	Source string

	// jumped is set if PC may be in code that was entered by a jump out of another function, and the stack does not show that.
	jumped bool

	// contested is set with jumped where the return address of a call that leads there as well is on the stack.
	contested bool
	switched  bool // it is on another stack than its function was

	code  *Code
	left  *step    // to the next frame; nil of the last
	tried []string // what gave nothing before that
}

// End is the reason why a walk ended.
type End struct {
	Complete bool   // the outermost frame was reached
	Reason   string // starts with "cut short: " if it was not
}

func outermost(format string, args ...any) *End {
	return &End{Complete: true, Reason: fmt.Sprintf(format, args...)}
}

func cutShort(format string, args ...any) *End {
	return &End{Reason: "cut short: " + fmt.Sprintf(format, args...)}
}

// Undecided reports whether the frame may be in code to which it came by a jump that was written into another function, where the stack does
// not show that.
func (f *Frame) Undecided() bool { return f.jumped }

// lookup is the address to look for in tables of code: inside the call for a
// return address, which may be the first byte past its function.
func (f *Frame) lookup() machine.Addr {
	if f.Overwritten != nil {
		return f.Overwritten.At
	}
	if f.Return {
		return f.PC - 1
	}
	return f.PC
}
