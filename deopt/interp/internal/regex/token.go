package regex

// Flags of regcomp, with glibc's numbers.
type Flags int

// REG_EXTENDED and its kin.
const (
	Extended   Flags = 1
	IgnoreCase Flags = 2
	Newline    Flags = 4
	NoSub      Flags = 8
)

// kind is the kind of a token.
type kind uint8

const (
	tokEnd kind = iota
	tokByte
	tokSet    // . \w [a-z]
	tokAnchor // ^ $ \< \> \b \B \` \'
	tokAlt
	tokStar
	tokPlus
	tokOption
	tokOpen
	tokClose
	tokOpenBound
	tokCloseBound
	tokBracket
	tokBackRef
	tokBackslash // the expression ends in one
)

// context describes a byte, or an end of the subject, to the place beside it; constraint is the requirement of a place on both.
type (
	context    uint8
	constraint uint16
)

const (
	word context = 1 << iota
	newline
	begin
	end
)

const (
	prevWord constraint = 1 << iota
	prevNotWord
	prevNewline
	prevBegin
	nextWord
	nextNotWord
	nextNewline
	nextEnd
	eitherWord // \b and \B before they are taken apart
	neitherWord
)

func (c constraint) takesPrev(x context) bool {
	return !(c&prevWord != 0 && x&word == 0 || c&prevNotWord != 0 && x&word != 0 ||
		c&prevNewline != 0 && x&newline == 0 || c&prevBegin != 0 && x&begin == 0)
}

func (c constraint) takesNext(x context) bool {
	return !(c&nextWord != 0 && x&word == 0 || c&nextNotWord != 0 && x&word != 0 ||
		c&nextNewline != 0 && x&newline == 0 || c&nextEnd != 0 && x&end == 0)
}

// token is one symbol of an expression outside of brackets.
type token struct {
	kind kind
	c    byte // as it stands there; the digit of a back reference
	set  *set
	at   constraint
}

// lexer reads an expression. Without regard to case both it and the subject are read in upper case, but for what follows a
// backslash and names of classes.
type lexer struct {
	raw, text []byte
	at        int
	flags     Flags
}

func newLexer(pattern []byte, flags Flags) *lexer {
	l := &lexer{raw: pattern, text: pattern, flags: flags}
	if flags&IgnoreCase != 0 {
		l.text = upper(pattern)
	}
	return l
}

func (l *lexer) extended() bool { return l.flags&Extended != 0 }

// next takes a token. caret is true where a ^ would be at the start of a part.
func (l *lexer) next(caret bool) token {
	t, n := l.peek(caret)
	l.at += n
	return t
}

func (l *lexer) peek(caret bool) (token, int) {
	if l.at >= len(l.text) {
		return token{}, 0
	}
	c := l.text[l.at]
	if c == '\\' {
		if l.at+1 >= len(l.text) {
			return token{kind: tokBackslash, c: c}, 1
		}
		return l.escaped(l.raw[l.at+1]), 2
	}
	t := token{kind: tokByte, c: c}
	switch c {
	case '*':
		t.kind = tokStar
	case '[':
		t.kind = tokBracket
	case '.':
		t.kind, t.set = tokSet, l.dot()
	case '^':
		if l.extended() || caret || l.at == 0 {
			t.kind, t.at = tokAnchor, prevNewline
		}
	case '$':
		if l.extended() || l.endsPart() {
			t.kind, t.at = tokAnchor, nextNewline
		}
	case '|', '+', '?', '{', '}', '(', ')':
		if l.extended() {
			t.kind = operators[c]
		}
	}
	return t, 1
}

var operators = map[byte]kind{
	'|': tokAlt, '+': tokPlus, '?': tokOption, '{': tokOpenBound, '}': tokCloseBound, '(': tokOpen, ')': tokClose,
}

// endsPart reports whether the $ at hand ends a basic expression or a part of it.
func (l *lexer) endsPart() bool {
	rest := l.text[l.at+1:]
	return len(rest) == 0 || len(rest) > 1 && rest[0] == '\\' && (rest[1] == '|' || rest[1] == ')')
}

var escapes = map[byte]constraint{
	'<': prevNotWord | nextWord, '>': prevWord | nextNotWord, 'b': eitherWord, 'B': neitherWord, '`': prevBegin, '\'': nextEnd,
}

func (l *lexer) escaped(c byte) token {
	t := token{kind: tokByte, c: c}
	switch c {
	case '<', '>', 'b', 'B', '`', '\'':
		t.kind, t.at = tokAnchor, escapes[c]
	case 'w', 'W', 's', 'S':
		t.kind, t.set = tokSet, new(set)
		switch c {
		case 'w', 'W':
			t.set.addIf(isWord)
		default:
			t.set.addIf(classes["space"])
		}
		if c == 'W' || c == 'S' {
			t.set.invert()
		}
	case '1', '2', '3', '4', '5', '6', '7', '8', '9':
		t.kind = tokBackRef
	default:
		if k, ok := operators[c]; ok && !l.extended() {
			t.kind = k
		}
	}
	return t
}

// dot is any byte but NUL, and but a newline where that ends lines.
func (l *lexer) dot() *set {
	s := new(set)
	s.add(0)
	if l.flags&Newline != 0 {
		s.add('\n')
	}
	s.invert()
	return s
}

func upper(s []byte) []byte {
	u := make([]byte, len(s))
	for k, c := range s {
		if c >= 'a' && c <= 'z' {
			c -= 'a' - 'A'
		}
		u[k] = c
	}
	return u
}

// set is a set of bytes.
type set [4]uint64

func (s *set) add(c byte)      { s[c/64] |= 1 << (c % 64) }
func (s *set) has(c byte) bool { return s[c/64]>>(c%64)&1 != 0 }

func (s *set) invert() {
	for k := range s {
		s[k] = ^s[k]
	}
}

func (s *set) addIf(f func(c byte) bool) {
	for c := range 256 {
		if f(byte(c)) {
			s.add(byte(c))
		}
	}
}

func between(c, low, high byte) bool { return c >= low && c <= high }
func isLetter(c byte) bool           { return between(c|0x20, 'a', 'z') }
func isDigit(c byte) bool            { return between(c, '0', '9') }
func isWord(c byte) bool             { return isLetter(c) || isDigit(c) || c == '_' }
func isGraph(c byte) bool            { return between(c, 0x21, 0x7e) }

// classes holds the classes of the locale "C" (XBD 7.3.1).
var classes = map[string]func(c byte) bool{
	"alpha": isLetter, "digit": isDigit, "graph": isGraph,
	"alnum":  func(c byte) bool { return isLetter(c) || isDigit(c) },
	"upper":  func(c byte) bool { return between(c, 'A', 'Z') },
	"lower":  func(c byte) bool { return between(c, 'a', 'z') },
	"punct":  func(c byte) bool { return isGraph(c) && !isLetter(c) && !isDigit(c) },
	"print":  func(c byte) bool { return isGraph(c) || c == ' ' },
	"space":  func(c byte) bool { return c == ' ' || between(c, '\t', '\r') },
	"blank":  func(c byte) bool { return c == ' ' || c == '\t' },
	"cntrl":  func(c byte) bool { return c < 0x20 || c == 0x7f },
	"xdigit": func(c byte) bool { return isDigit(c) || between(c|0x20, 'a', 'f') },
}
