package ir

import "strings"

// What LLVM prints has one shape: a body begins after the line that ends in '{' and
// ends at the line that begins with '}', and each node of metadata has its line. The
// functions here find such ends with the searches for single bytes that processors do
// many bytes at a time, and say so when they are not certain. Nothing depends on them
// but time: where they are not, scanBalanced and the lexer read every byte.

// quickBody returns where a body ends whose bracket opens at pos: the position past
// the closing bracket, and how many lines lie between. It returns -1 where the text is
// not as LLVM prints it. With stars, it must know that there is no * in the body.
func quickBody(src string, pos, end int, stars bool) (past, lines int) {
	src = src[:end]
	if pos+1 >= end || src[pos+1] != '\n' {
		return -1, 0
	}
	closed, inner := pos, 0
	for {
		n := strings.IndexByte(src[closed+1:], '}')
		if n < 0 {
			return -1, 0
		}
		closed += n + 1
		if src[closed-1] == '\n' {
			break
		}
		inner++
	}
	body := src[pos+1 : closed]
	if stars && strings.IndexByte(body, '*') >= 0 || !linesHoldTheirStrings(body) || !linesHoldTheirBrackets(body, inner) {
		return -1, 0
	}
	return closed + 1, strings.Count(body, "\n")
}

// linesHoldTheirStrings says whether every line begins outside strings and comments:
// whether quotation marks, taken two by two, never have a line's end between them. (A
// mark in a comment has then its partner in the same comment, or before it in the line
// where it is the end of a string that holds a semicolon.)
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

// linesHoldTheirBrackets says whether each line of a body opens as many curly brackets
// as it closes, and closes none before. closing is how many of them close in all.
func linesHoldTheirBrackets(body string, closing int) bool {
	for {
		n := strings.IndexByte(body, '{')
		if n < 0 {
			return closing == 0 // else one is closed in a line without an opening one
		}
		start := strings.LastIndexByte(body[:n], '\n') + 1
		end := n + strings.IndexByte(body[n:], '\n') // a body's last byte is a line's end
		depth := 0
		for _, c := range []byte(body[start:end]) {
			switch c {
			case '{':
				depth++
			case '}':
				closing--
				depth--
			case '"', ';': // the bracket may be part of a string or a comment
				return false
			}
			if depth < 0 {
				return false
			}
		}
		if depth != 0 {
			return false
		}
		body = body[end:]
	}
}

// quickMetadata returns where a run of lines ends that begins at pos, each of which is
// one node of metadata, !7 = … or !name = …; and how many lines those are. With stars,
// it stops before a line with a *.
func quickMetadata(src string, pos, end int, stars bool) (past, lines int) {
	src = src[:end]
	for pos < end && src[pos] == '!' {
		n := strings.IndexByte(src[pos:], '\n')
		if n < 0 || stars && strings.IndexByte(src[pos:pos+n], '*') >= 0 || !metadataLine(src[pos:pos+n]) {
			break
		}
		pos += n + 1
		lines++
	}
	return pos, lines
}

// metadataLine says whether a line has the shape of one whole node. What lies between
// the brackets is looked at only when somebody asks for it.
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
	if rest[0] != '!' || isDigit(name[0]) && !isNumber(name) {
		return false
	}
	last := rest[len(rest)-1]
	return (last == '}' || last == ')') && linesHoldTheirStrings(rest)
}
