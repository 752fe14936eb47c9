// Package jsonat reads JSON that was written by hand, and reports the line, the column and the member of a mistake.
//
// Its main function is [Decode]; mistakes are [Error]s.
//
// # Security
//
// The text is hostile. Errors quote member names as Go strings, so that control characters do not reach a terminal.
package jsonat

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"reflect"
	"strings"
	"unicode/utf8"
)

// Place is a position in a text. Line and Column count from 1; columns count characters.
type Place struct{ Line, Column int }

// PlaceOf returns the position of the byte at an offset.
func PlaceOf(text []byte, offset int64) Place {
	before := text[:min(max(offset, 0), int64(len(text)))]
	line := before[bytes.LastIndexByte(before, '\n')+1:]
	return Place{1 + bytes.Count(before, []byte{'\n'}), 1 + utf8.RuneCount(line)}
}

// Error describes a mistake in a JSON text.
type Error struct {
	Place
	Path string // the member, such as exits[0].slots[2]; "" for the whole text
	Err  error
}

func (e *Error) Error() string {
	if e.Path == "" {
		return fmt.Sprintf("%d:%d: %v", e.Line, e.Column, e.Err)
	}
	return fmt.Sprintf("%d:%d: %s: %v", e.Line, e.Column, e.Path, e.Err)
}

func (e *Error) Unwrap() error { return e.Err }

// Decode decodes a text that holds one value into v. A member that v does not have is an error, and so is any text after the value. Errors are of type
// [*Error].
func Decode(text []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	err := d.Decode(v)
	var syntax *json.SyntaxError
	var kind *json.UnmarshalTypeError
	switch {
	case err == nil:
		end := d.InputOffset()
		if _, err := d.Token(); err != io.EOF {
			end += int64(len(text[end:]) - len(bytes.TrimLeft(text[end:], " \t\r\n")))
			return &Error{PlaceOf(text, end), "", errors.New("unexpected text after the value")}
		}
		return nil
	case errors.As(err, &syntax):
		return &Error{PlaceOf(text, syntax.Offset-1), "", syntax}
	case errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF):
		return &Error{PlaceOf(text, int64(len(text))), "", errors.New("unexpected end of the text")}
	case errors.As(err, &kind):
		w := walk(text, reflect.TypeOf(v), func(m member) bool {
			return m.start < kind.Offset && kind.Offset <= m.end && !m.composite || m.start+1 == kind.Offset
		})
		if w == nil {
			return &Error{PlaceOf(text, kind.Offset-1), "", kind}
		}
		return &Error{PlaceOf(text, w.start), w.path, fmt.Errorf("expected %s, got %s", expected(kind.Type), article(kind.Value))}
	}
	if w := walk(text, reflect.TypeOf(v), func(m member) bool { return m.unknown }); w != nil {
		return &Error{PlaceOf(text, w.key), w.path, fmt.Errorf("unknown member; expected one of %s", strings.Join(w.siblings, ", "))}
	}
	return &Error{PlaceOf(text, 0), "", err}
}

// Find returns the positions of members, such as exits[0].slots[2]. For a path that does not exist it returns the position of its longest existing prefix.
func Find(text []byte, paths ...string) []Place {
	places := map[string]int64{}
	for _, path := range paths {
		for path != "" {
			places[path] = -1
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
	}
	walk(text, nil, func(m member) bool {
		if at, wanted := places[m.path]; wanted && at < 0 {
			places[m.path] = m.start
		}
		return false
	})
	out := make([]Place, len(paths))
	for n, path := range paths {
		for path != "" && places[path] < 0 {
			path = path[:max(0, strings.LastIndexAny(path, ".["))]
		}
		out[n] = PlaceOf(text, places[path])
	}
	return out
}

func article(value string) string {
	kind, rest, number := strings.Cut(value, " ")
	switch {
	case kind == "bool":
		return "true or false"
	case number:
		return "the " + kind + " " + rest
	case kind == "array" || kind == "object":
		return "an " + kind
	}
	return "a " + kind
}

func expected(t reflect.Type) string {
	switch t.Kind() {
	case reflect.Pointer:
		return expected(t.Elem())
	case reflect.Uint, reflect.Uint8, reflect.Uint16, reflect.Uint32, reflect.Uint64:
		return fmt.Sprintf("an unsigned integer of %d bits", t.Bits())
	case reflect.Int, reflect.Int8, reflect.Int16, reflect.Int32, reflect.Int64:
		return fmt.Sprintf("an integer of %d bits", t.Bits())
	case reflect.Slice, reflect.Array:
		return "an array"
	case reflect.Struct, reflect.Map:
		return "an object"
	case reflect.Bool:
		return "true or false"
	}
	return "a " + t.Kind().String()
}
