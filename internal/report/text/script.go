package text

import (
	"bytes"
	"io"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/handover"
	"example.com/reframe/internal/check/verify"
)

// ScriptPrinter prints the standard output of a script, without colours.
type ScriptPrinter struct{}

func (ScriptPrinter) Frames(w io.Writer, v *deopt.View) error {
	return PrintView(w, Style{}, v)
}

func (ScriptPrinter) Frame(w io.Writer, f *frame.Frame) error {
	var b bytes.Buffer
	PrintFrame(&b, Style{}, f)
	_, err := w.Write(b.Bytes())
	return err
}

func (ScriptPrinter) Resumed(w io.Writer, r *frame.Resumed, s *deopt.Stack) error {
	return PrintResumed(w, Style{}, r, s.Frames)
}

func (ScriptPrinter) ResumedWith(w io.Writer, r *frame.Resumed, s *handover.Stack) error {
	return PrintResumedWith(w, Style{}, r, s.Frames)
}

func (ScriptPrinter) Verified(w io.Writer, v *verify.Verified) error {
	var b bytes.Buffer
	PrintVerified(&b, Style{}, v, "") // the script itself reproduces it
	_, err := w.Write(b.Bytes())
	return err
}

func (ScriptPrinter) Summary(w io.Writer, s *verify.Summary) error {
	_, err := io.WriteString(w, VerifySummary(s, Limits{Exits: s.Exits}, false))
	return err
}

func (ScriptPrinter) JSON(w io.Writer, v any) error { return WriteJSON(w, v) }
