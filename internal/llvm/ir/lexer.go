package ir

import (
	"fmt"
	"strings"
)

// tokenKind is the kind of a token of LLVM IR.
type tokenKind uint8

const (
	tokEOF tokenKind = iota
	tokPunct
	tokWord     // a keyword, a type, an opcode
	tokLabel    // name:
	tokLocal    // %name, %7
	tokGlobal   // @name, @7
	tokComdat   // $name
	tokGroup    // #7
	tokMetadata // !name
	tokSummary  // ^7
	tokRecord   // #dbg_value and its like
	tokString   // "…"
	tokBytes    // c"…"
	tokInt      // 42, -1, u0x2A, s0xFF
	tokFloat    // 1.0, 0x3FF0000000000000, 0xK…
	tokEllipsis
)

// token is one token. text is the name without its sigil and quotation marks, the word, or the number as written.
type token struct {
	kind tokenKind
	ch   byte // tokPunct
	pos  int
	line int
	text string
}

// lexer reads a part of a module's source. After its first error it returns only end of file. So callers need not check for errors after each token, and
// every loop up to the end of the file ends.
type lexer struct {
	file string
	src  string
	pos  int
	end  int
	line int // line number of pos
	tok  token
	err  *Error
	star bool // a * was read, which only typed pointers have
}

// fail records an error at a byte of the source, unless an error is already recorded.
func (l *lexer) fail(pos int, format string, args ...any) {
	if l.err == nil {
		l.err = errorAt(l.file, l.src, pos, fmt.Sprintf(format, args...))
	}
	l.pos = l.end
	l.tok = token{kind: tokEOF, pos: l.end, line: l.line}
}

// next reads the next token.
func (l *lexer) next() {
	l.space()
	l.tok = token{kind: tokEOF, pos: l.pos, line: l.line}
	if l.pos >= l.end || l.err != nil {
		return
	}
	start := l.pos
	switch c := l.src[start]; c {
	case '%':
		l.name(tokLocal)
	case '@':
		l.name(tokGlobal)
	case '$':
		l.name(tokComdat)
	case '#', '^':
		l.hash(c)
	case '!':
		l.pos++
		if name := l.run(metadataChar); name != "" && !isDigit(name[0]) {
			l.tok.kind, l.tok.text = tokMetadata, name
			return
		}
		l.pos = start
		l.punct()
	case '"':
		s, ok := l.quoted()
		if !ok {
			return
		}
		l.tok.kind, l.tok.text = tokString, s
		if l.pos < l.end && l.src[l.pos] == ':' {
			l.pos++
			l.tok.kind, l.tok.text = tokLabel, l.checkName(start, keepNumber(s))
		}
	default:
		if isNameChar(c) || c == '+' {
			l.word()
			return
		}
		l.punct()
	}
}

// space skips white space and comments.
func (l *lexer) space() {
	for l.pos < l.end {
		switch l.src[l.pos] {
		case '\n':
			l.line++
		case ' ', '\t', '\r', '\f', '\v', 0:
		case ';':
			n := strings.IndexByte(l.src[l.pos:l.end], '\n')
			if n < 0 {
				l.pos = l.end
				return
			}
			l.pos += n
			continue
		default:
			return
		}
		l.pos++
	}
}

func (l *lexer) punct() {
	l.tok.kind, l.tok.ch = tokPunct, l.src[l.pos]
	switch l.tok.ch {
	case '=', ',', '[', ']', '{', '}', '(', ')', '<', '>', '!', '|', ':', '/':
	case '*':
		l.star = true
	default:
		l.fail(l.pos, "unexpected character %q", l.tok.ch)
		return
	}
	l.pos++
}

// run reads bytes of a class and returns them.
func (l *lexer) run(class uint8) string {
	start, pos := l.pos, l.pos
	for src := l.src[:l.end]; pos < len(src) && classes[src[pos]]&class != 0; {
		pos++
	}
	l.pos = pos
	return l.src[start:pos]
}

// quoted reads "…" and replaces its escapes. It may span several lines.
func (l *lexer) quoted() (string, bool) {
	n := strings.IndexByte(l.src[l.pos+1:l.end], '"')
	if n < 0 {
		l.fail(l.pos, "string has no end")
		return "", false
	}
	raw := l.src[l.pos+1 : l.pos+1+n]
	l.line += strings.Count(raw, "\n")
	l.pos += n + 2
	return unescape(raw), true
}

