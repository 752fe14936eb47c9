package ir

import (
	"cmp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// lazyMetadata holds the places of the numbered nodes of a module's metadata. Nodes that were passed in stretches are found when one is first asked
// for; of the millions that a module may have, few are ever needed.
type lazyMetadata struct {
	stretches []span // of the source: lines that are one node each, see quickMetadata

	once  sync.Once
	nodes []metadataNode // ascending by number, once found
}

type metadataNode struct {
	number uint64
	pos    int // of the exclamation mark of its number
}

// find returns the place of the node with that number.
func (l *lazyMetadata) find(src string, number uint64) (int, bool) {
	l.once.Do(func() { l.index(src) })
	at, ok := slices.BinarySearchFunc(l.nodes, number, func(n metadataNode, number uint64) int { return cmp.Compare(n.number, number) })
	if !ok {
		return 0, false
	}
	return l.nodes[at].pos, true
}

// index lists the nodes of the stretches.
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

// debugNode reads the metadata node at a place of the source, or the node that a reference there, such as !7, names: its kind, as DILocation, and the
// place of the value of each field. ok reports whether there is one.
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
		l.next() // !
		l.next() // the number
		l.next() // =
		if l.next(); l.tok.kind == tokWord {
			l.next() // distinct
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

// debugString is the string at a place, or "".
func (m *Module) debugString(at span) string {
	l := lexer{file: m.Name, src: m.src, pos: at.pos, end: at.end, line: 1}
	if l.next(); l.tok.kind != tokString {
		return ""
	}
	return l.tok.text
}

// debugNumber is the number at a place, or 0.
func (m *Module) debugNumber(at span) int {
	l := lexer{file: m.Name, src: m.src, pos: at.pos, end: at.end, line: 1}
	l.next()
	n, err := strconv.ParseUint(l.tok.text, 10, 32)
	if l.tok.kind != tokInt || err != nil {
		return 0
	}
	return int(n)
}
