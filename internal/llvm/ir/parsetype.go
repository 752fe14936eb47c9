package ir

import "strconv"

// maxIntBits is the width of LLVM's widest integer (IntegerType::MAX_INT_BITS).
const maxIntBits = 1 << 23

// plainTypes maps words to the types that consist of one word. The parser looks up the type that it finds here in the type table, unless all modules
// share it.
var plainTypes = map[string]*Type{
	"void": Void, "label": Label, "token": tokenType, "metadata": metadataType, "ptr": Ptr,
	"i1": I1, "i8": I8, "i16": I16, "i32": I32, "i64": I64,
	"half": {Kind: HalfKind}, "bfloat": {Kind: BFloatKind}, "float": {Kind: FloatKind},
	"double": {Kind: DoubleKind}, "x86_fp80": {Kind: X86FP80Kind}, "fp128": {Kind: FP128Kind},
	"ppc_fp128": {Kind: PPCFP128Kind}, "x86_mmx": {Kind: X86MMXKind}, "x86_amx": {Kind: X86AMXKind},
}

// typeParser parses types, and skips words that are unknown.
type typeParser struct {
	tokens
	m      *Module
	closed bool // all definitions are read: an undefined named type is an error
}

// mk returns the type table's copy of a type. It fails if the type is too large.
func (p *typeParser) mk(t Type) *Type {
	if made := p.m.types.intern(t); made != nil {
		return made
	}
	p.fail(p.tok.pos, "type is too large")
	return Void
}

// parseValueType parses a type that a value can have.
func (p *typeParser) parseValueType() *Type {
	pos := p.tok.pos
	t := p.parseType()
	if t.Kind == VoidKind || t.Kind == FuncKind {
		p.fail(pos, "a value cannot have type '%v'", t)
	}
	return t
}

// parseType parses any type, including void and function types. After an error it returns void.
func (p *typeParser) parseType() *Type {
	p.enter()
	defer p.leave()
	start := p.tok
	t := p.parseBaseType()
	if t.Kind == PointerKind && start.text == "ptr" && (p.isPunct('*') || p.isWord("addrspace")) {
		p.fail(p.tok.pos, "ptr* is invalid: use ptr")
	}
	// pointer returns the type of a pointer to t.
	pointer := func(space int) *Type {
		if p.m.opaque {
			return p.mk(Type{Kind: PointerKind, AddrSpace: space})
		}
		return p.mk(Type{Kind: PointerKind, Elem: t, AddrSpace: space})
	}
	for p.err == nil {
		switch {
		case p.isPunct('*'):
			p.checkPointee(t)
			p.next()
			t = pointer(0)
		case p.isWord("addrspace"):
			pos := p.tok.pos
			p.next()
			space := p.addrSpace()
			p.checkPointee(t)
			if !p.accept('*') {
				p.fail(pos, "expected '*' after the address space of a typed pointer")
			}
			t = pointer(space)
		case p.isPunct('('):
			t = p.parseFuncType(t)
		default:
			return t
		}
	}
	return Void
}

func (p *typeParser) checkPointee(t *Type) {
	switch t.Kind {
	case VoidKind, LabelKind, MetadataKind, TokenKind, X86AMXKind:
		p.fail(p.tok.pos, "there are no pointers to '%v'", t)
	}
}

func (p *typeParser) parseBaseType() *Type {
	tok := p.tok
	switch tok.kind {
	case tokLocal:
		p.next()
		return p.namedType(tok)
	case tokPunct:
		switch tok.ch {
		case '{':
			return p.parseStruct(false)
		case '[':
			return p.parseSequence(ArrayKind)
		case '<':
			p.next()
			if p.isPunct('{') {
				t := p.parseStruct(true)
				p.expect('>', "at end of packed struct")
				return t
			}
			return p.parseSequence(VectorKind)
		}
	case tokWord:
		if t := plainTypes[tok.text]; t != nil {
			p.next()
			switch {
			case t == Ptr && p.isWord("addrspace"):
				return p.mk(Type{Kind: PointerKind, AddrSpace: p.optAddrSpace(0)})
			case t.Float(), t.Kind == X86MMXKind, t.Kind == X86AMXKind:
				return p.mk(*t)
			}
			return t
		}
		switch {
		case tok.text == "target":
			p.next()
			if !p.isPunct('(') {
				p.fail(p.tok.pos, "expected '(' in target type")
			}
			return p.mk(Type{Kind: TargetKind, Name: "target" + p.skipBalanced()})
		case len(tok.text) > 1 && tok.text[0] == 'i' && isNumber(tok.text[1:]):
			bits, err := strconv.Atoi(tok.text[1:])
			if err != nil || bits < 1 || bits > maxIntBits {
				p.fail(tok.pos, "an integer has 1 to %d bits", maxIntBits)
				return Void
			}
			p.next()
			return p.mk(Type{Kind: IntKind, Bits: bits})
		}
	}
	p.fail(tok.pos, "expected a type")
	return Void
}

