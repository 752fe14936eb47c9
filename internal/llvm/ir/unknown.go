package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Warning reports a word that no supported release of LLVM has and that may be ignored: a fork's calling convention, or an attribute of a later release.
// Its effect is unknown.
type Warning struct {
	Line  int    // line of its first occurrence
	What  string // "calling convention", "attribute", "flag", …
	Word  string // the word, cut to maxWarned bytes
	Count int    // number of occurrences in the parsed text
}

// String returns the unknown word and its kind, without the line.
func (w Warning) String() string {
	times := ""
	if w.Count > 1 {
		times = fmt.Sprintf(" (%d times)", w.Count)
	}
	return fmt.Sprintf("unknown %s '%s'%s", w.What, w.Word, times)
}

// convention is the value of [Warning].What for an unknown calling convention. The parser keeps the names of these.
const convention = "calling convention"

// Meaning describes the parser's treatment of the word.
func (w Warning) Meaning() string {
	if w.What == convention {
		return "the places of its arguments and results are unknown"
	}
	return "its effect is unknown; it is ignored"
}

// These limit the list of unknown words.
const (
	maxWarnings = 64
	maxWarned   = 64
	maxAhead    = 16 // number of words that are examined before a type
)

// unknowns holds the warnings of a module.
type unknowns struct {
	list []Warning
	more int // occurrences of words that did not fit into the list
}

// Warnings returns the unknown words, each once, ordered by the line of their first occurrence, and the number of occurrences that did not fit into the
// list. Words of a body are included once it is parsed ([Func.Body]).
func (m *Module) Warnings() (list []Warning, more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list = slices.Clone(m.unknown.list)
	slices.SortStableFunc(list, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
	return list, m.unknown.more
}

// warn records an unknown word.
func (u *unknowns) warn(tok token, what string) {
	word := strings.ToValidUTF8(tok.text[:min(len(tok.text), maxWarned)], "?")
	for i := range u.list {
		if w := &u.list[i]; w.Word == word && w.What == what {
			w.Count, w.Line = w.Count+1, min(w.Line, tok.line)
			return
		}
	}
	if len(u.list) == maxWarnings {
		u.more++
		return
	}
	u.list = append(u.list, Warning{tok.line, what, word, 1})
}

// skipUnknown skips an unknown word and its text in brackets, if follows reports that the next text fits an unknown word rather than a mistake.
func (p *typeParser) skipUnknown(what string, follows func() bool) bool {
	tok := p.tok
	if tok.kind != tokWord || isTypeWord(tok.text) || isKnown(tok.text) || p.err != nil {
		return false
	}
	before := p.lexer
	p.next()
	if p.isPunct('(') {
		p.skipBalanced()
	}
	if p.err != nil || !follows() {
		p.lexer = before
		return false
	}
	p.m.unknown.warn(tok, what)
	return true
}

// isKnown reports whether a word has a meaning elsewhere in IR. Such a word in a wrong position is a mistake and not an unknown word.
func isKnown(word string) bool {
	_, op := opOf[word]
	return op || flagWords[word] != 0 || linkages[word] || visibleWords[word] || conventions[word] || attributeNames[word] ||
		intPredicates[word] || floatPredicates[word] || orderings[word] || kindsOfGlobal[word] || keywords[word]
}

// keywords lists the words of IR that none of the other tables in isKnown contains.
var keywords = words(`addrspace alignstack asm atomic attributes blockaddress c catch cc cleanup comdat datalayout declare define
	distinct dso_local_equivalent false filter from gc inrange inteldialect module musttail no_cfi none notail null opaque partition
	personality poison prefix prologue ptrauth section sideeffect source_filename splat swifterror syncscope tail target
	thread_local to triple true type undef unwind uselistorder uselistorder_bb volatile vscale weak within x zeroinitializer`)

// ahead scans the words up to the next type without moving the parser. It reports whether there is a type, and whether any returns true for one of the
// words before it.
func (p *typeParser) ahead(any func(word string) bool) (typed, found bool) {
	before := p.lexer
	defer func() { p.lexer = before }()
	line := p.tok.line
	for range maxAhead {
		if p.tok.kind == tokString { // a string attribute
			if p.next(); p.accept('=') {
				p.next()
			}
			continue
		}
		if p.tok.kind != tokWord || isTypeWord(p.tok.text) {
			return p.typeHere(line), found
		}
		found = found || any != nil && any(p.tok.text)
		p.next()
		if p.isPunct('(') {
			p.skipBalanced()
		} else if p.accept('=') || p.tok.kind == tokInt { // align 8
			p.next()
		}
	}
	return false, found
}

// typeAhead reports whether a type follows, possibly after other words.
func (p *typeParser) typeAhead() bool {
	typed, _ := p.ahead(nil)
	return typed
}

// typeHere reports whether a type begins here. It may move the parser.
func (p *typeParser) typeHere(line int) bool {
	switch {
	case p.tok.kind == tokWord:
		return isTypeWord(p.tok.text)
	case p.tok.kind == tokLocal: // a type name if a value, a star or a parenthesis follows; otherwise an operand
		p.next()
		switch p.tok.kind {
		case tokLocal, tokGlobal, tokWord, tokInt, tokFloat, tokBytes:
			return p.tok.line == line
		}
		return p.isPunct('*') || p.isPunct('(')
	}
	return p.isPunct('<') || p.isPunct('{') || p.isPunct('[')
}

// isTypeWord reports whether a word is a type or begins one.
func isTypeWord(word string) bool {
	_, plain := plainTypes[word]
	return plain || word == "target" || len(word) > 1 && word[0] == 'i' && isNumber(word[1:])
}

// beginsLine reports whether the token is the first of its line.
func (p *attrParser) beginsLine() bool {
	before := strings.TrimRight(p.src[:p.tok.pos], " \t")
	return before == "" || before[len(before)-1] == '\n'
}

// place is the position of an attribute list. It determines the text that may follow an unknown attribute.
type place uint8

const (
	beforeType  place = iota // before the type of a result
	ofParameter              // after the type of a parameter
	ofArgument               // after the type of an argument
	afterList                // after the parameters, the arguments or a variable's properties
	inGroup                  // inside attributes #0 = { … }
)

// skipUnknownAttribute skips an unknown attribute.
func (p *attrParser) skipUnknownAttribute(at place) bool {
	if at == afterList && p.beginsLine() {
		return false
	}
	const what = "attribute"
	switch at {
	case beforeType:
		return p.skipUnknown(what, p.typeAhead)
	case ofParameter:
		return p.skipUnknown(what, func() bool {
			return p.tok.kind == tokLocal || p.tok.kind == tokWord || p.tok.kind == tokString || p.isPunct(',') || p.isPunct(')')
		})
	case ofArgument:
		return p.skipUnknown(what, func() bool { return !p.isPunct(',') && !p.isPunct(')') && p.tok.kind != tokEOF })
	}
	return p.skipUnknown(what, func() bool {
		if p.accept('=') {
			if p.tok.kind != tokInt && p.tok.kind != tokString {
				return false
			}
			p.next()
		}
		return true
	})
}
