package verify

import (
	"errors"

	"example.com/reframe/deopt/frame"
)

// incomparable is the reason why an exit cannot be compared. The error concerns only the exit, and the verification continues. It does not unwrap the
// error that it is made of, which may be one that ends a verification.
type incomparable struct{ why error }

func (e *incomparable) Error() string { return e.why.Error() }

// TextWith implements [frame.Addressed].
func (e *incomparable) TextWith(spell func(uint64) string) string {
	return frame.TextWith(e.why, spell)
}

func incomparablef(format string, args ...any) error {
	return &incomparable{frame.Errorf(format, args...)}
}

// asIncomparable returns the reason if an error concerns only the exit.
func asIncomparable(err error) (why error, ok bool) {
	var reason *incomparable
	if !errors.As(err, &reason) {
		return nil, false
	}
	return reason, true
}
