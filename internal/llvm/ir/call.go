package ir

import (
	"slices"
	"strconv"
	"strings"
)

// parseCall parses a call, invoke or callbr, starting at the keyword or at tail, musttail or notail.
func (p *bodyParser) parseCall(in *Instr) {
	call := &Call{}
	in.Call = call
	if in.Op == OpCall && (p.isWord("tail") || p.isWord("musttail") || p.isWord("notail")) {
		call.Tail = p.tok.text
		p.next()
		p.expectWord("call")
	}
	in.Flags = p.parseFlags(in.Op)
	call.CC, _ = p.optConvention()
	call.Ret = p.parseAttributes(beforeType).param
	space := p.optAddrSpace(p.m.Layout.ProgramSpace)
	typePos := p.tok.pos
	t := p.parseType()
	callee := p.parseCallee()
	_, assembly := callee.value.(*InlineAsm)
	at := p.parseArgs(in, assembly)
	if t.Kind != FuncKind {
		// In the short form the arguments determine the parameters.
		sig := Type{Kind: FuncKind, Elem: t}
		for _, a := range in.Args {
			sig.Fields = append(sig.Fields, a.Type())
		}
		if t.Kind == LabelKind || t.Kind == MetadataKind {
			p.fail(typePos, "a function cannot return '%v'", t)
		}
		t = p.mk(sig)
	}
	call.Sig, in.Typ = t, t.Elem
	after := p.parseAttributes(afterList)
	call.Pure = after.pure || slices.ContainsFunc(after.groups, func(id string) bool { return p.m.attrGroups[id] != nil && p.m.attrGroups[id].pure })
	call.ArgsMemory = after.argsMem || slices.ContainsFunc(after.groups, func(id string) bool { return p.m.attrGroups[id] != nil && p.m.attrGroups[id].argsMem })
	call.Attrs = p.stringsOf(after)
	call.BundlesAt = p.tok.pos
	p.parseBundles(call)
	switch in.Op {
	case OpInvoke:
		p.expectWord("to")
		normal := p.labelRef()
		p.expectWord("unwind")
		in.Blocks = []*Block{normal, p.labelRef()}
	case OpCallBr:
		p.expectWord("to")
		in.Blocks = []*Block{p.labelRef()}
		p.expect('[', "before the blocks that the assembly may jump to")
		for p.err == nil && !p.accept(']') {
			in.Blocks = append(in.Blocks, p.labelRef())
			if !p.accept(',') && !p.isPunct(']') {
				p.fail(p.tok.pos, "expected ']' at end of block list")
			}
		}
	}
	p.checkArgs(callee.tok.pos, at, in)
	call.Callee = p.calleeValue(callee, t, p.pointerTo(t, space))
}

// implicitKey identifies an intrinsic that is called without a declaration. The calls may have several types under one name: LLVM then appends a type
// suffix to the name of each declaration that it adds.
type implicitKey struct {
	name string
	sig  *Type
}

// implicitIntrinsic returns the undeclared intrinsic that a call names. LLVM 19 and later declare it with the type of the call
// (LLParser::validateEndOfModule). It returns nil for any other name.
func (p *bodyParser) implicitIntrinsic(name token, sig, t *Type) *Func {
	if _, known := p.m.globalsMap[name.text]; known || !strings.HasPrefix(name.text, "llvm.") {
		return nil
	}
	key := implicitKey{name.text, sig}
	if f := p.m.implicit[key]; f != nil {
		return f
	}
	f := &Func{Ret: p.m.sharedAttrs(ParamAttrs{}), Name: name.text, Sig: sig, Line: name.line, Module: p.m, typ: t, space: t.AddrSpace}
	for k, param := range sig.Fields {
		f.Params = append(f.Params, &Param{Name: strconv.Itoa(k), Typ: param, Index: k})
	}
	if p.m.implicit == nil {
		p.m.implicit = map[implicitKey]*Func{}
	}
	p.m.implicit[key] = f
	return f
}

// callee is the callee of a call before its type is known. In the short form the type depends on the arguments, which follow.
type callee struct {
	tok   token
	value Value // set if its type does not depend on the call
}

func (p *bodyParser) parseCallee() callee {
	c := callee{tok: p.tok}
	switch {
	case p.isWord("asm"):
		c.value = p.parseAsm()
	case p.tok.kind == tokWord:
		if p.isWord("no_cfi") || p.isWord("dso_local_equivalent") {
			p.next()
			c.tok = p.tok
			p.next()
			break
		}
		if op, ok := opOf[p.tok.text]; ok && constExprOps[op] {
			c.value = p.parseConstExpr(op, nil)
			break
		}
		if p.isWord("ptrauth") || p.isWord("blockaddress") {
			c.value = p.parseConst(p.pointerTo(I8, p.m.Layout.ProgramSpace))
			break
		}
		p.next()
	case p.tok.kind == tokLocal, p.tok.kind == tokGlobal:
		p.next()
	default:
		p.fail(p.tok.pos, "expected a function to call")
	}
	return c
}

