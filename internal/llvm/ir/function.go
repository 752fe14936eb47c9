package ir

import (
	"slices"
	"strings"
)

// parseFunc parses a function after define or declare. It only finds the end of the body.
func (p *moduleParser) parseFunc(define bool) {
	f := &Func{Module: p.m, Line: p.tok.line, space: p.m.Layout.ProgramSpace}
	if !define {
		p.skipAttachments(&f.debug) // in a declaration, attachments such as !dbg precede the head
	}
	head := p.parseHead()
	f.Linkage = head.linkage
	f.CC, _ = p.optConvention()
	f.Ret = p.m.sharedAttrs(p.parseAttributes(beforeType).param)
	resultPos := p.tok.pos
	result := p.parseType()
	name := p.tok
	if name.kind != tokGlobal {
		p.fail(name.pos, "expected the name of a function")
		return
	}
	p.checkNumber(&name)
	f.Name, f.Line = name.text, name.line
	p.next()
	if result.Kind == FuncKind || result.Kind == LabelKind || result.Kind == MetadataKind {
		p.fail(resultPos, "a function cannot return '%v'", result)
	}
	sig := Type{Kind: FuncKind, Elem: result}
	sig.Variadic = p.parseParams(f)
	p.fields = p.fields[:0]
	for _, param := range f.Params {
		p.fields = append(p.fields, param.Typ)
	}
	sig.Fields = p.fields
	f.Sig = p.mk(sig)
	p.parseFuncTail(f, define)
	p.define(name, f)
	p.m.Funcs = append(p.m.Funcs, f)
	if define {
		p.findBody(f)
	}
}

// fewParams is the number of parameters up to which names are compared one by one, which is faster than a map.
const fewParams = 8

// parseParams parses (T %a, T, ...) and reports whether the list ends in dots.
func (p *moduleParser) parseParams(f *Func) bool {
	p.expect('(', "before parameters")
	if p.accept(')') {
		return false
	}
	p.params = p.params[:0]
	defer func() { f.Params = pointers(slices.Clone(p.params)) }()
	var names map[string]bool // used only for more than fewParams parameters
	for {
		if p.tok.kind == tokEllipsis {
			p.next()
			p.expect(')', "after '...'")
			return true
		}
		pos := p.tok.pos
		param := Param{Typ: p.parseType(), Index: len(p.params)}
		if param.Typ.Kind == VoidKind || param.Typ.Kind == FuncKind || param.Typ.Kind == LabelKind {
			p.fail(pos, "a parameter cannot have type '%v'", param.Typ)
		}
		param.Attrs = p.m.sharedAttrs(p.parseAttributes(ofParameter).param)
		pos = p.tok.pos
		if p.tok.kind == tokLocal {
			param.Name = p.tok.text
			p.next()
		}
		param.Name = p.numbered(pos, param.Name, &f.nextID)
		taken := names[param.Name]
		for _, other := range p.params[:min(len(p.params), fewParams)] {
			taken = taken || other.Name == param.Name
		}
		if taken {
			p.fail(pos, "redefinition of argument '%%%s'", quoteName(param.Name))
		}
		if len(p.params) >= fewParams {
			if names == nil {
				names = map[string]bool{}
			}
			names[param.Name] = true
		}
		p.params = append(p.params, param)
		if p.err != nil || !p.accept(',') {
			p.expect(')', "at end of parameters")
			return false
		}
	}
}

// pointers returns pointers to all elements of a list.
func pointers(list []Param) []*Param {
	to := make([]*Param, len(list))
	for i := range list {
		to[i] = &list[i]
	}
	return to
}

// parseFuncTail parses the rest of a function's header after the parameters.
func (p *moduleParser) parseFuncTail(f *Func, define bool) {
	for p.err == nil {
		a := p.parseAttributes(afterList)
		f.pure, f.naked, f.groups = f.pure || a.pure, f.naked || a.naked, append(f.groups, a.groups...)
		for key, value := range a.strings {
			if f.strings == nil {
				f.strings = map[string]string{}
			}
			f.strings[key] = value
		}
		switch {
		case p.isWord("unnamed_addr"), p.isWord("local_unnamed_addr"):
			p.next()
		case p.isWord("addrspace"):
			p.next()
			f.space = p.addrSpace()
		case p.isWord("section"), p.isWord("partition"):
			p.next()
			p.str()
		case p.isWord("comdat"):
			p.parseComdat()
		case p.acceptWord("gc"):
			f.GC = p.str()
		case p.isWord("prefix"), p.isWord("prologue"), p.isWord("personality"):
			p.next()
			p.parseTypedConst()
		case define && p.tok.kind == tokMetadata:
			p.skipAttachments(&f.debug)
		default:
			return
		}
	}
}

// findBody finds the end of a body without parsing it.
func (p *moduleParser) findBody(f *Func) {
	open := p.tok
	if !p.isPunct('{') {
		p.fail(open.pos, "expected '{' in function body")
		return
	}
	f.body.present, f.body.pos, f.body.line = true, open.pos+1, open.line
	past, lines := -1, 0
	if p.quick {
		past, lines = quickBody(p.src, open.pos, p.end, !p.star)
	}
	if past < 0 {
		var star bool
		past, lines, star = scanBalanced(p.src, open.pos, p.end)
		p.star = p.star || star
	}
	if past < 0 {
		f.body.end = unclosed(p.src, open.pos)
		p.fail(f.body.end, "expected '}': the body of '@%s' has no end", quoteName(f.Name))
		return
	}
	f.body.end = past - 1
	p.pos, p.line = past, open.line+lines
	p.next()
}

// unclosed returns the likely end of a body that is never closed: the next line that begins another entity, or the end of the source.
func unclosed(src string, pos int) int {
	at := len(src)
	for _, head := range []string{"\ndefine ", "\ndeclare ", "\nattributes "} {
		if n := strings.Index(src[pos:at], head); n >= 0 {
			at = pos + n + 1
		}
	}
	return at
}
