package text

import (
	"bytes"
	"io"
	"os"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"unicode"

	"golang.org/x/term"
)

// TerminalWidth returns the width of a terminal in cells, from COLUMNS or the terminal. It returns 0 if out is not a terminal: output to a pipe or a
// file is data, so its lines are not broken.
func TerminalWidth(out *os.File) int {
	if !IsTerminal(out) {
		return 0
	}
	if n, err := strconv.Atoi(os.Getenv("COLUMNS")); err == nil && n > 0 {
		return max(n, narrowest)
	}
	if n, _, err := term.GetSize(int(out.Fd())); err == nil && n > 0 {
		return max(n, narrowest)
	}
	return 80
}

// IsTerminal reports whether a file is a terminal. It does not call [os.File.Fd], which makes a pipe's writes block in write(2), where a write
// deadline does not end them.
func IsTerminal(f *os.File) (is bool) {
	conn, err := f.SyscallConn()
	if err != nil {
		return false
	}
	err = conn.Control(func(fd uintptr) { is = term.IsTerminal(int(fd)) })
	return err == nil && is
}

// narrowest is the least width in cells to which lines are broken.
const narrowest = 20

// Fold returns a writer that breaks lines wider than the terminal; the text must end with a line end. If out is not a terminal, Fold returns out.
func Fold(out *os.File) io.Writer {
	if width := TerminalWidth(out); width > 0 {
		return &folder{out: out, width: width}
	}
	return out
}

// Folded returns the text as the writer of [Fold] would write it.
func Folded(out *os.File, s string) string {
	width := TerminalWidth(out)
	if width == 0 || !strings.Contains(s, "\n") {
		return s
	}
	var b strings.Builder
	_, _ = (&folder{out: &b, width: width}).Write([]byte(s)) // a Builder never fails
	return b.String()
}

// proposal matches the label before a command that users copy.
var proposal = regexp.MustCompile(`^(try|more of the stack|  reproduce): `)

type folder struct {
	out   io.Writer
	width int
	rest  []byte // the start of an incomplete line
}

func (f *folder) Write(p []byte) (int, error) {
	f.rest = append(f.rest, p...)
	end := bytes.LastIndexByte(f.rest, '\n') + 1
	var b strings.Builder
	for line := range strings.Lines(string(f.rest[:end])) {
		line = strings.TrimSuffix(line, "\n")
		parts := []string{}
		if m := proposal.FindString(line); m != "" && Cells(line) > f.width {
			parts = append(parts, m+FoldCommand(ShellWords(line[len(m):]), f.width-len(m)))
		} else {
			parts = FoldLine(line, f.width, 4)
		}
		for _, part := range parts {
			b.WriteString(part + "\n")
		}
	}
	f.rest = append(f.rest[:0], f.rest[end:]...)
	if _, err := io.WriteString(f.out, b.String()); err != nil {
		return 0, err
	}
	return len(p), nil
}

// FoldLine breaks a line at spaces, so that no part is wider than width. Text without spaces, such as a hex dump, is broken at any character. Parts
// after the first are indented to the text after the line's label. Without a label they are indented by more additional cells.
func FoldLine(line string, width, more int) []string {
	if Cells(line) <= width {
		return []string{line}
	}
	hang := HangingIndent(line, width, more)
	var parts []string
	part, wide, last := "", 0, 0 // last is the index of the last space in the part after its first character
	begins := len(line) - len(strings.TrimLeft(line, " "))
	for len(line) > 0 {
		glyph, w := next(line)
		if wide+w > width {
			cut := len(part)
			if last > 0 && glyph != " " {
				cut = last
			}
			line = strings.TrimLeft(part[cut:]+line, " ")
			parts = append(parts, strings.TrimRight(part[:cut], " "))
			part, wide, last, begins = strings.Repeat(" ", hang), hang, 0, hang
			continue
		}
		if glyph == " " && len(part) > begins {
			last = len(part)
		}
		part, wide, line = part+glyph, wide+w, line[len(glyph):]
	}
	if strings.Trim(part, " ") != "" {
		parts = append(parts, part)
	}
	return parts
}

