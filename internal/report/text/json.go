package text

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"unicode"
	"unicode/utf16"
	"unicode/utf8"
)

// WriteJSON writes v as JSON with an indentation of two spaces, and its member "target" on one line. Two views of the same moment, such as a process
// and a core of it, then differ only in that line.
func WriteJSON(w io.Writer, v any) error {
	var out bytes.Buffer
	e := json.NewEncoder(&out)
	e.SetIndent("", "  ")
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return err
	}
	_, err := w.Write(SafeJSON(targetLine.ReplaceAllFunc(out.Bytes(), oneLine)))
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

// SafeJSON writes characters that a terminal may obey as \u escapes: strings hold names of the target. encoding/json escapes only control characters
// below 0x20.
func SafeJSON(text []byte) []byte {
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