// calleeValue returns the callee as a value. sig is the type of the function, and t the type of a pointer to it.
func (p *bodyParser) calleeValue(c callee, sig, t *Type) Value {
	if p.err != nil {
		return bad(t)
	}
	if _, ok := c.value.(*InlineAsm); ok {
		return c.value
	}
	if c.value != nil {
		if !c.value.Type().Equal(t) {
			p.fail(c.tok.pos, "callee has type '%v' but expected '%v'", c.value.Type(), t)
		}
		return c.value
	}
	switch {
	case c.tok.kind == tokLocal:
		return p.localRef(c.tok, t)
	case c.tok.kind == tokGlobal:
		if f := p.implicitIntrinsic(c.tok, sig, t); f != nil {
			return f
		}
		var v Value = bad(t)
		p.resolve(globalRef{tok: c.tok, target: &v, want: t})
		return v
	}
	switch c.tok.text {
	case "null":
		return &Const{Kind: ConstNull, Typ: t}
	case "undef":
		return bad(t)
	case "poison":
		return &Const{Kind: ConstPoison, Typ: t}
	}
	p.fail(c.tok.pos, "expected a function to call")
	return bad(t)
}

// parseAsm parses asm sideeffect "text", "constraints".
func (p *bodyParser) parseAsm() *InlineAsm {
	p.next()
	for p.acceptWord("sideeffect") || p.acceptWord("alignstack") || p.acceptWord("inteldialect") || p.acceptWord("unwind") {
	}
	text := p.str()
	p.expect(',', "in inline assembly")
	return &InlineAsm{Text: text, Constraints: p.str()}
}

// parseArgs parses (T attributes value, …) and returns the positions of the arguments. Inline assembly also accepts labels.
func (p *bodyParser) parseArgs(in *Instr, assembly bool) (at []int) {
	call := in.Call
	p.expect('(', "before arguments")
	if p.accept(')') {
		return nil
	}
	for p.err == nil {
		if p.tok.kind == tokEllipsis && call.Tail == "musttail" { // forwards the caller's variable arguments
			p.next()
			break
		}
		pos := p.tok.pos
		at = append(at, pos)
		typ := p.parseValueType()
		a := p.parseAttributes(ofArgument)
		switch {
		case typ.Kind != LabelKind:
			in.Args = append(in.Args, p.parseOperand(typ))
		case assembly:
			if b := p.blockRef(); b != nil {
				in.Args = append(in.Args, b)
			}
		default:
			p.fail(pos, "a label cannot be an argument")
		}
		call.ArgAttrs = append(call.ArgAttrs, a.param)
		call.ElemTypes = append(call.ElemTypes, a.element)
		if !p.accept(',') {
			break
		}
	}
	p.expect(')', "at end of arguments")
	return at
}

// checkArgs compares the arguments with the parameters of the function type.
func (p *bodyParser) checkArgs(pos int, at []int, in *Instr) {
	params := in.Call.Sig.Fields
	if p.err != nil {
		return
	}
	if len(in.Args) < len(params) {
		p.fail(pos, "not enough parameters specified for call")
		return
	}
	if len(in.Args) > len(params) && !in.Call.Sig.Variadic {
		p.fail(at[len(params)], "too many arguments specified")
		return
	}
	for i, t := range params {
		if !in.Args[i].Type().Equal(t) {
			p.fail(at[i], "argument %d is not of expected type '%v' but '%v'", i+1, t, in.Args[i].Type())
			return
		}
	}
}

// parseBundles parses [ "tag"(T value, …), … ].
func (p *bodyParser) parseBundles(call *Call) {
	if !p.accept('[') {
		return
	}
	for p.err == nil {
		b := Bundle{Tag: p.str()}
		p.expect('(', "in operand bundle")
		for p.err == nil && !p.accept(')') {
			t := p.parseValueType()
			if t.Kind == LabelKind {
				if to := p.blockRef(); to != nil {
					b.Args = append(b.Args, to)
				}
			} else {
				b.Args = append(b.Args, p.parseOperand(t))
			}
			if !p.accept(',') && !p.isPunct(')') {
				p.fail(p.tok.pos, "expected ')' at end of operand bundle")
			}
		}
		call.Bundles = append(call.Bundles, b)
		if !p.accept(',') {
			break
		}
	}
	p.expect(']', "at end of operand bundles")
}
