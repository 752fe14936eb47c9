package verify

import (
	"errors"
	"fmt"
)

// incomparable is the reason why an exit cannot be compared. It is an error for the exit alone: the verification continues.
type incomparable string

func (e incomparable) Error() string { return string(e) }

func incomparablef(format string, args ...any) error {
	return incomparable(fmt.Sprintf(format, args...))
}

// asIncomparable returns the reason if an error concerns only the exit.
func asIncomparable(err error) (why string, ok bool) {
	reason := incomparable("")
	ok = errors.As(err, &reason)
	return string(reason), ok
}