// namedType returns the type %name. At the top level its definition may follow later.
func (p *typeParser) namedType(tok token) *Type {
	if t := p.m.types.named[tok.text]; t != nil {
		return t
	}
	if p.closed {
		p.fail(tok.pos, "use of undefined type named '%s'", tok.text)
		return Void
	}
	t := &Type{Kind: StructKind, Name: tok.text, Opaque: true}
	p.m.types.named[tok.text] = t
	p.m.types.first[tok.text] = tok.pos
	return t
}

// parseStruct parses { T, T }.
func (p *typeParser) parseStruct(packed bool) *Type {
	return p.mk(Type{Kind: StructKind, Packed: packed, Fields: p.parseFields()})
}

func (p *typeParser) parseFields() []*Type {
	p.expect('{', "in struct type")
	var fields []*Type
	if p.accept('}') {
		return fields
	}
	for {
		pos := p.tok.pos
		t := p.parseType()
		p.checkElement(pos, t)
		fields = append(fields, t)
		if !p.accept(',') {
			p.expect('}', "at end of struct type")
			return fields
		}
	}
}

// checkElement rejects a type that cannot be part of an aggregate.
func (p *typeParser) checkElement(pos int, t *Type) {
	switch t.Kind {
	case VoidKind, LabelKind, MetadataKind, FuncKind, TokenKind:
		p.fail(pos, "'%v' cannot be an element of an aggregate", t)
	}
}

// parseSequence parses the rest of [N x T] or <N x T>. The opening bracket of a vector is already read, that of an array is not.
func (p *typeParser) parseSequence(kind TypeKind) *Type {
	t := Type{Kind: kind}
	closing := byte('>')
	if kind == ArrayKind {
		p.next()
		closing = ']'
	} else if p.acceptWord("vscale") {
		p.expectWord("x")
		t.Scalable = true
	}
	pos := p.tok.pos
	t.Len = p.uint(1<<64 - 1)
	if kind == VectorKind && (t.Len == 0 || t.Len >= 1<<32) {
		p.fail(pos, "a vector has 1 to %d elements", uint64(1)<<32-1)
	}
	p.expectWord("x")
	pos = p.tok.pos
	t.Elem = p.parseType()
	p.checkElement(pos, t.Elem)
	if kind == VectorKind && t.Elem.Kind != IntKind && t.Elem.Kind != PointerKind && !t.Elem.Float() {
		p.fail(pos, "'%v' cannot be an element of a vector", t.Elem)
	}
	p.expect(closing, "at end of type")
	return p.mk(t)
}

// parseFuncType parses (T, T, ...) after the result type.
func (p *typeParser) parseFuncType(result *Type) *Type {
	switch result.Kind {
	case FuncKind, LabelKind, MetadataKind:
		p.fail(p.tok.pos, "a function cannot return '%v'", result)
	}
	t := Type{Kind: FuncKind, Elem: result}
	p.expect('(', "in function type")
	if p.accept(')') {
		return p.mk(t)
	}
	for {
		if p.tok.kind == tokEllipsis {
			p.next()
			t.Variadic = true
			break
		}
		pos := p.tok.pos
		param := p.parseType()
		if param.Kind == VoidKind || param.Kind == FuncKind || param.Kind == LabelKind {
			p.fail(pos, "a parameter cannot have type '%v'", param)
		}
		t.Fields = append(t.Fields, param)
		if !p.accept(',') {
			break
		}
	}
	p.expect(')', "at end of function type")
	return p.mk(t)
}

