package ir

import (
	"fmt"
	"strconv"
	"strings"
)

// maxNesting limits the nesting of constants and types.
const maxNesting = 200

// Parse parses the text of a module. name is the file name in errors, which are of type [*Error]. Parse only finds the extent of function bodies;
// [Func.Body] parses one, and [Module.Check] all of them.
func Parse(name string, src []byte) (*Module, error) { return parseText(name, string(src)) }

// ParseOwned is like [Parse] but does not copy src: the caller must not change it afterwards.
func ParseOwned(name string, src []byte) (*Module, error) { return parseText(name, bytesText(src)) }

// parseText first tries a fast parse, which relies on LLVM's formatting. If that fails, the text may still be valid, so parseText reads every byte.
//
// LLVM 17 and later read every pointer as ptr, however it is written. parseText does the same if a module mixes ptr and i8*, or if its typed pointers
// contradict each other.
func parseText(name, src string) (*Module, error) {
	m, err := parseModule(name, src, true, false)
	if err != nil {
		m, err = parseModule(name, src, false, false)
	}
	switch {
	case err == nil && !m.typed:
	case mixesPointers(name, src):
		return parseModule(name, src, false, true)
	case strings.IndexByte(src, '*') >= 0 && len(src) <= maxCheckedForPointers && (err != nil || m.Check() != nil):
		if opaque, again := parseModule(name, src, false, true); again == nil && opaque.Check() == nil {
			return opaque, nil
		}
	}
	return m, err
}

// maxCheckedForPointers limits the size of a module with typed pointers whose bodies are all parsed to check that its pointers agree. In a larger module
// pointers that disagree are an error, as in LLVM before release 17.
const maxCheckedForPointers = 4 << 20

// mixesPointers reports whether a module writes pointers both as ptr and with a star.
func mixesPointers(name, src string) bool {
	if !strings.Contains(src, "ptr") || strings.IndexByte(src, '*') < 0 {
		return false
	}
	l := lexer{file: name, src: src, end: len(src), line: 1}
	opaque := false
	for l.next(); l.tok.kind != tokEOF && !(opaque && l.star); l.next() {
		opaque = opaque || l.tok.kind == tokWord && l.tok.text == "ptr"
	}
	return opaque && l.star
}

// parseModule parses a module. If opaque is set, it reads a typed pointer as ptr.
func parseModule(name, src string, quick, opaque bool) (m *Module, err error) {
	m = &Module{
		// A module printed by clang has one top-level name per kilobyte or two.
		Name: name, TypeNames: map[string]*Type{}, globalsMap: make(map[string]Value, len(src)/2048),
		src: src, types: newTypeTable(), attrGroups: map[string]*attrGroup{}, attrs: map[ParamAttrs]*ParamAttrs{}, opaque: opaque,
	}
	p := &parser{lexer: lexer{file: name, src: m.src, end: len(m.src), line: 1}, m: m, quick: quick}
	p.functions, p.stars = mark{char: '@', next: -1}, mark{char: '*', next: -1}
	defer p.guard(&err)
	if m.Layout, err = ParseDataLayout(""); err != nil {
		return nil, err
	}
	p.parseModule()
	if p.err != nil {
		return nil, p.err
	}
	return m, nil
}

// parser parses one part of the source: the module around the function bodies, or one body.
type parser struct {
	lexer
	m                *Module
	quick            bool // relies on LLVM's formatting to find ends: see quickscan.go
	functions, stars mark // the next @ and the next *
	depth            int

	refs []globalRef // references of the module, resolved when all names are known
	defs []token     // names of defined structs

	nextGlobal int // the least number that the next unnamed global may have

	body *bodyParser // nil outside function bodies

	params []Param // parameters of the function whose header is being parsed
	fields []*Type // their types
}

// guard turns a panic, which would be a bug of this package, into an error at the current token.
func (p *parser) guard(err *error) {
	if r := recover(); r != nil {
		*err = errorAt(p.file, p.src, min(p.tok.pos, len(p.src)), fmt.Sprintf("the parser cannot read this (internal error: %v)", r))
	}
}

func (p *parser) isWord(s string) bool { return p.tok.kind == tokWord && p.tok.text == s }

// accept skips a punctuation mark if it is next, and reports whether it was.
func (p *parser) accept(c byte) bool {
	if !p.isPunct(c) {
		return false
	}
	p.next()
	return true
}

// acceptWord skips a word if it is next, and reports whether it was.
func (p *parser) acceptWord(s string) bool {
	if !p.isWord(s) {
		return false
	}
	p.next()
	return true
}

func (p *parser) expect(c byte, where string) {
	if !p.accept(c) {
		p.fail(p.tok.pos, "expected '%c' %s", c, where)
	}
}

func (p *parser) expectWord(s string) {
	if !p.acceptWord(s) {
		p.fail(p.tok.pos, "expected '%s'", s)
	}
}

// str parses a string.
func (p *parser) str() string {
	s := p.tok.text
	if p.tok.kind != tokString {
		p.fail(p.tok.pos, "expected a string")
		return ""
	}
	p.next()
	return s
}

// uint parses a number of at most max, in decimal or as u0x2A.
func (p *parser) uint(max uint64) uint64 {
	tok := p.tok
	digits, base := tok.text, 10
	hex, isHex := strings.CutPrefix(digits, "u0x")
	if isHex {
		digits, base = hex, 16
	}
	if tok.kind != tokInt || !isHex && !isNumber(digits) {
		p.fail(tok.pos, "expected a number")
		return 0
	}
	n, err := strconv.ParseUint(digits, base, 64)
	if err != nil || n > max {
		p.fail(tok.pos, "number is larger than %d", max)
		return 0
	}
	p.next()
	return n
}

// alignment parses an alignment: a power of two up to 4 GiB.
func (p *parser) alignment() int {
	tok := p.tok
	n := p.uint(1 << 32)
	if n == 0 || n&(n-1) != 0 {
		p.fail(tok.pos, "alignment is not a power of two")
	}
	return int(n)
}

// addrSpace parses (n), or ("A"), ("G") or ("P") for a default address space of the data layout (LLVM 18).
func (p *parser) addrSpace() int {
	p.expect('(', "in address space")
	space := 0
	if p.tok.kind == tokString {
		switch p.tok.text {
		case "A":
			space = p.m.Layout.AllocaSpace
		case "G":
			space = p.m.Layout.GlobalSpace
		case "P":
			space = p.m.Layout.ProgramSpace
		default:
			p.fail(p.tok.pos, "invalid symbolic address space %q", p.tok.text)
		}
		p.next()
	} else {
		space = int(p.uint(1<<24 - 1))
	}
	p.expect(')', "in address space")
	return space
}

// optAddrSpace parses addrspace(n) if it is next.
func (p *parser) optAddrSpace(otherwise int) int {
	if p.acceptWord("addrspace") {
		return p.addrSpace()
	}
	return otherwise
}

// enter and leave track the nesting depth.
func (p *parser) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail(p.tok.pos, "nested more than %d deep", maxNesting)
	}
}

func (p *parser) leave() { p.depth-- }
