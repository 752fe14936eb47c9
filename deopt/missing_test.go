package deopt_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// TestProcessEndsBeforeResume requires an error that says that the process has ended if this is the cause of a missing value. Another reason may
// wrap the cause, because the place where a frame saved a register is read on demand.
func TestProcessEndsBeforeResume(t *testing.T) {
	point := interp.Point{Block: &ir.Block{Name: "b", Func: &ir.Func{Name: "f"}}}
	gone := &machine.MemoryError{Addr: 0x1000, Len: 8, Why: "no such process", Code: frame.MemoryGone}
	for _, why := range []error{gone, frame.Because(frame.SaveUnreadable, 0, "rbx", gone)} {
		s := frame.Slot{Name: "%x"}
		s.Clear(frame.Missing, why)
		_, err := deopt.MissingFor(&ptrace.Target{PID: 7}, s, point)
		require.ErrorIs(t, err, ptrace.ErrProcessExited)
	}
	s := frame.Slot{Name: "%x"}
	s.Clear(frame.Missing, frame.Because(frame.SaveUnreadable, 0, "rbx", &machine.MemoryError{Addr: 0x1000, Len: 8, Why: "not mapped"}))
	text, err := deopt.MissingFor(&ptrace.Target{PID: 7}, s, point)
	require.NoError(t, err)
	require.Contains(t, text, "not mapped")
}
