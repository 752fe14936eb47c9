package frame

import (
	"errors"
	"fmt"
)

// Addressed is implemented by addresses, and by errors whose text may name some. The addresses differ between runs of a program, so they are
// removed from texts that are compared or counted.
type Addressed interface {
	// TextWith returns the text with each address replaced by the result of spell.
	TextWith(spell func(address uint64) string) string
}

// TextWith returns the text of an error in which each address that the error holds is replaced by the result of spell.
func TextWith(err error, spell func(address uint64) string) string {
	if a, is := err.(Addressed); is {
		return a.TextWith(spell)
	}
	return err.Error()
}

// Errorf is fmt.Errorf for an error whose addresses [TextWith] finds: those among args, and those of the errors among args.
func Errorf(format string, args ...any) error {
	return &addressed{fmt.Errorf(format, args...), format, args}
}

type addressed struct {
	err    error
	format string
	args   []any
}

func (e *addressed) Error() string { return e.err.Error() }
func (e *addressed) Unwrap() error { return errors.Unwrap(e.err) }

func (e *addressed) TextWith(spell func(uint64) string) string {
	return fmt.Errorf(e.format, respelled(e.args, spell)...).Error()
}

// respelled returns the arguments of a text with each address replaced by the result of spell.
func respelled(args []any, spell func(uint64) string) []any {
	out := make([]any, len(args))
	for n, arg := range args {
		out[n] = arg
		a, is := arg.(Addressed)
		if !is {
			continue
		}
		if out[n] = any(a.TextWith(spell)); isError(arg) {
			out[n] = errors.New(a.TextWith(spell)) // %w takes errors only
		}
	}
	return out
}

func isError(arg any) bool {
	_, is := arg.(error)
	return is
}