// HangingIndent returns the indentation of the second part of a line, in cells.
func HangingIndent(line string, width, more int) int {
	indent := len(line) - len(strings.TrimLeft(line, " "))
	plain := []rune(escapes(line))
	hang := indent + more
	for n := indent; n+2 < len(plain) && n < width/2-2; n++ {
		if plain[n] == ' ' && plain[n+1] == ' ' && plain[n+2] != ' ' {
			hang = n + 2
		}
	}
	return min(hang, width/2)
}

// next returns the first character of a line with the colour codes before it, and its width in cells.
func next(line string) (glyph string, width int) {
	n := escape(line)
	for k, r := range line[n:] {
		if k > 0 {
			return line[:n+k], width
		}
		width = cellsOf(r)
	}
	return line, width
}

// escape returns the number of bytes of colour codes at the beginning of a line.
func escape(line string) int {
	n := 0
	for strings.HasPrefix(line[n:], "\x1b[") {
		end := strings.IndexByte(line[n:], 'm')
		if end < 0 {
			break
		}
		n += end + 1
	}
	return n
}

// escapes removes the colour codes from a line.
func escapes(line string) string {
	var b strings.Builder
	for len(line) > 0 {
		line = line[escape(line):]
		end := len(line)
		if n := strings.IndexByte(line[min(1, end):], '\x1b'); n >= 0 { // an escape at the start is not a colour
			end = n + 1
		}
		b.WriteString(line[:end])
		line = line[end:]
	}
	return b.String()
}

// Cells returns the width of a line in cells.
func Cells(line string) int {
	n := 0
	for _, r := range escapes(line) {
		n += cellsOf(r)
	}
	return n
}

// cellsOf returns the width of a character in cells (Unicode's UAX #11, as terminals read it).
func cellsOf(r rune) int {
	switch {
	case r == '\t':
		return 8 // the widest tab
	case unicode.In(r, unicode.Mn, unicode.Me, unicode.Cf):
		return 0
	case r >= 0x1100 && unicode.In(r, unicode.Han, unicode.Hangul, unicode.Hiragana, unicode.Katakana), r >= 0xff01 && r <= 0xff60, r >= 0x1f300 && r <= 0x1faff:
		return 2
	}
	return 1
}

// FoldCommand joins the words of a command and breaks it between words, with a backslash at the end of each line but the last, so that it can be copied.
// Words wider than the line stay whole.
func FoldCommand(words []string, width int) string {
	var b strings.Builder
	wide := 0
	for n, word := range words {
		w := Cells(word)
		room := 2 // for the backslash
		if n == len(words)-1 {
			room = 0
		}
		switch {
		case n == 0:
		case width > 0 && wide+1+w+room > width && wide > setIn:
			b.WriteString(" \\\n" + strings.Repeat(" ", setIn))
			wide = setIn
		default:
			b.WriteByte(' ')
			wide++
		}
		b.WriteString(word)
		wide += w
	}
	return b.String()
}

// ShellWords splits a line at the spaces at which a shell splits it. It keeps the quotes of each word.
func ShellWords(line string) (words []string) {
	word, mark, escape := "", rune(0), false
	for _, r := range line + " " {
		switch {
		case escape:
			escape = false
		case r == '\\' && mark != '\'':
			escape = true
		case mark == 0 && r == ' ':
			if word != "" {
				words = append(words, word)
			}
			word = ""
			continue
		case r == mark:
			mark = 0
		case mark == 0 && (r == '\'' || r == '"'):
			mark = r
		}
		word += string(r)
	}
	return words
}

// wordsInRows splits a dump of bytes or words into rows of n.
func wordsInRows(dump string, n int) (rows []string) {
	for part := range slices.Chunk(strings.Fields(dump), n) {
		rows = append(rows, strings.Join(part, " "))
	}
	return rows
}

// setIn is the indentation of the lines of a command after the first.
const setIn = 4
