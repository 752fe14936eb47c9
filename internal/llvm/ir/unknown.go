package ir

import (
	"cmp"
	"fmt"
	"slices"
	"strings"
)

// Warning reports a word that no release of LLVM known here has, and that does no harm to ignore: a fork's calling convention, an attribute of a
// later release. Its effect is not known.
type Warning struct {
	Line  int    // where it stands first
	What  string // "calling convention", "attribute", "flag", …
	Word  string // at most maxWarned bytes of it
	Count int    // how often it stands there, in what was read so far
}

// String names the unknown word, without its line.
func (w Warning) String() string {
	times := ""
	if w.Count > 1 {
		times = fmt.Sprintf(" (%d times)", w.Count)
	}
	return fmt.Sprintf("unknown %s '%s'%s", w.What, w.Word, times)
}

// convention is the What of a Warning whose word is kept.
const convention = "calling convention"

// Meaning describes how the parser treated the word.
func (w Warning) Meaning() string {
	if w.What == convention {
		return "where arguments and results are is not known of it"
	}
	return "what it changes is not known; it is read as if it did not stand there"
}

// Bounds on the list of unknown words.
const (
	maxWarnings = 64
	maxWarned   = 64
	maxAhead    = 16 // words before a type
)

// unknowns are the warnings of a module.
type unknowns struct {
	list []Warning
	more int // different words that are not in the list, as they were met
}

// Warnings returns the unknown words, each once, ordered by the line where it occurs first, and the number of occurrences of others that did not fit
// into the list. The words of a body are included once it was parsed ([Func.Body]).
func (m *Module) Warnings() (list []Warning, more int) {
	m.mu.Lock()
	defer m.mu.Unlock()
	list = slices.Clone(m.unknown.list)
	slices.SortStableFunc(list, func(a, b Warning) int { return cmp.Compare(a.Line, b.Line) })
	return list, m.unknown.more
}

// warn notes that a word is not known.
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

// skipUnknown moves past an unknown word and its text in brackets, if follows reports that the text after it fits an unknown word rather than a
// mistake.
func (p *parser) skipUnknown(what string, follows func() bool) bool {
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

// isKnown reports whether a word has a meaning, so that in another place it is a mistake.
func isKnown(word string) bool {
	_, op := opOf[word]
	return op || flagWords[word] != 0 || linkages[word] || visibleWords[word] || conventions[word] || attributeNames[word] ||
		intPredicates[word] || floatPredicates[word] || orderings[word] || kindsOfGlobal[word] || keywords[word]
}

// keywords are all others.
var keywords = words(`addrspace alignstack asm atomic attributes blockaddress c catch cc cleanup comdat datalayout declare define
	distinct dso_local_equivalent false filter from gc inrange inteldialect module musttail no_cfi none notail null opaque partition
	personality poison prefix prologue ptrauth section sideeffect source_filename splat swifterror syncscope tail target
	thread_local to triple true type undef unwind uselistorder uselistorder_bb volatile vscale weak within x zeroinitializer`)

// ahead looks at the words from here on up to a type, and leaves the parser where it is. It returns whether there is a type, and whether any reports
// true for one of the words before it.
func (p *parser) ahead(any func(word string) bool) (typed, found bool) {
	before := p.lexer
	defer func() { p.lexer = before }()
	line := p.tok.line
	for range maxAhead {
		if p.tok.kind == tokString { // an attribute with a key
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

// typeAhead reports whether a type follows, perhaps after other words.
func (p *parser) typeAhead() bool {
	typed, _ := p.ahead(nil)
	return typed
}

// typeHere reports whether a type begins here. It may move on.
func (p *parser) typeHere(line int) bool {
	switch {
	case p.tok.kind == tokWord:
		return isTypeWord(p.tok.text)
	case p.tok.kind == tokLocal: // the name of one, unless it is an operand: then nothing of it follows
		p.next()
		switch p.tok.kind {
		case tokLocal, tokGlobal, tokWord, tokInt, tokFloat, tokBytes:
			return p.tok.line == line
		}
		return p.isPunct('*') || p.isPunct('(')
	}
	return p.isPunct('<') || p.isPunct('{') || p.isPunct('[')
}

// isTypeWord reports whether a word is a type, or begins one.
func isTypeWord(word string) bool {
	_, plain := plainTypes[word]
	return plain || word == "target" || len(word) > 1 && word[0] == 'i' && isNumber(word[1:])
}

// beginsLine reports whether the token is the first of its line.
func (p *parser) beginsLine() bool {
	before := strings.TrimRight(p.src[:p.tok.pos], " \t")
	return before == "" || before[len(before)-1] == '\n'
}

// place is the kind of place of a list of attributes, which decides what may follow an unknown attribute.
type place uint8

const (
	beforeType  place = iota // of a result
	ofParameter              // behind its type in a function's head
	ofArgument               // behind its type in a call
	behindList               // of parameters, arguments, a variable's properties
	inGroup                  // attributes #0 = { … }
)

// skipUnknownAttribute moves past an attribute that is not known.
func (p *parser) skipUnknownAttribute(at place) bool {
	if at == behindList && p.beginsLine() {
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
