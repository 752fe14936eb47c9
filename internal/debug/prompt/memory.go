package prompt

import (
	"context"
	"fmt"
	"regexp"
	"strconv"
	"strings"
	"unicode/utf8"

	"example.com/reframe/internal/machine"
)

// shown is a format for memory, as in gdb's x command: the number of words, their size and their notation.
type shown struct {
	n      int
	format byte
	size   int
}

// maxWords bounds the words that are shown at once, and maxString the bytes of a string.
const (
	maxWords  = 4096
	maxString = 200
)

var formats = regexp.MustCompile(`^/([0-9]*)([a-z]*)\s*(.*)$`)

// sizes maps gdb's letters to sizes of words in bytes.
var sizes = map[rune]int{'b': 1, 'h': 2, 'w': 4, 'g': 8}

// parseShown parses the arguments of x: a format such as /8gx, and an expression.
func parseShown(args string, pointer int) (s shown, expr string, err error) {
	s = shown{n: 1, format: 'x', size: pointer}
	m := formats.FindStringSubmatch(args)
	if m == nil {
		return s, args, nil
	}
	if m[1] != "" {
		if s.n, err = strconv.Atoi(m[1]); err != nil || s.n < 1 || s.n > maxWords {
			return s, "", wrong("/%s: expected 1 to %d words", m[1], maxWords)
		}
	}
	for _, c := range m[2] {
		switch {
		case sizes[c] != 0:
			s.size = sizes[c]
		case strings.ContainsRune("xduocas", c):
			s.format = byte(c)
			if c == 'c' && !strings.ContainsAny(m[2], "bhwg") {
				s.size = 1
			}
		default:
			return s, "", wrong("/%c: expected a format (x d u o c a s) or a size (b h w g)", c)
		}
	}
	if s.format == 'a' {
		s.size = pointer
	}
	return s, m[3], nil
}

// memory implements the command x.
func (p *Prompt) memory(_ context.Context, args string) error {
	t, err := p.Session.Target()
	if err != nil {
		return err
	}
	arch := t.Arch()
	s, expr, err := parseShown(args, arch.Pointer)
	if err != nil {
		return err
	}
	if expr == "" {
		return wrong("")
	}
	at, err := p.address(expr)
	if err != nil {
		return err
	}
	if s.format == 's' {
		return p.strings(at, s.n)
	}
	data, err := machine.ReadSome(p.Session, at, make([]byte, s.n*s.size))
	perLine := max(1, min(16/s.size, 8))
	for k := 0; k+s.size <= len(data); k += perLine * s.size {
		var words []string
		for w := k; w < min(k+perLine*s.size, len(data)-s.size+1); w += s.size {
			words = append(words, s.word(data[w:w+s.size], arch, p.symbol))
		}
		p.printf("%#x:  %s\n", uint64(at)+uint64(k), strings.Join(words, "  "))
	}
	if len(data) < s.n*s.size && err == nil { // return the error of the first unreadable byte
		err = p.Session.ReadMemory(make([]byte, 1), at+machine.Addr(len(data)))
	}
	return err
}

// symbol returns the name of the function at an address, or "".
func (p *Prompt) symbol(addr machine.Addr) string {
	v, err := p.Session.View()
	if err != nil {
		return ""
	}
	if name := v.Space().NameOf(addr); !strings.HasPrefix(name, "0x") {
		return " <" + p.Printer.Printable(name) + ">"
	}
	return ""
}

// word formats one word.
func (s shown) word(raw []byte, arch *machine.Arch, symbol func(machine.Addr) string) string {
	v := arch.Uint(raw)
	shift := 64 - 8*s.size
	signed := int64(v<<shift) >> shift
	switch s.format {
	case 'd':
		return strconv.FormatInt(signed, 10)
	case 'u':
		return strconv.FormatUint(v, 10)
	case 'o':
		return fmt.Sprintf("%#o", v)
	case 'c':
		return fmt.Sprintf("%d %s", signed, strconv.QuoteRuneToASCII(rune(v&0xff)))
	case 'a':
		return fmt.Sprintf("%#x%s", v, symbol(machine.Addr(v)))
	}
	return fmt.Sprintf("0x%0*x", 2*s.size, v)
}

// strings prints strings that end with a zero byte.
func (p *Prompt) strings(at machine.Addr, n int) error {
	for range n {
		data, err := machine.ReadSome(p.Session, at, make([]byte, maxString))
		end := strings.IndexByte(string(data), 0)
		more := ""
		switch {
		case len(data) == 0:
			return err
		case end < 0:
			end, more = len(data), "..."
		}
		text := string(data[:end])
		if !utf8.ValidString(text) {
			text = strings.ToValidUTF8(text, "\uFFFD")
		}
		p.printf("%#x:  %s%s\n", uint64(at), strconv.QuoteToGraphic(text), more)
		at += machine.Addr(end + 1)
	}
	return nil
}
