package ir

// moduleParser parses a module except for the function bodies.
type moduleParser struct {
	constParser
	quick            bool // relies on LLVM's formatting to find ends: see quickscan.go
	functions, stars mark // positions of the next @ and the next *

	defs       []token // names of defined structs
	nextGlobal int     // the least number that the next unnamed global may have

	params []Param // parameters of the function whose header is being parsed
	fields []*Type // their types
}

// parseModule parses everything except function bodies, and then resolves forward references.
func (p *moduleParser) parseModule() {
	p.next()
	for p.tok.kind != tokEOF && p.err == nil {
		if !p.skipMetadataLines() {
			p.parseEntity()
		}
	}
	if p.err != nil {
		p.blameBody()
		return
	}
	p.checkTypes()
	p.m.typed = p.star && !p.m.opaque
	p.typeGlobals()
	for _, r := range p.refs {
		if p.err != nil {
			return
		}
		p.resolve(r)
	}
}

// parseEntity parses one top-level entity.
func (p *moduleParser) parseEntity() {
	tok := p.tok
	switch tok.kind {
	case tokLocal:
		p.next()
		p.parseTypeDef(tok)
	case tokGlobal:
		p.next()
		p.expect('=', "after the name of a global")
		p.parseGlobal(tok)
	case tokComdat:
		p.next()
		p.expect('=', "after the name of a comdat")
		p.expectWord("comdat")
		if p.tok.kind != tokWord {
			p.fail(p.tok.pos, "expected a comdat's selection kind")
		}
		p.next()
	case tokMetadata: // !name = !{…}
		p.next()
		p.expect('=', "after the name of metadata")
		p.skipMetadata()
	case tokPunct:
		p.parseNumberedMetadata()
	case tokSummary:
		p.parseSummary()
	case tokWord:
		p.parseKeyword()
	default:
		p.fail(tok.pos, "expected top-level entity")
	}
}

func (p *moduleParser) parseKeyword() {
	switch word := p.tok.text; word {
	case "target":
		p.parseTarget()
	case "source_filename":
		p.next()
		p.expect('=', "after source_filename")
		p.str()
	case "module":
		p.next()
		p.expectWord("asm")
		p.str()
	case "attributes":
		p.parseGroup()
	case "declare", "define":
		p.next()
		p.parseFunc(word == "define")
	case "uselistorder", "uselistorder_bb":
		p.skipUseListOrder()
	default:
		p.fail(p.tok.pos, "expected top-level entity")
	}
}

func (p *moduleParser) parseTarget() {
	p.next()
	switch {
	case p.acceptWord("triple"):
		p.expect('=', "after target triple")
		p.m.Triple = p.str()
		if p.m.Layout.Text == "" {
			p.m.Layout = layoutOf(p.m.Triple)
		}
	case p.acceptWord("datalayout"):
		p.expect('=', "after target datalayout")
		pos := p.tok.pos
		layout, err := ParseDataLayout(p.str())
		if err != nil {
			p.fail(pos, "%v", err)
			return
		}
		p.m.Layout = layout
	default:
		isString := func() bool { return p.accept('=') && p.tok.kind == tokString }
		if !p.skipUnknown("property of the target", isString) {
			p.fail(p.tok.pos, "expected triple or datalayout after target")
		}
		p.str()
	}
}

// parseNumberedMetadata parses !7 = distinct !{…}.
func (p *moduleParser) parseNumberedMetadata() {
	start := p.tok.pos
	if !p.accept('!') {
		p.fail(p.tok.pos, "expected top-level entity")
		return
	}
	number := p.uint(1<<32 - 1)
	p.expect('=', "after the number of metadata")
	if !p.acceptWord("distinct") {
		p.skipUnknown("kind of metadata", func() bool { return p.tok.kind == tokMetadata || p.isPunct('!') })
	}
	p.skipMetadata()
	p.m.metadata.nodes = append(p.m.metadata.nodes, metadataNode{number, start})
}

// skipMetadataLines skips lines from here on that each hold one metadata node, and reports whether there were any.
func (p *moduleParser) skipMetadataLines() bool {
	start := p.tok.pos
	if !p.quick || p.src[start] != '!' || start > 0 && p.src[start-1] != '\n' {
		return false
	}
	past, lines := p.quickMetadata()
	if past == start {
		return false
	}
	p.m.metadata.stretches = append(p.m.metadata.stretches, span{start, past})
	p.pos, p.line = past, p.tok.line+lines
	p.next()
	return true
}

// parseSummary skips an entry of the module summary: ^7 = module: (…).
func (p *moduleParser) parseSummary() {
	p.next()
	p.expect('=', "in summary")
	if p.tok.kind != tokLabel {
		p.fail(p.tok.pos, "expected the kind of a summary entry")
		return
	}
	p.next()
	if p.isPunct('(') {
		p.skipBalanced()
		return
	}
	p.uint(1<<64 - 1)
}

// parseGroup parses attributes #7 = { … }.
func (p *moduleParser) parseGroup() {
	p.next()
	if p.tok.kind != tokGroup {
		p.fail(p.tok.pos, "expected an attribute group id")
		return
	}
	id := p.tok.text
	p.next()
	p.expect('=', "after an attribute group id")
	p.expect('{', "in attribute group")
	a := p.parseAttributes(inGroup)
	if !p.accept('}') {
		p.fail(p.tok.pos, "unknown attribute")
	}
	if p.m.attrGroups[id] == nil {
		p.m.attrGroups[id] = &attrGroup{strings: map[string]string{}}
	}
	for k, v := range a.strings {
		p.m.attrGroups[id].strings[k] = v
	}
	p.m.attrGroups[id].pure = p.m.attrGroups[id].pure || a.pure
	p.m.attrGroups[id].argsMem = p.m.attrGroups[id].argsMem || a.argsMem
	p.m.attrGroups[id].naked = p.m.attrGroups[id].naked || a.naked
}

// skipUseListOrder skips uselistorder ptr @g, { 1, 0 } or uselistorder_bb @f, %b, { 1, 0 }, which this package ignores.
func (p *moduleParser) skipUseListOrder() {
	p.useListOrder(func() { p.parseTypedConst() })
}
