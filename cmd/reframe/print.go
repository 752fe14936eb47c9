package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"

	"github.com/spf13/cobra"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/cli/fold"
)

// style colours words where the terminal supports it.
type style struct{ on bool }

// style returns the style of standard output.
func (a *app) style() style { return a.styleOf(a.stdout) }

func (a *app) styleOf(out *os.File) style {
	switch a.color {
	case "always":
		return style{true}
	case "never":
		return style{false}
	}
	return style{os.Getenv("NO_COLOR") == "" && os.Getenv("TERM") != "dumb" && fold.IsTerminal(out)}
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

// printable makes text of a target safe for a terminal: names come from the process, and a terminal would obey control characters in them.
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

// printableLines is printable for text of several lines: it keeps line ends and tabs, which carry the layout.
func printableLines(s string) string {
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

// writeJSON writes v as JSON with an indentation of two spaces, and its member "target" on one line. Two views of the same moment, such as a process
// and a core of it, then differ only in that line.
func writeJSON(w io.Writer, v any) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(safeJSON(targetLine.ReplaceAllFunc(out.Bytes(), oneLine)))
	return err
}

// targetLine matches the member "target" of the outermost object. JSON strings contain no line ends.
var targetLine = regexp.MustCompile(`(?m)^  "target": \{\n(    .*\n)*  \}`)

// oneLine joins the lines of a member of the outermost object into one.
func oneLine(text []byte) []byte {
	line := []byte("  ")
	for part := range bytes.Lines(text) {
		part = bytes.Trim(part, " \n")
		if bytes.HasSuffix(line, []byte(",")) {
			line = append(line, ' ')
		}
		line = append(line, part...)
	}
	return line
}

// safeJSON writes characters that a terminal may obey as \u escapes: strings hold names of the target. encoding/json escapes only those below 0x20
// itself.
func safeJSON(text []byte) []byte {
	ascii := true
	for _, c := range text {
		ascii = ascii && (c == '\n' || c >= ' ' && c < 0x7f)
	}
	if ascii {
		return text
	}
	var safe []byte
	for _, r := range string(text) {
		if r == '\n' || unicode.IsPrint(r) {
			safe = utf8.AppendRune(safe, r)
			continue
		}
		for _, unit := range utf16.AppendRune(nil, r) {
			safe = fmt.Appendf(safe, "\\u%04x", unit)
		}
	}
	return safe
}

// count returns n with its noun, such as "1 record" or "2 records".
func count[N int | uint64](n N, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sourceFlag adds --source, with which a verb reads all debug information.
func sourceFlag(c *cobra.Command, all *bool) {
	c.Flags().BoolVar(all, "source", false, "show source lines even if reading them takes long")
}

func sourceBudget(all bool) int64 {
	if all {
		return deopt.AllSources
	}
	return deopt.QuickSources
}

// hintSource names a file whose source lines were not read because that takes long, and counts the others.
func (a *app) hintSource(costly []string) {
	if len(costly) == 0 {
		return
	}
	more := ""
	if n := len(costly) - 1; n > 0 {
		more = fmt.Sprintf(" and %s", count(n, "other file"))
	}
	fmt.Fprintf(fold.To(a.stderr), "\nsource lines of %s%s left out (slow to read); use --source\n", printable(costly[0]), more)
}

// lineWidth is the widest line, in characters, to which more is appended.
const lineWidth = 100

func runes(text string) int { return utf8.RuneCountInString(text) }

// sourceLines returns the source positions of a frame, one a line: those of inlined functions first, innermost first, then its own.
func sourceLines(source []frame.Source) (lines []string) {
	for _, p := range source {
		text := "at " + printable(deopt.SourceText(p))
		if p.Inlined {
			text = strings.TrimSpace(printable(p.Function)+" (inlined)") + " " + text
		}
		lines = append(lines, text)
	}
	return lines
}
