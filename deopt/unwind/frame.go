package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// Rule is the method by which a frame was found.
type Rule string

// The rules. Each except FromRegisters names the method by which the inner frame was unwound.
const (
	FromRegisters    Rule = "registers"     // frame 0: the thread's own registers
	FromCFI          Rule = "cfi"           // call frame information
	FromTrampoline   Rule = "signal frame"  // registers that the kernel saved for a signal trampoline without CFI
	FromCode         Rule = "code"          // instructions of the function
	FromStackSize    Rule = "stack size"    // frame size from the function's stack map
	FromFramePointer Rule = "frame pointer" // frame pointer
	FromBackChain    Rule = "back chain"    // link at the stack pointer
	FromScan         Rule = "scan"          // first word on the stack that is a return address
)

// means returns a phrase for the information by which a frame was unwound.
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

	// CFA is the canonical frame address: the value of the stack pointer just before the call that made this frame. It is valid only if NoCFA is "".
	// NoCFA is the reason why the CFA is unknown; it becomes known when the frame itself is unwound.
	CFA   machine.Addr
	NoCFA string
	noCFA error // NoCFA as an error that holds its addresses; nil if NoCFA has no addresses

	// Registers holds the registers in this frame at PC. A register that the inner frames did not preserve is unavailable, with the reason.
	Registers *machine.Registers

	Rule Rule // the rule that found this frame

	// Guess is the reason why this frame may not be the caller of the one before, or why a frame may be missing between the two; "" if both are
	// certain.
	Guess string
	// GuessKind is Guess without numbers and addresses: it is equal for guesses of one kind.
	GuessKind string
	guess     error // Guess as an error that holds its addresses; nil if Guess has no addresses

	// Skipped is the function that this frame called, if the inner frame belongs to another function. The called function made a tail call, so
	// its frame is missing between the two.
	Skipped machine.Addr

	// Popped is the number of bytes of arguments that the function that has just returned to PC popped off the stack.
	Popped uint64

	// Return means that PC is a return address. The call is before PC and may be the last instruction of its function. Return is false for frame 0
	// and for a frame that a signal interrupted.
	Return bool

	// Overwritten is set if PC is the return address of a call that a runtime wrote over the function's code.
	Overwritten *Overwritten

	// ambiguous is set if jumps that a runtime wrote into functions may have led to f, and the stack does not show whether one did.
	ambiguous bool
	undecided error // error if pc may belong to one of several functions, so that the frame cannot be unwound

	// Signal means that this is the frame of a signal trampoline, made by the kernel. The next frame is the interrupted one.
	Signal bool

	// FDE is the range of the FDE that covers PC; zero for none.
	FDE machine.Range
	// Source is the name of the image that contains the code, or "".
	Source string

	// jumped is set if another function may have jumped to the code at PC, and the stack does not show whether it did.
	jumped bool

	// contested is set together with jumped if the stack also has the return address of a call that leads to the code.
	contested bool
	switched  bool // the code has switched stacks since it left the function

	code  *Code
	left  *step   // step to the next frame; nil for the last frame
	tried []error // failed attempts before that step
}

// End is the reason why a walk ended.
type End struct {
	Complete bool       // the outermost frame was reached
	Reason   string     // starts with "cut short: " if the outermost frame was not reached
	Code     frame.Code // the kind of the reason if the outermost frame was not reached

	outermost string // why the last frame is the outermost
	why       error  // Reason as an error that holds its addresses; nil if Reason has no addresses
}

// outermost returns the end of a walk at its outermost frame.
func outermost(frame int, why string) *End {
	return &End{Complete: true, Reason: fmt.Sprintf("frame #%d is the outermost: %s", frame, why), outermost: why}
}

// at returns the same end for a stack whose last frame has another number.
func (e *End) at(frame int) End {
	if e.outermost == "" {
		return *e
	}
	return *outermost(frame, e.outermost)
}

// cutShort returns the end of a walk at a frame whose caller cannot be found. Its code is that of the innermost reason in the error.
func cutShort(why error) *End {
	e := &End{Reason: "cut short: " + why.Error(), why: frame.Errorf("cut short: %w", why)}
	for ; why != nil; why = errors.Unwrap(why) {
		if r, ok := why.(interface{ ReasonCode() frame.Code }); ok {
			e.Code = r.ReasonCode()
		}
	}
	return e
}

// Why returns the reason as an error in which [frame.TextWith] can replace the addresses.
func (e *End) Why() error {
	if e.why == nil {
		return errors.New(e.Reason)
	}
	return e.why
}

// because adds a second reason, with its code.
func (e *End) because(why error) *End {
	e.Reason, e.Code, e.why = e.Reason+"; "+why.Error(), frame.CodeOf(why), frame.Errorf("%w; %v", e.Why(), why)
	return e
}

// WhyGuess returns Guess as an error in which [frame.TextWith] can replace the addresses; nil if the frame is not a guess.
func (f *Frame) WhyGuess() error { return reasonOf(f.Guess, f.guess) }

// WhyNoCFA does the same as WhyGuess for NoCFA.
func (f *Frame) WhyNoCFA() error { return reasonOf(f.NoCFA, f.noCFA) }

// reasonOf returns why, or an error with the text if why is nil. It returns nil for an empty text.
func reasonOf(text string, why error) error {
	switch {
	case text == "":
		return nil
	case why == nil:
		return errors.New(text)
	}
	return why
}

// Undecided reports whether a jump that was written into another function may have led to the code of the frame, and the stack does not show whether
// it did.
func (f *Frame) Undecided() bool { return f.jumped }

// lookup returns the address to look up in tables of code. For a return address it is an address inside the call, because the return address may
// be the first byte after the function.
func (f *Frame) lookup() machine.Addr {
	if f.Overwritten != nil {
		return f.Overwritten.At
	}
	if f.Return {
		return f.PC - 1
	}
	return f.PC
}
