package ir

import "strings"

// scanBalanced returns the position after the bracket that closes the one at pos, the number of lines between the two, and whether a * occurs between
// them outside strings and comments. It ignores other kinds of brackets, so that a missing one in a body does not hide the body's end. It returns -1
// if the bracket is not closed before end.
func scanBalanced(src string, pos, end int) (past, lines int, star bool) {
	src = src[:end]
	opening := src[pos]
	closing := map[byte]byte{'(': ')', '[': ']', '{': '}'}[opening]
	depth := 0
	for i := pos; i < len(src); i++ {
		// Most of the time to open a module is spent in this loop, which skips nearly all of its bytes.
		for i < len(src) && !scanStops[src[i]] {
			i++
		}
		if i == len(src) {
			break
		}
		switch c := src[i]; c {
		case opening:
			depth++
		case closing:
			if depth--; depth == 0 {
				return i + 1, strings.Count(src[pos:i], "\n"), star
			}
		case '*':
			star = true
		case '"', ';':
			stop := byte('\n')
			if c == '"' {
				stop = '"'
			}
			n := strings.IndexByte(src[i+1:], stop)
			if n < 0 {
				return -1, 0, star
			}
			i += n + 1
		}
	}
	return -1, 0, star
}

// scanStops holds the bytes that scanBalanced must examine.
var scanStops = [256]bool{
	'(': true, '[': true, '{': true, ')': true, ']': true, '}': true, '*': true, '"': true, ';': true,
}

// skipBalanced skips to the bracket that closes the current token, and returns the text between.
func (l *lexer) skipBalanced() string {
	if l.err != nil {
		return ""
	}
	start, line := l.tok.pos, l.tok.line
	past, lines, star := scanBalanced(l.src, start, l.end)
	if past < 0 {
		l.fail(start, "%q is never closed", l.src[start])
		return ""
	}
	l.pos, l.line, l.star = past, line+lines, l.star || star
	l.next()
	return l.src[start:past]
}

// skipMetadata skips one metadata operand: !7, !"text", !{…}, !DIFile(…).
func (l *lexer) skipMetadata() {
	switch {
	case l.tok.kind == tokMetadata:
		l.next()
		if l.isPunct('(') {
			l.skipBalanced()
		}
	case l.isPunct('!'):
		l.next()
		switch {
		case l.isPunct('{'):
			l.skipBalanced()
		case l.tok.kind == tokInt, l.tok.kind == tokString:
			l.next()
		default:
			l.fail(l.tok.pos, "expected metadata")
		}
	default:
		l.fail(l.tok.pos, "expected metadata")
	}
}

// skipAttachments skips all !name !7 pairs, and sets debug to the position of the node of !dbg. Only functions have several without commas between them.
func (l *lexer) skipAttachments(debug *span) {
	for l.tok.kind == tokMetadata {
		l.skipAttachment(debug)
	}
}

// skipAttachment skips one !name !7, and sets debug to the position of the node if it is a !dbg.
func (l *lexer) skipAttachment(debug *span) {
	name := l.tok.text
	l.next()
	start := l.tok.pos
	l.skipMetadata()
	if name == "dbg" {
		*debug = span{start, l.tok.pos}
	}
}

// span is a part of a module's source, from pos up to but not including end.
type span struct{ pos, end int }

func (l *lexer) isPunct(c byte) bool { return l.tok.kind == tokPunct && l.tok.ch == c }
