package frame

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// Code identifies the kind of a reason, for programs. A code keeps its meaning between releases; the text of a reason may change.
type Code string

// Reason says why a value is unavailable, undefined, or a guess: a code, and the facts that its text names. It is an error.
type Reason struct {
	Code Code
	args []any
}

// Because returns a reason. args fill in the text of the code, in the order that texts gives.
func Because(code Code, args ...any) *Reason { return &Reason{code, args} }

// Error returns the reason as text.
func (r *Reason) Error() string { return fmt.Sprintf(texts[r.Code], r.args...) }

// TextWith implements [Addressed].
func (r *Reason) TextWith(spell func(uint64) string) string {
	return fmt.Sprintf(texts[r.Code], respelled(r.args, spell)...)
}

// Without removes a subject from the start of the text, so that reasons for several subjects can be grouped: "is caller-saved …" for a register.
// If the text does not begin with the subject, Without returns the whole text.
func (r *Reason) Without(subject string) string {
	rest, begins := strings.CutPrefix(texts[r.Code], "%s")
	if !begins || rest == "" || r.args[0] != subject {
		return r.Error()
	}
	return fmt.Sprintf(strings.TrimLeft(rest, ": "), r.args[1:]...)
}

// Unwrap returns the error that is an argument of the text, or nil.
func (r *Reason) Unwrap() error {
	for _, arg := range r.args {
		if err, ok := arg.(error); ok {
			return err
		}
	}
	return nil
}

// ReasonCode returns the code. Errors of other packages that have a code implement the same method.
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

// Why returns the reason of a slot as an error with its code; nil if the slot has none.
func (s *Slot) Why() error {
	if s.Reason == "" {
		return nil
	}
	if s.why != nil {
		return s.why
	}
	return &recorded{s.Code, s.Reason}
}

// Clear removes the value of a slot, and sets its status and the reason. All code that makes a slot unavailable or undefined calls it.
func (s *Slot) Clear(status Status, why error) {
	s.Status = status
	s.because(why)
	s.Value, s.Hex, s.Bytes, s.GC = "", "", nil, nil
}

// CausedBy reports whether the reason of the slot, or an error that it wraps, has a code. A slot that was read from JSON has the code of its reason only.
func (s *Slot) CausedBy(code Code) bool {
	return s.Code == code || slices.Contains(causes(s.why), code)
}

// causes returns the codes of the errors that the outermost error with a code wraps.
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

// because sets the reason.
func (s *Slot) because(why error) {
	s.Code, s.Reason, s.why = CodeOf(why), why.Error(), nil
	if len(causes(why)) > 0 || hasAddress(why) {
		s.why = why
	}
}
