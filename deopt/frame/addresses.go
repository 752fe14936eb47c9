package frame

import (
	"errors"
	"fmt"
	"slices"
)

// Addressed is implemented by values and errors whose text may contain addresses. Addresses differ between runs of a program, so callers that compare
// or count texts replace them.
type Addressed interface {
	// TextWith returns the text with each address replaced by the result of spell.
	TextWith(spell func(address uint64) string) string
}

// TextWith returns the text of an error, with each address that the error holds replaced by the result of spell.
func TextWith(err error, spell func(address uint64) string) string {
	if a, is := err.(Addressed); is {
		return a.TextWith(spell)
	}
	return err.Error()
}

// Errorf is fmt.Errorf for an error that keeps its addresses for [TextWith]: addresses among args, and those of errors among args.
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
			out[n] = errors.New(a.TextWith(spell)) // %w requires an error
		}
	}
	return out
}

// hasAddress reports whether an error holds an address that is in its text.
func hasAddress(err error) (has bool) {
	TextWith(err, func(uint64) string {
		has = true
		return ""
	})
	return has
}

func isError(arg any) bool {
	_, is := arg.(error)
	return is
}

// AddNote adds the text of an error to the notes. [Frame.Noted] keeps the addresses in it.
func (f *Frame) AddNote(why error) {
	f.Notes = append(f.Notes, why.Error())
	if hasAddress(why) {
		f.noted = append(f.noted[:len(f.noted):len(f.noted)], why)
	}
}

// Noted returns the notes of the frame with their addresses.
func (f *Frame) Noted() Notes { return Notes{f.Notes, f.noted} }

// Notes holds texts, and the addresses in them.
type Notes struct {
	texts     []string
	addressed []error // the notes that have addresses, as errors
}

// String returns the notes as text to append to a message; "" for none.
func (n Notes) String() string { return Noted(n.texts) }

// TextWith implements [Addressed].
func (n Notes) TextWith(spell func(uint64) string) string { return Noted(n.With(spell)) }

// With returns the notes, with each address replaced by the result of spell.
func (n Notes) With(spell func(uint64) string) []string {
	list := slices.Clone(n.texts)
	for k, text := range list {
		if at := slices.IndexFunc(n.addressed, func(why error) bool { return why.Error() == text }); at >= 0 {
			list[k] = TextWith(n.addressed[at], spell)
		}
	}
	return list
}
