package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// prove finds the caller of f by a row, as apply does, for code without unwind information. The row may be wrong, so prove checks it against the
// stack. The CFA must be above the known part of the stack, and the return address must follow a call.
func (w *walk) prove(f *Frame, s *step) (caller, *End, error) {
	cfa, err := w.cfa(f.Registers, s.row.CFA)
	if err != nil {
		return caller{}, nil, frame.Errorf("the CFA: %w", err)
	}
	if low, known := w.lowest(f, w.Arch); known && cfa <= low && !s.switched {
		return caller{}, nil, frame.Errorf("its CFA %v is not above %v, where its stack starts", cfa, low)
	}
	f.CFA = cfa
	pc, err := w.returnAddress(f, s.row)
	if err != nil {
		return caller{}, nil, err
	}
	if pc, err = w.called(pc, s.jumped); err != nil {
		return caller{}, nil, err
	}
	if pc == 0 && w.Arch.Link == w.Arch.PC && (s.guess != "" || s.rule == FromStackSize) {
		return caller{}, nil, errors.New("its return address would be zero, as most of memory is")
	}
	if pc == 0 && s.rule == FromCode && !f.code.NoneKept && w.stackContinues(f, w.caller(f, s, pc).regs) {
		return caller{}, nil, errors.New("its return address would be zero, and the stack continues above it")
	}
	if pc != 0 && s.rule == FromCode && w.Arch == machine.ARM64 && !w.arm64MayHaveCalled(pc, f) {
		return caller{}, nil, frame.Errorf("the call before %v, which would be its return address, is of another function", pc)
	}
	if s.switched && pc != 0 {
		if how, _ := w.fits(pc, f); how == fitsNot {
			return caller{}, nil, frame.Errorf("the call before %v, which would be its return address, is of another function", pc)
		}
		if !w.leaveStack(cfa) {
			return caller{}, nil, frame.Errorf("it leaves its stack for the CFA %v for the second time: a loop", cfa)
		}
	}
	if pc != 0 && s.guess != "" && s.rule != FromScan && !s.jumped {
		if how, _ := w.fits(pc, f); how == fitsNot {
			return caller{}, nil, frame.Errorf("the call before %v, which would be its return address, is of another function", pc)
		}
	}
	f.NoCFA, w.floor = "", cfa
	if pc == 0 {
		return caller{}, w.returnsToZero(f), nil
	}
	return w.caller(f, s, pc), nil, nil
}

// returnsToZero returns the end of a walk at a frame whose return address is zero, as in the outermost frame. After a frame that was found by a
// scan, a zero word does not mark the outermost frame, so the walk is cut short.
func (w *walk) returnsToZero(f *Frame) *End {
	scanned := w.innermostScanned()
	if scanned >= 0 {
		return cutShort(frame.Because(frame.ReturnToZero, f.Index, scanned))
	}
	return outermost(f.Index, "its return address is zero")
}

// uncalled is the error for a return address that follows no call.
type uncalled struct{ pc machine.Addr }

func (e *uncalled) Error() string {
	return fmt.Sprintf("no call ends at %v, which would be its return address", e.pc)
}

// called returns pc without its signature if it may be a return address, and an error otherwise. It may be one if it is zero (the outermost
// frame), follows a call, is the start of a signal trampoline, or is the base of a stack. jumped allows any executable address. Code that cannot
// be read does not exclude pc.
func (u *codeReader) called(pc machine.Addr, jumped bool) (machine.Addr, error) {
	if pc == 0 {
		return 0, nil
	}
	pc = u.unsigned(pc)
	if !u.Executable(pc - 1) {
		return 0, frame.Errorf("%v, which would be its return address, is not in executable memory", pc)
	}
	if jumped {
		return pc, nil
	}
	if called, err := u.callEndsAt(pc); err == nil && !called && !u.isSignalReturn(pc) && !u.isStackBase(pc) {
		return 0, &uncalled{pc}
	}
	return pc, nil
}

// isStackBase reports whether pc is the second byte of a function that begins with a one-byte nop. Runtimes make the outermost function of a stack
// return there, so that an unwinder that looks up the byte before a return address finds the function. Go's runtime.goexit is one.
func (u *codeReader) isStackBase(pc machine.Addr) bool {
	code := u.Finder.Code(pc - 1)
	if u.Arch != machine.AMD64 || code.Functions == nil {
		return false
	}
	var b [1]byte
	start, _ := code.Functions.Function(pc - 1)
	return start == pc-1 && u.Memory.ReadMemory(b[:], start) == nil && b[0] == nop
}

const nop = 0x90
