package unwind

import (
	"fmt"

	"reframe/deopt/machine"
)

// prove is apply for code without unwind information. The row is an opinion there, and
// is believed where the stack agrees: the CFA lies above what is known of the stack, and what
// would be the return address comes after a call, which alone puts one there.
func (w *walk) prove(f *Frame, s *step) (caller, *End, error) {
	cfa, err := w.cfa(f.Registers, s.row.CFA)
	if err != nil {
		return caller{}, nil, fmt.Errorf("the CFA: %w", err)
	}
	if low, known := w.lowest(f); known && cfa <= low {
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
	f.NoCFA, w.floor = "", cfa
	if pc == 0 {
		return caller{}, outermost("frame #%d is the outermost: its return address is zero", f.Index), nil
	}
	return w.caller(f, s, pc), nil, nil
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

// called returns pc without a signature when it may be a return address: when it is zero,
// which is what the outermost frame has, or lies after a call, or need not. Code that cannot
// be read is not held against it.
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
	if called, err := w.callEndsAt(pc); err == nil && !called {
		return 0, &uncalled{pc}
	}
	return pc, nil
}
