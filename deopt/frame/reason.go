package frame

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code identifies the kind of a reason for programs that read the JSON. A code keeps its meaning between releases, but the text of its reason may
// change.
type Code string

// Reason says why a value is unavailable, undefined or a guess. It is an error that consists of a code and the arguments of the code's text.
type Reason struct {
	Code Code
	args []any
}

// Because returns a reason. args are the arguments of the code's text, in the order that the comments in texts give.
func Because(code Code, args ...any) *Reason { return &Reason{code, args} }

// Error returns the reason as text.
func (r *Reason) Error() string { return fmt.Sprintf(texts[r.Code], r.args...) }

// TextWith implements [Addressed].
func (r *Reason) TextWith(spell func(uint64) string) string {
	return fmt.Sprintf(texts[r.Code], respelled(r.args, spell)...)
}

// Without returns the text without its subject, such as "is caller-saved …" for a register, so that reasons for several subjects can be grouped. If
// the text does not begin with the subject, Without returns the whole text.
func (r *Reason) Without(subject string) string {
	rest, begins := strings.CutPrefix(texts[r.Code], "%s")
	if !begins || rest == "" || r.args[0] != subject {
		return r.Error()
	}
	return fmt.Sprintf(strings.TrimLeft(rest, ": "), r.args[1:]...)
}

// Unwrap returns the error among the arguments, or nil.
func (r *Reason) Unwrap() error {
	for _, arg := range r.args {
		if err, ok := arg.(error); ok {
			return err
		}
	}
	return nil
}

// ReasonCode returns the code. Errors of other packages that have a code also have this method.
func (r *Reason) ReasonCode() Code { return r.Code }

// CodeOf returns the code of the outermost reason in an error, or [Unreadable] if the error contains no reason.
func CodeOf(err error) Code {
	var coded interface {
		error
		ReasonCode() Code
	}
	if errors.As(err, &coded) {
		return coded.ReasonCode()
	}
	return Unreadable
}

// recorded is a reason that was turned into text before.
type recorded struct {
	code Code
	text string
}

func (r *recorded) Error() string    { return r.text }
func (r *recorded) ReasonCode() Code { return r.code }

// Why returns the reason of a slot as an error with its code, or nil if the slot has no reason.
func (s *Slot) Why() error {
	if s.Reason == "" {
		return nil
	}
	if s.why != nil {
		return s.why
	}
	return &recorded{s.Code, s.Reason}
}

// Clear removes the value of a slot, and sets its status and its reason. All code that makes a slot unavailable or undefined must call it.
func (s *Slot) Clear(status Status, why error) {
	s.Status = status
	s.because(why)
	s.Value, s.Hex, s.Bytes, s.GC = "", "", nil, nil
}

// CausedBy reports whether the reason of the slot, or an error that it wraps, has the given code. For a slot that was read from JSON, only the code
// of the reason is known.
func (s *Slot) CausedBy(code Code) bool {
	return s.Code == code || slices.Contains(causes(s.why), code)
}

// causes returns the codes of all errors that the outermost error with a code wraps.
func causes(why error) (codes []Code) {
	for err := why; err != nil; err = errors.Unwrap(err) {
		if coded, ok := err.(interface{ ReasonCode() Code }); ok {
			codes = append(codes, coded.ReasonCode())
		}
	}
	if len(codes) < 2 {
		return nil
	}
	return codes[1:]
}

// Doubt marks the value of a slot as a guess.
func (s *Slot) Doubt(why error) {
	s.Status = Guessed
	s.because(why)
}

// because sets the reason and its code.
func (s *Slot) because(why error) {
	s.Code, s.Reason, s.why = CodeOf(why), why.Error(), nil
	if len(causes(why)) > 0 || hasAddress(why) {
		s.why = why
	}
}
