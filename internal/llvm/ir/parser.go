package ir

import (
	"fmt"
	"math/big"
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
	p := &moduleParser{quick: quick}
	p.lexer, p.m = lexer{file: name, src: m.src, end: len(m.src), line: 1}, m
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

// tokens parses words, punctuation marks and numbers, for which it needs no module.
type tokens struct {
	lexer
	depth int // nesting of constants and types
}

// guard turns a panic, which would be a bug of this package, into an error at the current token.
func (p *tokens) guard(err *error) {
	if r := recover(); r != nil {
		*err = errorAt(p.file, p.src, min(p.tok.pos, len(p.src)), fmt.Sprintf("the parser cannot read this (internal error: %v)", r))
	}
}

func (p *tokens) isWord(s string) bool { return p.tok.kind == tokWord && p.tok.text == s }

// accept skips a punctuation mark if it is next, and reports whether it was.
func (p *tokens) accept(c byte) bool {
	if !p.isPunct(c) {
		return false
	}
	p.next()
	return true
}

// acceptWord skips a word if it is next, and reports whether it was.
func (p *tokens) acceptWord(s string) bool {
	if !p.isWord(s) {
		return false
	}
	p.next()
	return true
}

func (p *tokens) expect(c byte, where string) {
	if !p.accept(c) {
		p.fail(p.tok.pos, "expected '%c' %s", c, where)
	}
}

func (p *tokens) expectWord(s string) {
	if !p.acceptWord(s) {
		p.fail(p.tok.pos, "expected '%s'", s)
	}
}

// str parses a string.
func (p *tokens) str() string {
	s := p.tok.text
	if p.tok.kind != tokString {
		p.fail(p.tok.pos, "expected a string")
		return ""
	}
	p.next()
	return s
}

// uint parses a number of at most max, in decimal or as u0x2A.
func (p *tokens) uint(max uint64) uint64 {
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
func (p *tokens) alignment() int {
	tok := p.tok
	n := p.uint(1 << 32)
	if n == 0 || n&(n-1) != 0 {
		p.fail(tok.pos, "alignment is not a power of two")
	}
	return int(n)
}

// integer reduces a literal to its width: LLVM keeps the low bits of one that is too wide.
func (p *tokens) integer(tok token, bits int) *big.Int {
	text, base := strings.TrimPrefix(tok.text, "+"), 10
	signed := strings.HasPrefix(text, "s0x")
	if signed || strings.HasPrefix(text, "u0x") {
		text, base = text[3:], 16
	}
	if len(text) > maxDigits {
		p.fail(tok.pos, "integer has more than %d digits", maxDigits)
		return new(big.Int)
	}
	n, ok := new(big.Int).SetString(text, base)
	if !ok {
		p.fail(tok.pos, "integer '%s' is malformed", text)
		return new(big.Int)
	}
	if signed {
		// LangRef, "Simple Constants": such a literal is sign-extended from its number of active bits, so s0x0001 is -1.
		n.Sub(n, new(big.Int).Lsh(big.NewInt(int64(n.Sign())), uint(n.BitLen())))
	}
	if n.Sign() < 0 || n.BitLen() > bits {
		mask := new(big.Int).Lsh(big.NewInt(1), uint(bits))
		n.And(n, mask.Sub(mask, big.NewInt(1)))
	}
	return n
}

// numbered returns the next number for an unnamed value, and fails for a value whose number is too low.
func (p *tokens) numbered(pos int, name string, next *int) string {
	if name == "" {
		name = strconv.Itoa(*next)
		*next++
		return name
	}
	if isNumber(name) {
		n, _ := strconv.Atoi(name)
		if n < *next {
			p.fail(pos, "value expected to be numbered '%%%d' or greater", *next)
			return name
		}
		*next = n + 1
	}
	return name
}

// enter and leave track the nesting depth.
func (p *tokens) enter() {
	if p.depth++; p.depth > maxNesting {
		p.fail(p.tok.pos, "nested more than %d deep", maxNesting)
	}
}

func (p *tokens) leave() { p.depth-- }

func (p *tokens) isUseListOrder() bool {
	return p.isWord("uselistorder") || p.isWord("uselistorder_bb")
}

// useListOrder skips a uselistorder or uselistorder_bb. It calls value to skip the value after uselistorder.
func (p *tokens) useListOrder(value func()) {
	block := p.isWord("uselistorder_bb")
	p.next()
	if block {
		p.next()
		p.expect(',', "in use-list order")
		p.next()
	} else {
		value()
	}
	p.expect(',', "in use-list order")
	if !p.isPunct('{') {
		p.fail(p.tok.pos, "expected '{' in use-list order")
	}
	p.skipBalanced()
}
