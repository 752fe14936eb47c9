package ir

var orderings = words(`unordered monotonic acquire release acq_rel seq_cst`)

// These are the operations of atomicrmw.
var (
	rmwIntOps = words(`xchg add sub and nand or xor max min umax umin uinc_wrap udec_wrap usub_cond usub_sat`)
	rmwFPOps  = words(`xchg fadd fsub fmax fmin fmaximum fminimum`)
)

// pointerTo returns the type of a pointer to t: typed or opaque, as in the module.
func (p *typeParser) pointerTo(t *Type, space int) *Type {
	if !p.m.typed {
		t = nil
	}
	return p.mk(Type{Kind: PointerKind, Elem: t, AddrSpace: space})
}

// parseMemory parses the instructions that allocate, read or write memory.
func (p *bodyParser) parseMemory(pos int, in *Instr) {
	if in.Op != OpAlloca && in.Op != OpGEP && in.Op != OpFence {
		if p.isWord("atomic") && (in.Op == OpLoad || in.Op == OpStore) {
			p.next()
			in.Flags |= Atomic
		}
		if in.Op == OpCmpXchg {
			p.acceptWord("weak") // no effect here: weak permits a spurious failure
		}
		unknown := func() bool { return in.Op != OpAtomicRMW && p.skipUnknown("flag", p.typeAhead) }
		for unknown() {
		}
		if p.acceptWord("volatile") {
			in.Flags |= Volatile
		}
		for unknown() {
		}
	}
	switch in.Op {
	case OpAlloca:
		p.parseAlloca(in)
	case OpGEP:
		in.Flags = p.parseFlags(OpGEP)
		in.Elem = p.parseType()
		for p.err == nil && p.more() {
			in.Args = append(in.Args, p.parseTyped())
		}
		if len(in.Args) == 0 {
			p.fail(p.tok.pos, "expected comma after getelementptr's type")
			return
		}
		in.Typ = p.gepType(pos, in.Elem, in.Args)
	case OpLoad:
		at := p.tok.pos
		in.Elem = p.parseValueType()
		p.checkAccess(at, in.Elem)
		p.expect(',', "after load's type")
		in.Args = []Value{p.pointerOperand(in.Elem)}
		in.Typ = in.Elem
		p.parseAccessTail(in)
	case OpStore:
		at := p.tok.pos
		v := p.parseTyped()
		in.Elem = v.Type()
		p.checkAccess(at, in.Elem)
		p.expect(',', "after store operand")
		in.Args = []Value{v, p.pointerOperand(in.Elem)}
		p.parseAccessTail(in)
	case OpFence:
		in.Flags |= Atomic
		p.parseOrdering(1)
	case OpCmpXchg:
		p.parseCmpXchg(in)
	case OpAtomicRMW:
		p.parseRMW(in)
	}
}

// checkAccess rejects a load or store of a type that has no size.
func (p *bodyParser) checkAccess(pos int, t *Type) {
	if t.Kind == TokenKind || t.Kind == LabelKind || t.Kind == MetadataKind || t.Kind == StructKind && t.Opaque {
		p.fail(pos, "values of type '%v' cannot be loaded or stored", t)
	}
}

// pointerOperand parses a typed operand that points to elem.
func (p *bodyParser) pointerOperand(elem *Type) Value {
	pos := p.tok.pos
	v := p.parseTyped()
	t := v.Type()
	switch {
	case p.err != nil:
	case !isPointer(t):
		p.fail(pos, "operand must be a pointer, not '%v'", t)
	case t.Elem != nil && !t.Elem.Equal(elem):
		p.fail(pos, "explicit pointee type doesn't match operand's pointee type ('%v' vs '%v')", elem, t.Elem)
	}
	return v
}

func (p *bodyParser) parseAlloca(in *Instr) {
	if p.acceptWord("inalloca") {
		in.Flags |= InAlloca
	}
	if p.acceptWord("swifterror") {
		in.Flags |= SwiftError
	}
	for p.skipUnknown("flag", p.typeAhead) {
	}
	pos := p.tok.pos
	in.Elem = p.parseValueType()
	p.checkAccess(pos, in.Elem)
	space := 0 // LLVM's parser uses space 0 too; A of the data layout is the default only for allocas created through the API
	for p.err == nil && p.more() {
		switch {
		case p.acceptWord("align"):
			in.Align = p.alignment()
		case p.isWord("addrspace"):
			space = p.optAddrSpace(space)
		case len(in.Args) > 0:
			p.fail(p.tok.pos, "expected 'align' or 'addrspace'")
		default:
			at := p.tok.pos
			n := p.parseTyped()
			if !isInt(n.Type()) {
				p.fail(at, "element count must have integer type, not '%v'", n.Type())
			}
			in.Args = []Value{n}
		}
	}
	in.Typ = p.pointerTo(in.Elem, space)
}

// parseAccessTail parses the rest of a load or store after the pointer.
func (p *bodyParser) parseAccessTail(in *Instr) {
	if in.Flags&Atomic != 0 {
		p.parseOrdering(1)
	}
	p.parseAlign(in)
}

func (p *bodyParser) parseAlign(in *Instr) {
	if p.more() {
		p.expectWord("align")
		in.Align = p.alignment()
	}
}

// parseOrdering parses syncscope("…") and n orderings. They are not kept, because the interpreter runs one thread at a time.
func (p *bodyParser) parseOrdering(n int) {
	if p.acceptWord("syncscope") {
		p.expect('(', "after syncscope")
		p.str()
		p.expect(')', "after syncscope")
	}
	for range n {
		if p.tok.kind != tokWord || !orderings[p.tok.text] {
			p.fail(p.tok.pos, "expected ordering on atomic instruction")
			return
		}
		p.next()
	}
}

func (p *bodyParser) parseCmpXchg(in *Instr) {
	in.Flags |= Atomic
	pos := p.tok.pos
	ptr := p.parseTyped()
	p.expect(',', "after cmpxchg address")
	cmp := p.parseTyped()
	p.expect(',', "after cmpxchg operand")
	val := p.parseTyped()
	in.Args, in.Elem = []Value{ptr, cmp, val}, cmp.Type()
	if !isPointer(ptr.Type()) || !cmp.Type().Equal(val.Type()) || !isInt(in.Elem) && !isPointer(in.Elem) {
		p.fail(pos, "invalid cmpxchg operands")
	}
	p.parseOrdering(2)
	p.parseAlign(in)
	in.Typ = p.mk(Type{Kind: StructKind, Fields: []*Type{in.Elem, I1}})
}

func (p *bodyParser) parseRMW(in *Instr) {
	in.Flags |= Atomic
	in.Pred = p.tok.text
	if p.tok.kind != tokWord || !rmwIntOps[in.Pred] && !rmwFPOps[in.Pred] {
		p.fail(p.tok.pos, "expected the operation of atomicrmw")
		return
	}
	p.next()
	pos := p.tok.pos
	ptr := p.parseTyped()
	p.expect(',', "after atomicrmw address")
	val := p.parseTyped()
	in.Args, in.Elem = []Value{ptr, val}, val.Type()
	in.Typ = in.Elem
	t := scalar(in.Elem)
	ok := isInt(t) && rmwIntOps[in.Pred] || t.Float() && rmwFPOps[in.Pred] || isPointer(t) && in.Pred == "xchg"
	if !isPointer(ptr.Type()) || !ok {
		p.fail(pos, "atomicrmw %s does not take operands '%v' and '%v'", in.Pred, ptr.Type(), in.Elem)
	}
	p.parseOrdering(1)
	p.parseAlign(in)
}