// name reads %name, %"name" or %7, or the same with another sigil.
func (l *lexer) name(kind tokenKind) {
	start := l.pos
	l.pos++
	l.tok.kind = kind
	switch {
	case l.pos >= l.end:
		l.fail(start, "a name is missing after %q", l.src[start])
	case l.src[l.pos] == '"':
		if s, ok := l.quoted(); ok {
			l.tok.text = l.checkName(start, keepNumber(s))
		}
	case isDigit(l.src[l.pos]) && kind != tokComdat:
		l.tok.text = l.number(start)
	default:
		if l.tok.text = l.run(nameChar); l.tok.text == "" {
			l.fail(start, "a name is missing after %q", l.src[start])
			return
		}
		// A label may begin with a dollar sign, like a comdat.
		if kind == tokComdat && l.pos < l.end && l.src[l.pos] == ':' {
			l.tok.kind, l.tok.text = tokLabel, l.src[start:l.pos]
			l.pos++
		}
	}
}

// checkName rejects a name with a zero byte. The name "" stands for an unnamed value.
func (l *lexer) checkName(pos int, name string) string {
	if strings.IndexByte(name, 0) >= 0 {
		l.fail(pos, "a name holds a zero byte")
	}
	return name
}

// number reads an id such as the 7 of %7, and removes leading zeros.
func (l *lexer) number(start int) string {
	digits := strings.TrimLeft(l.run(digit), "0")
	if len(digits) > 9 {
		l.fail(start, "number %s is too large", digits[:9]+"…")
		return "0"
	}
	if digits == "" {
		return "0"
	}
	return digits
}

// hash reads #7, ^7 and #dbg_value.
func (l *lexer) hash(c byte) {
	start := l.pos
	l.pos++
	switch {
	case l.pos < l.end && isDigit(l.src[l.pos]):
		l.tok.kind = tokGroup
		if c == '^' {
			l.tok.kind = tokSummary
		}
		l.tok.text = l.number(start)
	case c == '#' && l.pos < l.end && isKeywordChar(l.src[l.pos]):
		l.tok.kind, l.tok.text = tokRecord, l.run(keywordChar)
	default:
		l.fail(start, "a number is missing after %q", c)
	}
}

// word reads a keyword, a label, a number, or c"…".
func (l *lexer) word() {
	start := l.pos
	if strings.HasPrefix(l.src[start:l.end], `c"`) {
		l.pos++
		if s, ok := l.quoted(); ok {
			l.tok.kind, l.tok.text = tokBytes, s
		}
		return
	}
	text := l.run(nameChar)
	if text != "" && l.pos < l.end && l.src[l.pos] == ':' {
		l.tok.kind, l.tok.text = tokLabel, text
		if isNumber(text) {
			l.pos = start
			l.tok.text = l.number(start)
		}
		l.pos++
		return
	}
	l.pos = start
	switch {
	case strings.HasPrefix(text, "..."):
		l.pos += 3
		l.tok.kind = tokEllipsis
	case l.numeral():
	default:
		// A keyword ends as in LLVM: cc10 is cc and 10.
		word := l.run(keywordChar)
		if word == "" {
			l.fail(start, "unexpected character %q", l.src[start])
			return
		}
		if strings.HasPrefix(word, "cc") && isNumber(word[2:]) {
			word, l.pos = "cc", start+2
		}
		l.tok.kind, l.tok.text = tokWord, word
	}
}

// numeral reads an integer or a floating-point literal, and reports whether there was one.
func (l *lexer) numeral() bool {
	start := l.pos
	rest := l.src[start:l.end]
	switch first := rest[0]; {
	case first >= 'a' && first != 'u' && first != 's': // fast path: nearly all are words
		return false
	case strings.HasPrefix(rest, "u0x"), strings.HasPrefix(rest, "s0x"):
		l.pos += 3
		if l.run(hexDigit) == "" {
			l.pos = start
			return false
		}
		l.tok.kind = tokInt
	case strings.HasPrefix(rest, "0x"):
		l.pos += 2
		if l.pos < l.end && strings.IndexByte("KLMHR", l.src[l.pos]) >= 0 {
			l.pos++
		}
		l.run(hexDigit)
		l.tok.kind = tokFloat
	default:
		if rest[0] == '-' || rest[0] == '+' {
			l.pos++
		}
		if l.run(digit) == "" {
			l.pos = start
			return false
		}
		l.tok.kind = tokInt
		if l.pos < l.end && l.src[l.pos] == '.' {
			l.tok.kind = tokFloat
			l.pos++
			l.run(digit)
			l.exponent()
		}
	}
	l.tok.text = l.src[start:l.pos]
	return true
}

// exponent reads an exponent such as e+10 if it is complete.
func (l *lexer) exponent() {
	start := l.pos
	if l.pos < l.end && l.src[l.pos]|0x20 == 'e' {
		l.pos++
		if l.pos < l.end && (l.src[l.pos] == '+' || l.src[l.pos] == '-') {
			l.pos++
		}
		if l.run(digit) == "" {
			l.pos = start
		}
	}
}

// keepNumber puts a name that looks like a number in quotation marks.
func keepNumber(name string) string {
	if isNumber(name) {
		return `"` + name + `"`
	}
	return name
}
