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

// Frames prints the frames of all threads.
func (ScriptPrinter) Frames(w io.Writer, v *deopt.View) error {
	return PrintView(w, Style{}, v)
}

// Frame prints one frame.
func (ScriptPrinter) Frame(w io.Writer, f *frame.Frame) error {
	var b bytes.Buffer
	PrintFrame(&b, Style{}, f)
	_, err := w.Write(b.Bytes())
	return err
}

// Resumed prints the result of the reference interpreter.
func (ScriptPrinter) Resumed(w io.Writer, r *frame.Resumed, s *deopt.Stack) error {
	return PrintResumed(w, Style{}, r, s.Frames)
}

// ResumedWith prints the result of the VM's own interpreter.
func (ScriptPrinter) ResumedWith(w io.Writer, r *frame.Resumed, s *handover.Stack) error {
	return PrintResumedWith(w, Style{}, r, s.Frames)
}

// Verified prints the comparison of one exit.
func (ScriptPrinter) Verified(w io.Writer, v *verify.Verified) error {
	var b bytes.Buffer
	PrintVerified(&b, Style{}, v, "") // no command, because the script itself reproduces the difference
	_, err := w.Write(b.Bytes())
	return err
}

// Summary prints the summary of a comparison.
func (ScriptPrinter) Summary(w io.Writer, s *verify.Summary) error {
	_, err := io.WriteString(w, VerifySummary(s, Limits{Exits: s.Exits}, false))
	return err
}

// JSON prints a value as JSON.
func (ScriptPrinter) JSON(w io.Writer, v any) error { return WriteJSON(w, v) }
