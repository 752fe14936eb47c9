package ir

import "strings"

// LLVM prints modules in a fixed layout: a body begins after a line that ends in '{' and ends at a line that begins with '}', and each metadata node is on
// its own line. The functions here use this to find ends with searches for single bytes, which are fast because processors have vector instructions for them.
// They report when they are uncertain; then scanBalanced and the lexer read every byte. So these functions affect only speed.

// quickBody returns the position after the closing bracket of the body whose opening bracket is at pos, and the number of lines between. It returns -1 if
// the text does not have LLVM's layout, or if stars is set and the body may contain a star.
func quickBody(src string, pos, end int, stars bool) (past, lines int) {
	src = src[:end]
	if pos+1 >= end || src[pos+1] != '\n' {
		return -1, 0
	}
	at, balanced := pos+1, 0
	for {
		n := strings.IndexByte(src[at:], '}')
		if n < 0 {
			return -1, 0
		}
		if at += n; src[at-1] == '\n' {
			break
		}
		// An unbalanced line ends the search: scanBalanced may find the end of the body in it. Searching on after each such line could take quadratic time.
		start := strings.LastIndexByte(src[:at], '\n') + 1
		n = strings.IndexByte(src[at:], '\n')
		if n < 0 {
			return -1, 0
		}
		at += n
		pairs, ok := pairedBrackets(src[start:at])
		if !ok {
			return -1, 0
		}
		balanced += pairs
	}
	body := src[pos+1 : at]
	switch {
	case stars && strings.IndexByte(body, '*') >= 0,
		balanced != strings.Count(body, "{"), // a bracket is opened on a line without a closing one
		!linesHoldTheirStrings(body):
		return -1, 0
	}
	return at + 1, strings.Count(body, "\n")
}

// pairedBrackets counts the pairs of curly brackets in a line. ok reports whether all brackets are paired and the line has neither strings nor comments.
func pairedBrackets(line string) (pairs int, ok bool) {
	depth := 0
	for i := range len(line) {
		switch line[i] {
		case '{':
			depth++
		case '}':
			depth--
			pairs++
		case '"', ';':
			return 0, false
		}
		if depth < 0 {
			return 0, false
		}
	}
	return pairs, depth == 0
}

// linesHoldTheirStrings reports whether no string spans several lines: no pair of quotation marks has a newline between them. Quotation marks in comments
// count too, so an unpaired one makes the result false.
func linesHoldTheirStrings(text string) bool {
	for {
		n := strings.IndexByte(text, '"')
		if n < 0 {
			return true
		}
		text = text[n+1:]
		n = strings.IndexByte(text, '"')
		if n < 0 || strings.IndexByte(text[:n], '\n') >= 0 {
			return false
		}
		text = text[n+1:]
	}
}

// quickMetadata returns the end of a sequence of lines that starts at the current token, and the number of these lines. Each line holds exactly one
// metadata node, !7 = … or !name = ….
func (p *moduleParser) quickMetadata() (past, lines int) {
	src := p.src[:p.end]
	pos := p.tok.pos
	for pos < len(src) && src[pos] == '!' {
		n := strings.IndexByte(src[pos:], '\n')
		// A line that refers to a function contains an @.
		if n < 0 || p.functions.before(src, pos, pos+n) || !p.star && p.stars.before(src, pos, pos+n) || !metadataLine(src[pos:pos+n]) {
			break
		}
		pos += n + 1
		lines++
	}
	return pos, lines
}

// metadataLine reports whether a line looks like one complete node. It may also hold several items, but then none of them defines a name. The text between
// the brackets is parsed only when the node is needed.
func metadataLine(line string) bool {
	at := 1
	for at < len(line) && isNameChar(line[at]) {
		at++
	}
	name, rest := line[1:at], line[at:]
	if name == "" || len(rest) < len(" = !{}") || rest[:3] != " = " {
		return false
	}
	rest = strings.TrimPrefix(rest[3:], "distinct ")
	if rest == "" || rest[0] != '!' || isDigit(name[0]) && !isNumber(name) {
		return false
	}
	last := rest[len(rest)-1]
	return (last == '}' || last == ')') && strings.IndexByte(rest, '=') < 0 && linesHoldTheirStrings(rest)
}

// mark caches the next position of a byte in the source, so that a rare byte is not searched for repeatedly.
type mark struct {
	char byte
	next int
}

// before reports whether the byte occurs in [pos, end). pos must not decrease between calls.
func (m *mark) before(src string, pos, end int) bool {
	if m.next < pos {
		m.next = len(src)
		if n := strings.IndexByte(src[pos:], m.char); n >= 0 {
			m.next = pos + n
		}
	}
	return m.next < end
}
