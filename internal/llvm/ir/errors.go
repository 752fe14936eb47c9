package ir

import (
	"fmt"
	"strings"
)

// Error describes what is wrong with a module, and where.
type Error struct {
	File string
	Line int    // from 1
	Col  int    // in bytes, from 1
	Text string // the source line, or as much of a long one as lies around Col
	Msg  string
}

// Error is file:line:col: message, in one line.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg) }

// Snippet returns the source line and, in a second line, a caret under the column, for a terminal to show below the message. It is "" where the
// source line is empty.
func (e *Error) Snippet() string {
	if e.Text == "" {
		return ""
	}
	return e.Text + "\n" + e.caret()
}

// caret returns the line below Text that points at Col: it repeats the tabs before Col, and takes account of the bytes that shown cut off.
func (e *Error) caret() string {
	at := e.Col - 1
	if at >= shownWidth {
		at = shownBefore
	}
	pad := []byte(strings.Repeat(" ", at))
	for i := range pad {
		if i < len(e.Text) && e.Text[i] == '\t' {
			pad[i] = '\t'
		}
	}
	return string(pad) + "^"
}

// A line of LLVM IR may hold a megabyte of string; this much of one is shown.
const (
	shownWidth  = 160
	shownBefore = 60
)

// errorAt returns an error with this message at a byte of the source.
func errorAt(file, src string, pos int, msg string) *Error {
	start := strings.LastIndexByte(src[:pos], '\n') + 1
	text := src[start:]
	if end := strings.IndexByte(text, '\n'); end >= 0 {
		text = text[:end]
	}
	if col := pos - start; col >= shownWidth {
		text = text[col-shownBefore:]
	}
	text = strings.TrimRight(text[:min(len(text), shownWidth)], "\r")
	return &Error{
		File: file, Line: 1 + strings.Count(src[:pos], "\n"), Col: pos - start + 1,
		Text: strings.ToValidUTF8(text, "?"), Msg: msg,
	}
}
