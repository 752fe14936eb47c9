package ir

import (
	"math/big"
)

// maxDigits limits the digits of an integer literal, because converting one takes more than linear time.
const maxDigits = 20000

// constParser parses constants, in a function body or outside of it.
type constParser struct {
	attrParser
	fn      *Func // the function whose body is being parsed, or nil
	partial bool  // ignore undefined names of the module

	refs []globalRef // references outside of bodies, resolved when all names are known
}

// parseTypedConst parses T constant.
func (p *constParser) parseTypedConst() *Const {
	t := p.parseValueType()
	return p.parseConst(t)
}

// bad returns a placeholder constant after an error.
func bad(t *Type) *Const { return &Const{Kind: ConstUndef, Typ: t} }

// parseConst parses a constant of type t.
func (p *constParser) parseConst(t *Type) *Const {
	p.enter()
	defer p.leave()
	tok := p.tok
	switch tok.kind {
	case tokGlobal:
		p.next()
		return p.globalConst(tok, t)
	case tokInt:
		if t.Kind != IntKind {
			p.fail(tok.pos, "integer constant must have integer type, not '%v'", t)
			return bad(t)
		}
		p.next()
		return &Const{Kind: ConstInt, Typ: t, Int: p.integer(tok, t.Bits)}
	case tokFloat:
		p.next()
		bits, err := floatLiteral(t.Kind, tok.text)
		if err != nil {
			p.fail(tok.pos, "floating point constant invalid for type '%v': %v", t, err)
			return bad(t)
		}
		return &Const{Kind: ConstFloat, Typ: t, Int: bits}
	case tokBytes:
		if t.Kind != ArrayKind || t.Elem.Kind != IntKind || t.Elem.Bits != 8 || t.Len != uint64(len(tok.text)) {
			p.fail(tok.pos, "constant expression type mismatch: got type '[%d x i8]' but expected '%v'", len(tok.text), t)
			return bad(t)
		}
		p.next()
		return &Const{Kind: ConstBytes, Typ: t, Bytes: []byte(tok.text)}
	case tokPunct:
		return p.parseAggregate(t)
	case tokWord:
		return p.parseWordConst(t)
	}
	p.fail(tok.pos, "expected a constant of type '%v'", t)
	return bad(t)
}

// parseWordConst parses constants that begin with a word, and constant expressions.
func (p *constParser) parseWordConst(t *Type) *Const {
	tok := p.tok
	c := &Const{Typ: t}
	ok := true
	switch tok.text {
	case "true", "false":
		ok = t.Kind == IntKind && t.Bits == 1
		c.Kind, c.Int = ConstInt, big.NewInt(int64(len("false")-len(tok.text)))
	case "null":
		ok = t.Kind == PointerKind
		c.Kind = ConstNull
	case "undef", "poison":
		ok = t.Kind != LabelKind && t.Kind != VoidKind && t.Kind != FuncKind && t.Kind != MetadataKind
		c.Kind = ConstUndef
		if tok.text == "poison" {
			c.Kind = ConstPoison
		}
	case "zeroinitializer":
		// LLVM's parser accepts zeroinitializer for an opaque struct too, because it does not need the size.
		ok = t.First() || t.Kind == ArrayKind || t.Kind == StructKind || t.Kind == TargetKind || t.Float()
		c.Kind = ConstZero
	case "none":
		ok = t.Kind == TokenKind
		c.Kind = ConstToken
	case "splat":
		return p.parseSplat(t)
	case "blockaddress":
		return p.parseBlockAddress(t)
	case "ptrauth":
		return p.parsePtrAuth(t)
	case "dso_local_equivalent", "no_cfi":
		// dso_local_equivalent @f and no_cfi @f are the address of code that behaves like @f, so @f replaces them.
		p.next()
		global := p.tok
		if global.kind != tokGlobal {
			p.fail(global.pos, "expected a function's name")
			return bad(t)
		}
		p.next()
		return p.globalConst(global, t)
	default:
		if op, known := opOf[tok.text]; known && constExprOps[op] {
			return p.parseConstExpr(op, t)
		}
		p.fail(tok.pos, "expected a value, not '%s'", tok.text)
		return bad(t)
	}
	if !ok {
		p.fail(tok.pos, "invalid type for %s constant: '%v'", tok.text, t)
		return bad(t)
	}
	p.next()
	return c
}

