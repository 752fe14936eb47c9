package ir

import "strconv"

var linkages = words(`private internal available_externally linkonce linkonce_odr weak weak_odr appending
	common external extern_weak`)

// visibleWords lists the words for a symbol's visibility, which this package ignores.
var visibleWords = words(`dso_local dso_preemptable default hidden protected dllimport dllexport
	unnamed_addr local_unnamed_addr externally_initialized`)

// globalHead holds the words before global, constant, alias, ifunc or the type of a function.
type globalHead struct {
	linkage string
	space   int // address space; -1 if absent
}

// parseGlobal parses a variable, alias or ifunc from the = on.
func (p *moduleParser) parseGlobal(name token) {
	p.checkNumber(&name)
	head := p.parseHead()
	word := p.tok.text
	if p.tok.kind != tokWord {
		word = ""
	}
	switch word {
	case "global", "constant":
		p.next()
		p.parseVariable(name, head, word == "constant")
	case "alias", "ifunc":
		p.next()
		p.parseAlias(name, word == "ifunc")
	default:
		p.fail(p.tok.pos, "expected 'global', 'constant', 'alias' or 'ifunc'")
	}
}

// checkNumber checks that numbered globals such as @7 are in order, as LLVM requires. It gives an unnamed global (@"") the next number.
func (p *moduleParser) checkNumber(name *token) {
	if name.text == "" {
		name.text = strconv.Itoa(p.nextGlobal)
	}
	if !isNumber(name.text) {
		return
	}
	n, _ := strconv.Atoi(name.text)
	if n < p.nextGlobal {
		p.fail(name.pos, "variable expected to be numbered '@%d' or greater", p.nextGlobal)
		return
	}
	p.nextGlobal = n + 1
}

func (p *moduleParser) parseHead() globalHead {
	head := globalHead{space: -1}
	for p.err == nil && p.tok.kind == tokWord {
		word := p.tok.text
		switch {
		case linkages[word]:
			head.linkage = word
			p.next()
		case visibleWords[word]:
			p.next()
		case word == "thread_local":
			p.next()
			if p.isPunct('(') {
				p.skipBalanced()
			}
		case word == "addrspace":
			p.next()
			head.space = p.addrSpace()
		default:
			if !p.skipUnknownHead() {
				return head
			}
		}
	}
	return head
}

// skipUnknownHead skips an unknown word if known words that precede a calling convention, or the kind of the global, follow it.
func (p *moduleParser) skipUnknownHead() bool {
	const what = "linkage or visibility"
	belongs := func(word string) bool {
		return linkages[word] || visibleWords[word] || word == "thread_local" || kindsOfGlobal[word]
	}
	if attributeNames[p.tok.text] || conventions[p.tok.text] || p.tok.text == "cc" || kindsOfGlobal[p.tok.text] {
		return false
	}
	return p.skipUnknown(what, func() bool {
		_, found := p.ahead(belongs)
		return found
	})
}

var kindsOfGlobal = words(`global constant alias ifunc`)

func (p *moduleParser) parseVariable(name token, head globalHead, constant bool) {
	g := &Global{Name: name.text, Constant: constant, Linkage: head.linkage, AddrSpace: head.space, Module: p.m}
	// LLVM's parser uses space 0 even if the data layout specifies G, which is the default only for globals created through the API.
	g.AddrSpace = max(g.AddrSpace, 0)
	pos := p.tok.pos
	g.ValueType = p.parseValueType()
	switch g.ValueType.Kind {
	case LabelKind, MetadataKind, TokenKind:
		p.fail(pos, "invalid type for global variable: '%v'", g.ValueType)
	}
	g.External = head.linkage == "external" || head.linkage == "extern_weak"
	if !g.External {
		g.Init = p.parseConst(g.ValueType)
	}
	p.parseGlobalTail(func(a attributes) { g.Align = a.param.Align })
	p.define(name, g)
	p.m.Globals = append(p.m.Globals, g)
}

// parseGlobalTail parses the rest after the initializer: section, comdat, alignment, metadata, attributes.
func (p *moduleParser) parseGlobalTail(keep func(attributes)) {
	for p.err == nil && p.accept(',') {
		switch {
		case p.isWord("section"), p.isWord("partition"), p.isWord("code_model"):
			p.next()
			p.str()
		case p.isWord("comdat"):
			p.parseComdat()
		case p.isWord("align"):
			var a attributes
			p.parseAttribute(&a)
			keep(a)
		case p.isWord("no_sanitize_address"), p.isWord("no_sanitize_hwaddress"),
			p.isWord("sanitize_memtag"), p.isWord("sanitize_address_dyninit"):
			p.next()
		case p.tok.kind == tokMetadata:
			p.skipAttachment(new(span)) // follows a comma; metadata without a comma is the next top-level entity
		default:
			if !p.skipUnknown("global variable property", func() bool { return true }) {
				p.fail(p.tok.pos, "unknown global variable property")
			} else if p.tok.kind == tokString || p.tok.kind == tokInt {
				p.next()
			}
		}
	}
	p.parseAttributes(afterList)
}

// parseComdat parses comdat or comdat($name).
func (p *moduleParser) parseComdat() {
	p.next()
	if p.accept('(') {
		if p.tok.kind != tokComdat {
			p.fail(p.tok.pos, "expected a comdat's name")
		}
		p.next()
		p.expect(')', "after comdat")
	}
}

func (p *moduleParser) parseAlias(name token, ifunc bool) {
	a := &Alias{Name: name.text, IFunc: ifunc, Module: p.m}
	a.value = p.parseType()
	p.expect(',', "after the type of an alias")
	if op, known := opOf[p.tok.text]; known && p.tok.kind == tokWord && constExprOps[op] {
		a.Target = p.parseConstExpr(op, nil) // LLVM writes it without a type
	} else {
		pos := p.tok.pos
		a.Target = p.parseTypedConst()
		if a.Target.Typ.Kind != PointerKind {
			p.fail(pos, "an alias must be a pointer, not '%v'", a.Target.Typ)
		}
	}
	p.parseGlobalTail(func(attributes) {})
	p.define(name, a)
	p.m.Aliases = append(p.m.Aliases, a)
}

// define adds a global, function or alias under its name.
func (p *moduleParser) define(name token, v Value) {
	if p.err != nil {
		return
	}
	if _, ok := p.m.globalsMap[name.text]; ok {
		if _, isFunc := v.(*Func); isFunc {
			p.fail(name.pos, "invalid redefinition of function '%s'", quoteName(name.text))
			return
		}
		p.fail(name.pos, "redefinition of global '@%s'", quoteName(name.text))
		return
	}
	p.m.globalsMap[name.text] = v
}

// typeGlobals sets the operand type of each global. It runs after the whole module is read, because only then is it known whether pointers are typed.
func (p *moduleParser) typeGlobals() {
	pointer := func(to *Type, space int) *Type {
		if !p.m.typed {
			to = nil
		}
		return p.mk(Type{Kind: PointerKind, Elem: to, AddrSpace: space})
	}
	for _, g := range p.m.Globals {
		g.typ = pointer(g.ValueType, g.AddrSpace)
	}
	for _, f := range p.m.Funcs {
		f.typ = pointer(f.Sig, f.space)
	}
	for _, a := range p.m.Aliases {
		a.typ = pointer(a.value, scalar(a.Target.Typ).AddrSpace)
	}
}
