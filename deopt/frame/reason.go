package frame

import (
	"errors"
	"fmt"
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

// ReasonCode returns the code. Errors of other packages that are reasons have the same method.
func (r *Reason) ReasonCode() Code { return r.Code }

// CodeOf returns the code of the outermost reason in an error, or [Unreadable] if it contains none.
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

// Clear takes the value from a slot, and sets its status and the reason. It is the one way to make a slot unavailable or undefined.
func (s *Slot) Clear(status Status, why error) {
	s.Status, s.Code, s.Reason = status, CodeOf(why), why.Error()
	s.Value, s.Hex, s.Bytes, s.GC = "", "", nil, nil
}

// Doubt marks the value of a slot as a guess.
func (s *Slot) Doubt(why error) { s.Status, s.Code, s.Reason = Guessed, CodeOf(why), why.Error() }
