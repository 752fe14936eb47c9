package ir

import "strings"

// bodyParser is the state of the parser while it parses a body.
//
// An operand may precede the definition of its instruction or block. Its *Instr or *Block is then created on first use, with the type from that use, and
// completed by the definition. So no operand has to be patched later.
type bodyParser struct {
	operandParser
	nextLocal int // the least number that the next unnamed value may have
	blocks    []*Block
}

// operandParser parses operands of instructions and resolves the names of a body.
type operandParser struct {
	constParser
	locals  map[string]Value
	forward map[string]int // undefined names and the position of their first use
}

func (f *Func) parseBody(to *lazyBody) {
	m := f.Module
	m.mu.Lock()
	defer m.mu.Unlock()
	p := f.newBodyParser()
	defer p.guard(&to.err)
	p.next()
	p.parseBlocks()
	if p.err != nil {
		to.err = p.err
		return
	}
	to.blocks, to.names = p.blocks, p.locals
}

func (f *Func) newBodyParser() *bodyParser {
	// LLVM prints some forty bytes per instruction, and not all instructions have a result.
	locals := make(map[string]Value, len(f.Params)+(f.body.end-f.body.pos)/64)
	for _, param := range f.Params {
		locals[param.Name] = param
	}
	m := f.Module
	p := &bodyParser{nextLocal: f.nextID}
	p.lexer = lexer{file: m.Name, src: m.src, pos: f.body.pos, end: f.body.end, line: f.body.line}
	p.m, p.fn, p.closed = m, f, true
	p.locals, p.forward = locals, map[string]int{}
	return p
}

// blameBody looks for the cause of a top-level error in the body before it: a missing or surplus curly bracket there moves the end of the body. The rest of
// the module is not parsed yet, so blameBody ignores undefined names of the module.
func (p *moduleParser) blameBody() {
	funcs := p.m.Funcs
	if len(funcs) == 0 || funcs[len(funcs)-1].Declared() {
		return
	}
	p.m.typed = p.star && !p.m.opaque
	p.typeGlobals()
	inner := funcs[len(funcs)-1].newBodyParser()
	inner.partial, inner.closed = true, false
	inner.next()
	inner.parseBlocks()
	if e := inner.err; e != nil && (e.Line < p.err.Line || e.Line == p.err.Line && e.Col < p.err.Col) {
		p.err = e
	}
}

func (p *bodyParser) parseBlocks() {
	if p.tok.kind == tokEOF {
		p.fail(p.tok.pos, "function body requires at least one basic block")
	}
	for p.err == nil && p.tok.kind != tokEOF && !p.isUseListOrder() {
		p.parseBlock()
	}
	for p.err == nil && p.isUseListOrder() {
		p.fn.ordered = true
		p.useListOrder(p.skipUsed)
	}
	if p.err == nil && p.tok.kind != tokEOF {
		p.fail(p.tok.pos, "expected the end of the function")
	}
	first, at := "", len(p.src)+1
	for name, pos := range p.forward {
		if pos < at {
			first, at = name, pos
		}
	}
	if p.err == nil && first != "" {
		p.fail(at, "use of undefined value '%%%s'", quoteName(first))
	}
}

// skipUsed skips the block or value that a use-list order is for.
func (p *bodyParser) skipUsed() {
	if p.isWord("label") {
		p.labelRef()
		return
	}
	p.parseTyped()
}

// parseBlock parses a block up to its terminator. A block without a label gets the next number.
func (p *bodyParser) parseBlock() {
	tok := p.tok
	name := ""
	if tok.kind == tokLabel {
		name = tok.text
		p.next()
	}
	block := p.defineBlock(tok.pos, p.numbered(tok.pos, name, &p.nextLocal))
	if p.err != nil {
		return
	}
	block.Func, block.Line, block.Index = p.fn, tok.line, len(p.blocks)
	p.blocks = append(p.blocks, block)
	for p.err == nil {
		for p.tok.kind == tokRecord {
			if !strings.HasPrefix(p.tok.text, "dbg_") {
				p.m.unknown.warn(p.tok, "record")
			}
			r := record{kind: p.tok.text, index: len(block.Instrs)}
			p.next()
			if !p.isPunct('(') {
				p.fail(p.tok.pos, "expected '(' in debug record")
			}
			r.at.pos = p.tok.pos
			p.skipBalanced()
			r.at.end = max(r.at.pos, min(p.tok.pos, p.end))
			block.records = append(block.records, r)
		}
		in := p.parseInstr(block)
		if p.err != nil || in.Op.Terminator() {
			return
		}
	}
}

