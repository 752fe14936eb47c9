package unwind

import (
	"fmt"

	"reframe/deopt/machine"
)

// Rule names how a frame was found.
type Rule string

// The rules.
const (
	FromRegisters    Rule = "registers"     // frame 0: the thread's own registers
	FromCFI          Rule = "cfi"           // from the frame before, by call frame information
	FromFramePointer Rule = "frame pointer" // from the frame before, which has no CFI, by its frame pointer
)

// Frame is a physical frame: one activation on the machine stack.
type Frame struct {
	Index int // 0 is the innermost
	PC    machine.Addr

	// CFA is the canonical frame address: the value of the stack pointer just
	// before the call that made this frame. It is known once the frame itself
	// was unwound; where it was not, NoCFA says why, and CFA means nothing.
	CFA   machine.Addr
	NoCFA string

	// Registers are what the function of this frame sees at PC. One that the
	// frames below did not keep is unavailable, with the reason.
	Registers *machine.Registers

	Rule  Rule   // how this frame was found
	Guess string // why a frame may be missing just before this one; "" where nothing says so

	// Return says that PC is a return address: the call is before it, and may
	// be the last instruction of its function. It is false for frame 0 and for
	// the frame that a signal interrupted.
	Return bool

	// Signal says that this is the frame of a signal trampoline, which the
	// kernel made; the next frame is the interrupted one.
	Signal bool

	// The code that the FDE covers which has PC, and the image that has the
	// FDE. Zero and "" where there is none.
	FDEStart, FDEEnd machine.Addr
	Source           string
}

// End says why a walk ended.
type End struct {
	Complete bool   // the outermost frame was reached
	Reason   string // starts with "cut short: " where it was not
}

func outermost(format string, args ...any) *End {
	return &End{Complete: true, Reason: fmt.Sprintf(format, args...)}
}

func cutShort(format string, args ...any) *End {
	return &End{Reason: "cut short: " + fmt.Sprintf(format, args...)}
}

// lookup is the address to look for in tables of code: inside the call for a
// return address, which may be the first byte past its function.
func (f *Frame) lookup() machine.Addr {
	if f.Return {
		return f.PC - 1
	}
	return f.PC
}
