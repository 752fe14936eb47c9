package ir

import (
	"fmt"
	"strings"
)

// Error describes an error in a module and its position.
type Error struct {
	File string
	Line int    // from 1
	Col  int    // in bytes, from 1
	Text string // the source line, or the part of a long line around Col
	Msg  string
}

// Error returns file:line:col: message, without the source line.
func (e *Error) Error() string { return fmt.Sprintf("%s:%d:%d: %s", e.File, e.Line, e.Col, e.Msg) }

// Snippet returns the source line and, on a second line, a caret under the column, to print below the message. It returns "" if the source line is empty.
func (e *Error) Snippet() string {
	if e.Text == "" {
		return ""
	}
	return e.Text + "\n" + e.caret()
}

// caret returns the line below Text that points at Col. It repeats the tabs before Col, and adjusts for text that shown cut off.
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

// These limit the text shown of one line: a line of LLVM IR may hold a megabyte of string.
const (
	shownWidth  = 160
	shownBefore = 60
)

// errorAt returns an error with a message for a byte of the source.
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
