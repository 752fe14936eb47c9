package unwind

import (
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
)

// prove is apply for code without unwind information. The row is an opinion there, and
// is believed where the stack agrees: the CFA lies above what is known of the stack, and what
// would be the return address comes after a call, which alone puts one there.
func (w *walk) prove(f *Frame, s *step) (caller, *End, error) {
	cfa, err := w.cfa(f.Registers, s.row.CFA)
	if err != nil {
		return caller{}, nil, fmt.Errorf("the CFA: %w", err)
	}
	if low, known := w.lowest(f); known && cfa <= low && !s.switched {
		return caller{}, nil, fmt.Errorf("its CFA %v is not above %v, where its stack starts", cfa, low)
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
	if pc == 0 && s.rule == FromCode && !f.code.NoneKept && w.goesOn(f, w.caller(f, s, pc).regs) {
		return caller{}, nil, errors.New("its return address would be zero, and the stack goes on above it")
	}
	if pc != 0 && s.rule == FromCode && w.Arch == machine.ARM64 && !w.arm64MayHaveCalled(pc, f) {
		return caller{}, nil, fmt.Errorf("the call before %v, which would be its return address, is of another function", pc)
	}
	if s.switched && pc != 0 {
		if how, _ := w.fits(pc, f); how == fitsNot {
			return caller{}, nil, fmt.Errorf("the call before %v, which would be its return address, is of another function", pc)
		}
		if !w.leaveStack(cfa) {
			return caller{}, nil, fmt.Errorf("it leaves its stack for the CFA %v for the second time: a loop", cfa)
		}
	}
	if pc != 0 && s.guess != "" && s.rule != FromScan && !s.jumped {
		if how, _ := w.fits(pc, f); how == fitsNot {
			return caller{}, nil, fmt.Errorf("the call before %v, which would be its return address, is of another function", pc)
		}
	}
	f.NoCFA, w.floor = "", cfa
	if pc == 0 {
		return caller{}, w.returnsToZero(f), nil
	}
	return w.caller(f, s, pc), nil, nil
}

// returnsToZero is the end of a walk at a frame whose return address is zero: that of the
// outermost is. Where a frame was found by a guess, what follows may be zero for any reason.
func (w *walk) returnsToZero(f *Frame) *End {
	scanned := -1
	for i := range w.frames {
		if w.frames[i].Rule == FromScan {
			scanned = w.frames[i].Index
			break
		}
	}
	for _, o := range w.omitted {
		if o.scanned >= 0 && (scanned < 0 || o.scanned < scanned) {
			scanned = o.scanned
		}
	}
	if scanned >= 0 {
		return cutShort("frame #%d: its return address is zero, and frame #%d was found by a guess", f.Index, scanned)
	}
	return outermost("frame #%d is the outermost: its return address is zero", f.Index)
}

// lowest is an address below which no part of the frame f lies that its CFA could be.
func (w *walk) lowest(f *Frame) (machine.Addr, bool) {
	sp, err := f.Registers.Addr(w.Arch.SP)
	if err == nil && w.Arch.Link == w.Arch.PC {
		return sp, true // the return address is on the stack, at sp or above
	}
	if err == nil && sp > w.floor {
		return sp - 1, true // a frame may have no size at all
	}
	return w.floor, f.Index > 0
}

// uncalled is a return address that no call put there.
type uncalled struct{ pc machine.Addr }

func (e *uncalled) Error() string {
	return fmt.Sprintf("no call ends at %v, which would be its return address", e.pc)
}

// called returns pc without a signature if it may be a return address: if it is zero, which marks the outermost frame, or is after a call, or is
// the address to which the kernel makes a signal handler return, or is in a function made for it, or need not be any of these. Code that cannot be
// read does not exclude pc.
func (w *walk) called(pc machine.Addr, jumped bool) (machine.Addr, error) {
	if pc == 0 {
		return 0, nil
	}
	pc = w.unsigned(pc)
	if !w.Executable(pc - 1) {
		return 0, fmt.Errorf("%v, which would be its return address, is not in executable memory", pc)
	}
	if jumped {
		return pc, nil
	}
	if called, err := w.callEndsAt(pc); err == nil && !called && !w.givesBack(pc) && !w.looksCalled(pc) {
		return 0, &uncalled{pc}
	}
	return pc, nil
}

// looksCalled reports whether pc is the second byte of a function that begins with a nop of one byte.
// Runtimes let the outermost function of a stack return there, so that an unwinder which looks
// a byte before a return address finds the function: Go's runtime.goexit is one.
func (w *walk) looksCalled(pc machine.Addr) bool {
	code := w.Finder.Code(pc - 1)
	if w.Arch != machine.AMD64 || code.Functions == nil {
		return false
	}
	var b [1]byte
	start, _ := code.Functions.Function(pc - 1)
	return start == pc-1 && w.Memory.ReadMemory(b[:], start) == nil && b[0] == nop
}

const nop = 0x90
