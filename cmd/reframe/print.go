package main

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// style colours words where a terminal shows them.
type style struct{ on bool }

func (a *app) style() style {
	switch a.color {
	case "always":
		return style{true}
	case "never":
		return style{false}
	}
	return style{os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && term.IsTerminal(int(a.stdout.Fd()))}
}

func (s style) paint(code, text string) string {
	if !s.on || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

func (s style) bold(text string) string   { return s.paint("1", text) }
func (s style) dim(text string) string    { return s.paint("2", text) }
func (s style) green(text string) string  { return s.paint("32", text) }
func (s style) yellow(text string) string { return s.paint("33", text) }

// printable makes text of a target safe for a terminal: names come from the process,
// and control characters in them would be obeyed.
func printable(s string) string {
	return strings.Map(func(r rune) rune {
		switch {
		case r == '\n' || r == '\t':
			return ' '
		case !unicode.IsPrint(r):
			return '\uFFFD'
		}
		return r
	}, strings.TrimSpace(s))
}

// printableLines is printable for text of several lines, whose white space says where
// in a line something is.
func printableLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// pad fills text with spaces up to width, not counting what only colours it.
func pad(plain, painted string, width int) string {
	if n := width - len([]rune(plain)); n > 0 {
		return painted + strings.Repeat(" ", n)
	}
	return painted
}

// writeJSON prints v with two spaces of indentation.
func writeJSON(w io.Writer, v any) error {
	e := json.NewEncoder(w)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	return e.Encode(v)
}

// count is "1 record" or "2 records".
func count(n int, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}
