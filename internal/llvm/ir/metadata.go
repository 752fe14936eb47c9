package ir

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// lazyMetadata holds the positions of the numbered metadata nodes of a module. Lines of nodes that the parser skipped are indexed on the first lookup,
// because few of the millions of nodes are ever needed.
type lazyMetadata struct {
	stretches []span // skipped parts of the source, with one node per line: see quickMetadata

	once  sync.Once
	nodes []metadataNode // ascending by number; filled on the first lookup
}

type metadataNode struct {
	number uint64
	pos    int // position of the exclamation mark before its number
}

// find returns the position of the node with a number.
func (l *lazyMetadata) find(src string, number uint64) (int, bool) {
	l.once.Do(func() { l.index(src) })
	at, ok := slices.BinarySearchFunc(l.nodes, number, func(n metadataNode, number uint64) int { return cmp.Compare(n.number, number) })
	if !ok {
		return 0, false
	}
	return l.nodes[at].pos, true
}

// index finds the nodes in the skipped parts.
func (l *lazyMetadata) index(src string) {
	for _, s := range l.stretches {
		for pos := s.pos; pos < s.end; {
			line := src[pos : pos+strings.IndexByte(src[pos:s.end], '\n')]
			digits := line[1:strings.IndexByte(line, ' ')]
			if number, err := strconv.ParseUint(digits, 10, 32); err == nil {
				l.nodes = append(l.nodes, metadataNode{number, pos})
			}
			pos += len(line) + 1
		}
	}
	byNumber := func(a, b metadataNode) int { return cmp.Compare(a.number, b.number) }
	if !slices.IsSortedFunc(l.nodes, byNumber) {
		slices.SortStableFunc(l.nodes, byNumber)
	}
}

// debugNode parses the metadata node at a position, or the node that a reference there such as !7 names. It returns its kind, such as DILocation, and the
// position of each field's value. ok is false if the node does not exist or is malformed.
func (m *Module) debugNode(at span) (kind string, fields map[string]span, ok bool) {
	l := lexer{file: m.Name, src: m.src, pos: at.pos, end: min(at.end, at.pos+maxNodeSize), line: 1}
	l.next()
	if l.isPunct('!') {
		l.next()
		number, err := strconv.ParseUint(l.tok.text, 10, 32)
		pos, found := 0, false
		if l.tok.kind == tokInt && err == nil {
			pos, found = m.metadata.find(m.src, number)
		}
		if !found {
			return "", nil, false
		}
		l = lexer{file: m.Name, src: m.src, pos: pos, end: min(len(m.src), pos+maxNodeSize), line: 1}
		l.next() // skip !
		l.next() // skip the number
		l.next() // skip =
		if l.next(); l.tok.kind == tokWord {
			l.next() // skip distinct
		}
	}
	kind = l.tok.text
	if l.tok.kind != tokMetadata {
		return "", nil, false
	}
	if l.next(); !l.isPunct('(') {
		return "", nil, false
	}
	fields = map[string]span{}
	for l.next(); l.tok.kind == tokLabel; {
		key := l.tok.text
		l.next()
		start := l.tok.pos
		for l.tok.kind != tokEOF && !l.isPunct(',') && !l.isPunct(')') {
			if l.isPunct('(') || l.isPunct('{') {
				l.skipBalanced()
				continue
			}
			l.next()
		}
		fields[key] = span{start, l.tok.pos}
		if l.isPunct(',') {
			l.next()
		}
	}
	return kind, fields, l.isPunct(')')
}

// debugString returns the string at a position, or "".
func (m *Module) debugString(at span) string {
	l := lexer{file: m.Name, src: m.src, pos: at.pos, end: at.end, line: 1}
	if l.next(); l.tok.kind != tokString {
		return ""
	}
	return l.tok.text
}

// debugNumber returns the number at a position, or 0.
func (m *Module) debugNumber(at span) int {
	l := lexer{file: m.Name, src: m.src, pos: at.pos, end: at.end, line: 1}
	l.next()
	n, err := strconv.ParseUint(l.tok.text, 10, 32)
	if l.tok.kind != tokInt || err != nil {
		return 0
	}
	return int(n)
}
