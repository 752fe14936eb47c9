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

	"reframe/deopt"
	"reframe/deopt/frame"
	"reframe/internal/fold"
)

// style colours words where a terminal shows them.
type style struct{ on bool }

// style is that of standard output.
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

// writeJSON prints v with two spaces of indentation, and what it says of the target in one line: by
// that alone the same moment differs that was looked at in two ways.
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

// targetLine is the member of the outermost object that is about the target. In no string is a line's end.
var targetLine = regexp.MustCompile(`(?m)^  "target": \{\n(    .*\n)*  \}`)

// oneLine joins the lines of a member of the outermost object.
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

// safeJSON writes characters that a terminal may obey as \u escapes, which encoding/json
// does of its own for those below 0x20 only: strings hold names of the target.
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

// count is "1 record" or "2 records".
func count[N int | uint64](n N, what string) string {
	if n == 1 {
		return fmt.Sprintf("1 %s", what)
	}
	return fmt.Sprintf("%d %ss", n, what)
}

// sourceFlag has a verb read all debug information.
func sourceFlag(c *cobra.Command, all *bool) {
	c.Flags().BoolVar(all, "source", false, "show lines of the source also where it takes long to read them")
}

func sourceBudget(all bool) int64 {
	if all {
		return deopt.AllSources
	}
	return deopt.QuickSources
}

// hintSource says of which files the lines were not looked for.
func (a *app) hintSource(costly []string) {
	if len(costly) == 0 {
		return
	}
	more := ""
	if n := len(costly) - 1; n > 0 {
		more = fmt.Sprintf(" and %s", count(n, "other file"))
	}
	fmt.Fprintf(fold.To(a.stderr), "\nlines of the source in %s%s take longer to read: --source\n", printable(costly[0]), more)
}

// lineWidth is how wide a line may become to which something is put.
const lineWidth = 100

func runes(text string) int { return utf8.RuneCountInString(text) }

// sourceLines spells where in the source a frame is, a line for each function that was inlined there, innermost first, and one for
// its own.
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