// parseAggregate parses {…}, <{…}>, […] and <…>.
func (p *constParser) parseAggregate(t *Type) *Const {
	tok := p.tok
	c := &Const{Kind: ConstAggregate, Typ: t}
	want := func(ok bool) bool {
		if !ok {
			p.fail(tok.pos, "constant does not have type '%v'", t)
		}
		return ok
	}
	switch tok.ch {
	case '[':
		if !want(t.Kind == ArrayKind) {
			return bad(t)
		}
		p.next()
		c.Elems = p.parseElems(']')
	case '{':
		if !want(t.Kind == StructKind && !t.Packed && !t.Opaque) {
			return bad(t)
		}
		p.next()
		c.Elems = p.parseElems('}')
	case '<':
		p.next()
		if p.isPunct('{') {
			if !want(t.Kind == StructKind && t.Packed && !t.Opaque) {
				return bad(t)
			}
			p.next()
			c.Elems = p.parseElems('}')
			p.expect('>', "at end of packed struct")
			break
		}
		if !want(t.Kind == VectorKind && !t.Scalable) {
			return bad(t)
		}
		c.Elems = p.parseElems('>')
	default:
		p.fail(tok.pos, "expected a constant of type '%v'", t)
		return bad(t)
	}
	p.checkElems(tok.pos, c)
	return c
}

// parseElems parses typed constants up to the closing bracket.
func (p *constParser) parseElems(closing byte) []*Const {
	var elems []*Const
	if p.accept(closing) {
		return elems
	}
	for {
		elems = append(elems, p.parseTypedConst())
		if !p.accept(',') {
			p.expect(closing, "at end of constant")
			return elems
		}
	}
}

// checkElems checks the number and the types of an aggregate constant's elements.
func (p *constParser) checkElems(pos int, c *Const) {
	t := c.Typ
	want := t.Len
	if t.Kind == StructKind {
		want = uint64(len(t.Fields))
	}
	if uint64(len(c.Elems)) != want {
		p.fail(pos, "constant of type '%v' has %d elements, not %d", t, len(c.Elems), want)
		return
	}
	for i, e := range c.Elems {
		elem := t.Elem
		if t.Kind == StructKind {
			elem = t.Fields[i]
		}
		if !e.Typ.Equal(elem) {
			p.fail(pos, "element %d of constant of type '%v' has type '%v'", i, t, e.Typ)
			return
		}
	}
}

// A splat expands to more elements than it has characters. All splats of a module together may have splatsFree elements and splatsPerByte more for each
// byte of source.
const (
	splatsPerByte = 16
	splatsFree    = 1 << 16
)

// parseSplat parses splat (T c) (LLVM 19): a vector of equal elements.
func (p *constParser) parseSplat(t *Type) *Const {
	tok := p.tok
	p.next()
	p.expect('(', "after splat")
	elem := p.parseTypedConst()
	p.expect(')', "at end of splat")
	switch {
	case t.Kind != VectorKind || !t.Elem.Equal(elem.Typ):
		p.fail(tok.pos, "splat of '%v' does not have type '%v'", elem.Typ, t)
		return bad(t)
	case t.Scalable: // the number of elements is known only at run time
		return &Const{Kind: ConstSplat, Typ: t, Elems: []*Const{elem}}
	}
	p.m.splats += t.Len
	if p.m.splats > splatsFree+splatsPerByte*uint64(len(p.src)) {
		p.fail(tok.pos, "splat constants of this module have more than %d elements", p.m.splats-t.Len)
		return bad(t)
	}
	c := &Const{Kind: ConstAggregate, Typ: t, Elems: make([]*Const, t.Len)}
	for i := range c.Elems {
		c.Elems[i] = elem
	}
	return c
}

