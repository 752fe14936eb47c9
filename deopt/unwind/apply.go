package unwind

import (
	"errors"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// apply finds the caller of f by a row. It returns an error if the row cannot be used.
func (w *walk) apply(f *Frame, s *step) (caller, *End, error) {
	cfa, err := w.cfa(f.Registers, s.row.CFA)
	if err != nil {
		return caller{}, nil, frame.Errorf("the CFA: %w", err)
	}
	cfa -= machine.Addr(s.late)
	if s.row.Rule(s.row.ReturnAddress).Kind == cfi.RuleUndefined && (f.Index == 0 || cfa >= w.floor) {
		// On architectures whose calls push nothing, the CFA may equal that of the callee.
		f.CFA, f.NoCFA = cfa, ""
		if w.enteredByOverwrittenReturn(f, s) {
			return caller{}, cutShort(frame.Because(frame.StackContinues, f.Index, errOutermost)), nil
		}
		return caller{}, outermost(f.Index, errOutermost.Error()), nil
	}
	if end := w.setCFA(f, cfa); end != nil {
		return caller{}, end, nil
	}
	pc, err := w.returnAddress(f, s.row)
	switch {
	case errors.Is(err, errOutermost):
		return caller{}, outermost(f.Index, err.Error()), nil
	case err != nil:
		return caller{}, nil, err
	case pc == 0 && !s.signal:
		return caller{}, w.returnsToZero(f), nil
	case !s.signal:
		// Only a signal frame may continue at a pc without code: a jump to a wild address is a common cause of a signal.
		if pc = w.unsigned(pc); !w.Executable(pc-1) && !(w.Executable(pc) && w.trampoline(pc) != nil) {
			return caller{}, cutShort(frame.Because(frame.ReturnToNoCode, f.Index, pc)), nil
		}
		if none := (*uncalled)(nil); s.rule == FromCFI {
			if _, err := w.called(pc, false); errors.As(err, &none) && !(w.Patchable != nil && w.Patchable(pc)) {
				return caller{}, cutShort(frame.Because(frame.ReturnToNoCall, f.Index, "returns", pc, "")), nil
			}
			if w.overwrittenReturn(f, s, pc) {
				return caller{}, cutShort(frame.Because(frame.ReturnToNoCall, f.Index, "returns", pc, ", and the stack continues above it")), nil
			}
		}
	}
	return w.caller(f, s, pc), nil, nil
}

// errOutermost reports that CFI declares a function to have no caller.
var errOutermost = errors.New("its CFI says that it has no return address")

// unsigned removes the pointer-authentication code from a code address.
func (u *Unwinder) unsigned(pc machine.Addr) machine.Addr {
	if u.Arch.Code == 0 || u.Executable(pc-1) {
		return pc
	}
	return pc & machine.Addr(u.Arch.Code)
}