// parseTypeDef parses %name = type … from the = on.
func (p *moduleParser) parseTypeDef(tok token) {
	p.expect('=', "after the name of a type")
	p.expectWord("type")
	types := &p.m.types
	_, forward := types.first[tok.text]
	known := types.named[tok.text]
	if known != nil && !forward {
		p.fail(tok.pos, "redefinition of type '%%%s'", quoteName(tok.text))
		return
	}
	packed := false
	switch {
	case p.acceptWord("opaque"):
		delete(types.first, tok.text)
		p.nameStruct(tok)
		return
	case p.isPunct('<'):
		// The next bracket distinguishes a packed struct from a vector.
		next := p.lexer
		next.next()
		packed = next.isPunct('{')
		if packed {
			p.next()
		}
	}
	if !packed && !p.isPunct('{') {
		if forward {
			p.fail(p.tok.pos, "forward references to non-struct type")
		}
		types.named[tok.text] = p.parseType()
		return
	}
	delete(types.first, tok.text)
	t := p.nameStruct(tok)
	fields := p.parseFields()
	if packed {
		p.expect('>', "at end of packed struct")
	}
	t.Fields, t.Packed, t.Opaque = fields, packed, false
}

// nameStruct returns the struct with the name of tok, opaque until its fields are set.
func (p *moduleParser) nameStruct(tok token) *Type {
	t := p.m.types.named[tok.text]
	if t == nil {
		t = &Type{Kind: StructKind, Name: tok.text, Opaque: true}
		p.m.types.named[tok.text] = t
	}
	p.m.TypeNames[tok.text] = t
	p.defs = append(p.defs, tok)
	return t
}

// checkTypes rejects undefined types and structs that nest too deep. A struct that contains itself becomes opaque: it has no size either, and LLVM before
// release 20 accepts it as long as no value has the type.
func (p *moduleParser) checkTypes() {
	undefined, at := "", len(p.src)+1
	for name, pos := range p.m.types.first {
		if pos < at {
			undefined, at = name, pos
		}
	}
	if at <= len(p.src) {
		p.fail(at, "use of undefined type named '%s'", undefined)
		return
	}
	for _, t := range selfContained(p.defs, p.m.types.named) {
		t.Fields, t.Packed, t.Opaque = nil, false, true
	}
	c := containment{height: map[*Type]int{}}
	for _, def := range p.defs {
		t := p.m.types.named[def.text]
		if c.of(t) > maxTypeDepth {
			p.fail(def.pos, "type '%v' contains itself or nests more than %d deep", t, maxTypeDepth)
			return
		}
	}
}

// selfContained returns the defined structs that contain themselves, directly or through other structs.
func selfContained(defs []token, named map[string]*Type) []*Type {
	const open, done = 1, 2
	type visit struct {
		t    *Type
		next int // index of the next field
	}
	state := map[*Type]int{}
	endless := map[*Type]bool{}
	var found []*Type
	for _, def := range defs {
		if t := named[def.text]; state[t] == 0 {
			state[t] = open
			path := []visit{{t: t}}
			for len(path) > 0 {
				at := &path[len(path)-1]
				if at.next == len(at.t.Fields) {
					state[at.t] = done
					path = path[:len(path)-1]
					continue
				}
				part := at.t.Fields[at.next]
				at.next++
				for part.Kind == ArrayKind || part.Kind == VectorKind {
					part = part.Elem
				}
				switch {
				case part.Kind != StructKind:
				case state[part] == 0:
					state[part] = open
					path = append(path, visit{t: part})
				case state[part] == open:
					for k := len(path) - 1; ; k-- {
						if s := path[k].t; s.Name != "" && !endless[s] {
							endless[s] = true
							found = append(found, s)
						}
						if path[k].t == part {
							break
						}
					}
				}
			}
		}
	}
	return found
}

// containment computes the nesting depth of structs. It counts a struct whose depth is being computed as too deep, so that a cycle ends.
type containment struct {
	height map[*Type]int
	depth  int
}

func (c *containment) of(t *Type) int {
	switch t.Kind {
	case ArrayKind, VectorKind:
		return c.of(t.Elem)
	case StructKind:
	default:
		return 0
	}
	if h, ok := c.height[t]; ok {
		return h
	}
	c.height[t] = maxTypeDepth + 1
	if c.depth++; c.depth > maxTypeDepth {
		return maxTypeDepth + 1
	}
	h := 0
	for _, f := range t.Fields {
		h = max(h, c.of(f)+1)
	}
	c.depth--
	c.height[t] = h
	return h
}

// addrSpace parses (n), or ("A"), ("G") or ("P") for a default address space of the data layout (LLVM 18).
func (p *typeParser) addrSpace() int {
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
func (p *typeParser) optAddrSpace(fallback int) int {
	if p.acceptWord("addrspace") {
		return p.addrSpace()
	}
	return fallback
}