// parsePtrAuth parses ptrauth (ptr p, i32 key, i64 discriminator, ptr address); the last two are optional (LLVM 19).
func (p *constParser) parsePtrAuth(t *Type) *Const {
	tok := p.tok
	p.next()
	p.expect('(', "after ptrauth")
	c := &Const{Kind: ConstPtrAuth, Typ: t, Elems: p.parseElems(')')}
	if p.err != nil {
		return bad(t)
	}
	want := []func(*Type) bool{isPointer, func(t *Type) bool { return t.Equal(I32) }, func(t *Type) bool { return t.Equal(I64) }, isPointer}
	ok := len(c.Elems) >= 2 && len(c.Elems) <= len(want)
	for k, e := range c.Elems {
		ok = ok && want[k](e.Typ)
	}
	switch {
	case !ok:
		p.fail(tok.pos, "ptrauth takes a pointer, an i32, and perhaps an i64 and a pointer")
	case !c.Elems[0].Typ.Equal(t):
		p.fail(tok.pos, "ptrauth of '%v' does not have type '%v'", c.Elems[0].Typ, t)
	}
	return c
}

// blockAddress is one use of blockaddress.
type blockAddress struct {
	c   *Const
	pos int
	tok token // name of the block
}

// parseBlockAddress parses blockaddress(@f, %b).
func (p *constParser) parseBlockAddress(t *Type) *Const {
	p.next()
	p.expect('(', "in block address")
	fn := p.tok
	if fn.kind != tokGlobal {
		p.fail(fn.pos, "expected a function's name in block address")
		return bad(t)
	}
	p.next()
	p.expect(',', "in block address")
	block := p.tok
	if block.kind != tokLocal {
		p.fail(block.pos, "expected a block's name in block address")
		return bad(t)
	}
	p.next()
	p.expect(')', "in block address")
	if t.Kind != PointerKind {
		p.fail(fn.pos, "type of blockaddress must be a pointer, not '%v'", t)
	}
	c := &Const{Kind: ConstBlockAddr, Typ: t, Block: block.text}
	p.refer(globalRef{tok: fn, target: &c.Target, function: true})
	addr := blockAddress{c: c, pos: fn.pos, tok: block}
	if p.fn != nil {
		to := &p.fn.computed().body.addresses
		*to = append(*to, addr)
	} else {
		p.m.addresses = append(p.m.addresses, addr)
	}
	return c
}

// check checks that the block exists, which requires parsing the body of that function.
func (a blockAddress) check(m *Module) error {
	fn, _ := a.c.Target.(*Func)
	if fn == nil || fn.Declared() || fn.Block(a.c.Block) == nil {
		return errorAt(m.Name, m.src, a.tok.pos, "blockaddress of '%"+quoteName(a.c.Block)+"', which is not a block of that function")
	}
	return nil
}

// globalRef is a use of @name. At the top level it may precede the definition, so such uses are collected and resolved at the end.
type globalRef struct {
	tok      token
	target   *Value
	want     *Type // required type of the pointer; nil for any
	function bool  // @name must be a function
}

// globalConst returns the constant @name of type t.
func (p *constParser) globalConst(tok token, t *Type) *Const {
	c := &Const{Kind: ConstRef, Typ: t}
	p.refer(globalRef{tok: tok, target: &c.Target, want: t})
	return c
}

// refer resolves a reference: immediately inside a body, otherwise at the end of the module.
func (p *constParser) refer(r globalRef) {
	if p.fn == nil {
		p.refs = append(p.refs, r)
		return
	}
	p.resolve(r)
}

func (p *constParser) resolve(r globalRef) {
	v, ok := p.m.globalsMap[r.tok.text]
	switch _, isFunc := v.(*Func); {
	case !ok && p.partial:
		*r.target = bad(Ptr)
	case !ok:
		p.fail(r.tok.pos, "use of undefined value '@%s'", quoteName(r.tok.text))
	case r.function && !isFunc:
		p.fail(r.tok.pos, "'@%s' is not a function", quoteName(r.tok.text))
	case r.want != nil && !v.Type().Equal(r.want):
		p.fail(r.tok.pos, "'@%s' defined with type '%v' but expected '%v'", quoteName(r.tok.text), v.Type(), r.want)
	default:
		*r.target = v
	}
}
