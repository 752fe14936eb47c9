package replay

import (
	"io"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/check/verify"
)

// Printer prints in the formats of the command line. Without a Printer, [Scripts] prints nothing.
type Printer interface {
	Frames(w io.Writer, v *deopt.View) error
	Frame(w io.Writer, f *frame.Frame) error
	Resumed(w io.Writer, r *frame.Resumed, s *deopt.Stack) error
	ResumedWith(w io.Writer, r *frame.Resumed, s *handover.Stack) error
	Verified(w io.Writer, v *verify.Verified) error
	Summary(w io.Writer, s *verify.Summary) error
	JSON(w io.Writer, v any) error
}

// unspelled hides an address, which differs between runs.
func unspelled(uint64) string { return "0x…" }

// stable returns a frame without the parts that vary between runs. It keeps the function and the slots, but not addresses. A pointer becomes ptr
// unless it is null.
func stable(f *frame.Frame) *frame.Frame {
	out := *f
	out.PC, out.CFA, out.Rule, out.Slots, out.Notes = "0x…", "", string(unwind.FromCFI), nil, nil
	out.Source = nil
	for _, s := range f.Slots {
		if s.Type.Kind == frame.Pointer && s.Read() && s.Value != "0x0" {
			s.Value, s.Hex = "ptr", "0x…"
		}
		s.Variable = "" // debug information may be present only in some runs
		if why := s.Why(); why != nil {
			s.Reason = frame.TextWith(why, unspelled)
		}
		out.Slots = append(out.Slots, s)
	}
	out.Notes = f.Noted().With(unspelled)
	return &out
}