// defineBlock returns the block with a name, which may have been used before.
func (p *operandParser) defineBlock(pos int, name string) *Block {
	known, used := p.locals[name]
	if !used {
		block := &Block{Name: name}
		p.locals[name] = block
		return block
	}
	block, ok := known.(*Block)
	_, forward := p.forward[name]
	if !ok || !forward {
		p.fail(pos, "unable to create block named '%s': the name is taken", quoteName(name))
		return nil
	}
	delete(p.forward, name)
	return block
}

// blockRef parses the name of a block.
func (p *operandParser) blockRef() *Block {
	tok := p.tok
	if tok.kind != tokLocal {
		p.fail(tok.pos, "expected a basic block")
		return nil
	}
	p.next()
	known, ok := p.locals[tok.text]
	if !ok {
		block := &Block{Name: tok.text, Func: p.fn}
		p.locals[tok.text], p.forward[tok.text] = block, tok.pos
		return block
	}
	block, ok := known.(*Block)
	if !ok {
		p.fail(tok.pos, "'%%%s' is not a basic block", quoteName(tok.text))
	}
	return block
}

// labelRef parses label %b.
func (p *operandParser) labelRef() *Block {
	p.expectWord("label")
	return p.blockRef()
}

// localRef returns the value %name of type t.
func (p *operandParser) localRef(tok token, t *Type) Value {
	if v, ok := p.locals[tok.text]; ok {
		if !v.Type().Equal(t) {
			p.fail(tok.pos, "'%%%s' defined with type '%v' but expected '%v'", quoteName(tok.text), v.Type(), t)
		}
		return v
	}
	if t.Kind == VoidKind || t.Kind == FuncKind || t.Kind == LabelKind || t.Kind == MetadataKind {
		p.fail(tok.pos, "invalid use of a value of type '%v'", t)
	}
	in := &Instr{Name: tok.text, Typ: t}
	p.locals[tok.text], p.forward[tok.text] = in, tok.pos
	return in
}

// defineInstr adds an instruction's result under its name. It returns the *Instr that its uses refer to.
func (p *operandParser) defineInstr(pos int, in *Instr) *Instr {
	known, used := p.locals[in.Name]
	if !used {
		p.locals[in.Name] = in
		return in
	}
	first, ok := known.(*Instr)
	_, forward := p.forward[in.Name]
	switch {
	case !forward:
		p.fail(pos, "multiple definition of local value named '%s'", quoteName(in.Name))
	case !ok:
		p.fail(pos, "'%%%s' is used as a basic block", quoteName(in.Name))
	case !first.Typ.Equal(in.Typ):
		p.fail(pos, "instruction forward referenced with type '%v', not '%v'", first.Typ, in.Typ)
	default:
		delete(p.forward, in.Name)
		*first = *in
		return first
	}
	return in
}

// parseOperand parses a value of type t.
func (p *operandParser) parseOperand(t *Type) Value {
	tok := p.tok
	switch {
	case t.Kind == MetadataKind:
		return p.parseMetadataOperand()
	case tok.kind == tokLocal:
		p.next()
		return p.localRef(tok, t)
	case tok.kind == tokGlobal:
		p.next()
		var v Value = bad(t)
		p.resolve(globalRef{tok: tok, target: &v, want: t})
		return v
	}
	return p.parseConst(t)
}

// parseTyped parses T value.
func (p *operandParser) parseTyped() Value {
	pos := p.tok.pos
	t := p.parseValueType()
	if t.Kind == MetadataKind || t.Kind == LabelKind {
		p.fail(pos, "invalid use of a value of type '%v'", t)
	}
	return p.parseOperand(t)
}

// parseMetadataOperand parses the operand after the type metadata: a metadata node, or a value as metadata.
func (p *operandParser) parseMetadataOperand() Value {
	start := p.tok.pos
	if p.tok.kind == tokMetadata || p.isPunct('!') {
		p.skipMetadata()
	} else {
		p.parseTyped()
	}
	end := min(max(p.tok.pos, start), len(p.src))
	text := trimRight(p.src[start:end])
	return &Metadata{Text: text, at: span{start, start + len(text)}}
}

// trimRight removes white space at the end.
func trimRight(s string) string {
	for s != "" && (s[len(s)-1] == ' ' || s[len(s)-1] == '\n' || s[len(s)-1] == '\t') {
		s = s[:len(s)-1]
	}
	return s
}

// more skips a comma and reports whether there was one. It leaves a comma before metadata, which may follow any instruction.
func (p *operandParser) more() bool {
	if !p.isPunct(',') {
		return false
	}
	pos, line := p.pos, p.line
	p.space()
	metadata := p.pos < p.end && p.src[p.pos] == '!'
	p.pos, p.line = pos, line
	if !metadata {
		p.next()
	}
	return !metadata
}
