package ir

import "strings"

// LLVM prints modules in one form: a body begins after the line that ends in '{' and ends at the line that begins with '}', and each node of metadata
// has its line. The functions here find such ends with searches for single bytes, for which processors have instructions that take many bytes at a
// time, and report when they are not certain. Only speed depends on them: where they are not certain, scanBalanced and the lexer read every byte.

// quickBody returns where a body ends whose bracket opens at pos: the position past
// the closing bracket, and how many lines lie between. It returns -1 where the text is
// not as LLVM prints it, or where stars matter and the body may have one.
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
		// A line that is not balanced ends the search here: scanBalanced may find the end
		// in it, and to go on after each such line could take forever.
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
		balanced != strings.Count(body, "{"), // one is opened in a line that closes none
		!linesHoldTheirStrings(body):
		return -1, 0
	}
	return at + 1, strings.Count(body, "\n")
}

// pairedBrackets counts the pairs of curly brackets in a line. ok reports whether all brackets are paired, and certainly outside of strings and
// comments.
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

// linesHoldTheirStrings reports whether every line begins outside strings: whether quotation
// marks, taken two by two, never have a line's end between them. (In a line whose marks
// pair up, those before a comment do too, so that it is one; and it ends with the line.)
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

// quickMetadata returns where a run of lines ends that begins at the current token, each of
// which is one node of metadata and no more, !7 = … or !name = …; and how many lines
// those are.
func (p *parser) quickMetadata() (past, lines int) {
	src := p.src[:p.end]
	pos := p.tok.pos
	for pos < len(src) && src[pos] == '!' {
		n := strings.IndexByte(src[pos:], '\n')
		// A line with a function in it has an @.
		if n < 0 || p.functions.before(src, pos, pos+n) || !p.star && p.stars.before(src, pos, pos+n) || !metadataLine(src[pos:pos+n]) {
			break
		}
		pos += n + 1
		lines++
	}
	return pos, lines
}

// metadataLine reports whether a line has the form of one whole node, or of several things none of which defines a name. The text between the
// brackets is read only when the node is asked for.
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

// mark is the next position of a byte in the source, so that a rare byte is not searched for again and again.
type mark struct {
	char byte
	next int
}

// before reports whether the byte occurs from pos to before end. Its positions must not decrease from one call to the next.
func (m *mark) before(src string, pos, end int) bool {
	if m.next < pos {
		m.next = len(src)
		if n := strings.IndexByte(src[pos:], m.char); n >= 0 {
			m.next = pos + n
		}
	}
	return m.next < end
}
