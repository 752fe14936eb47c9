package text

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
)

// Style colours words if On is set.
type Style struct{ On bool }

func (s Style) paint(code, text string) string {
	if !s.On || text == "" {
		return text
	}
	return "\x1b[" + code + "m" + text + "\x1b[0m"
}

// Bold returns the text in bold.
func (s Style) Bold(text string) string { return s.paint("1", text) }

// Dim returns the text in a faint colour.
func (s Style) Dim(text string) string { return s.paint("2", text) }

// Green returns the text in green, for good results.
func (s Style) Green(text string) string { return s.paint("32", text) }

// Yellow returns the text in yellow, for warnings.
func (s Style) Yellow(text string) string { return s.paint("33", text) }

// Printable makes text of a target safe for a terminal: names come from the process, and a terminal would obey control characters in them.
func Printable(s string) string {
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

// PrintableLines is Printable for text of several lines: it keeps line ends and tabs, which determine the layout of the text.
func PrintableLines(s string) string {
	return strings.Map(func(r rune) rune {
		if r == '\n' || r == '\t' || unicode.IsPrint(r) {
			return r
		}
		return '\uFFFD'
	}, s)
}

// pad appends spaces to painted until plain is width characters long. plain is the same text without colour codes.
func pad(plain, painted string, width int) string {
	if n := width - len([]rune(plain)); n > 0 {
		return painted + strings.Repeat(" ", n)
	}
	return painted
}

// Count returns n with its noun, such as "1 record" or "2 records".
func Count[N int | uint64](n N, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// lineWidth is the width in characters up to which text is appended to a line.
const lineWidth = 100

// runes returns the length of a text in characters.
func runes(text string) int { return utf8.RuneCountInString(text) }

// sourceLines returns the source positions of a frame, one per line: those of inlined functions, innermost first, and then the position of the
// frame's function.
func sourceLines(source []frame.Source) (lines []string) {
	for _, p := range source {
		text := "at " + Printable(deopt.SourceText(p))
		if p.Inlined {
			text = strings.TrimSpace(Printable(p.Function)+" (inlined)") + " " + text
		}
		lines = append(lines, text)
	}
	return lines
}

// Bytes formats an amount of memory.
func Bytes(n uint64) string {
	switch {
	case n < 10<<10:
		return fmt.Sprintf("%d bytes", n)
	case n < 10<<20:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return fmt.Sprintf("%d MiB", n>>20)
}
