package ir

// constExprOps lists the operations that some LLVM release from 14 to 22 has as constant expressions; newer releases have fewer.
var constExprOps = func() map[Op]bool {
	m := map[Op]bool{OpFNeg: true, OpGEP: true, OpICmp: true, OpFCmp: true, OpSelect: true, OpExtractElement: true,
		OpInsertElement: true, OpShuffleVector: true, OpExtractValue: true, OpInsertValue: true}
	for op := OpNone; op <= OpFreeze; op++ {
		if op.Binary() || op.Cast() {
			m[op] = true
		}
	}
	return m
}()

// parseConstExpr parses op (…). t is nil in an alias, which gives the expression no type.
func (p *constParser) parseConstExpr(op Op, t *Type) *Const {
	pos := p.tok.pos
	p.next()
	c := &Const{Kind: ConstExpr, Op: op, Typ: Void}
	switch op {
	case OpICmp, OpFCmp:
		c.Pred = p.predicate(op)
	default:
		c.Flags = p.parseFlags(op)
	}
	p.expect('(', "in constant expression")
	if op == OpGEP {
		c.Source = p.parseType()
		p.expect(',', "in constant expression")
	}
	for {
		p.skipInRange()
		c.Elems = append(c.Elems, p.parseTypedConst())
		if p.err != nil || !p.accept(',') {
			break
		}
		if (op == OpExtractValue || op == OpInsertValue) && p.tok.kind == tokInt {
			c.Path = p.parsePath()
			break
		}
	}
	var to *Type
	if op.Cast() {
		p.expectWord("to")
		to = p.parseType()
	}
	p.expect(')', "at end of constant expression")
	if p.err != nil {
		return c
	}
	p.typeConstExpr(pos, c, to)
	if p.err == nil && t != nil && !c.Typ.Equal(t) {
		p.fail(pos, "constant expression type mismatch: got type '%v' but expected '%v'", c.Typ, t)
	}
	return c
}

// typeConstExpr checks the operands and sets the type of the result.
func (p *constParser) typeConstExpr(pos int, c *Const, to *Type) {
	args := make([]Value, len(c.Elems))
	for i, e := range c.Elems {
		args[i] = e
	}
	if want := operandCount(c.Op); want > 0 && len(args) != want {
		p.fail(pos, "%v takes %d operands, not %d", c.Op, want, len(args))
		return
	}
	switch {
	case c.Op.Cast():
		p.checkCast(pos, c.Op, args[0].Type(), to)
		c.Typ = to
	case c.Op == OpGEP:
		c.Typ = p.gepType(pos, c.Source, args)
	case c.Op == OpShuffleVector:
		c.Typ = p.shuffleType(pos, args)
		c.Path = p.shuffleMask(pos, c.Elems[2])
		c.Elems = c.Elems[:2]
	case c.Op == OpExtractValue, c.Op == OpInsertValue:
		c.Typ = p.pathType(pos, args, c.Path)
	default:
		c.Typ = p.resultType(pos, c.Op, args)
	}
}

// skipInRange skips inrange before an index of a constant getelementptr (LLVM 18 and older).
func (p *constParser) skipInRange() { p.acceptWord("inrange") }

// parsePath parses the indices of extractvalue and insertvalue.
func (p *constParser) parsePath() []int {
	var path []int
	for {
		path = append(path, int(p.uint(1<<31-1)))
		if p.err != nil || !p.isPunct(',') {
			return path
		}
		// Metadata of the instruction may follow the comma.
		mark := p.lexer
		p.next()
		if p.tok.kind != tokInt {
			p.lexer = mark
			return path
		}
	}
}

// shuffleMask returns the mask of a shufflevector as indices, with -1 for poison. All elements of a scalable vector's mask are equal. As in LLVM, the
// result then has as many indices as the vector's least number of elements.
func (p *constParser) shuffleMask(pos int, mask *Const) []int {
	if mask.Typ.Kind != VectorKind || !mask.Typ.Elem.Equal(I32) {
		p.fail(pos, "shuffle mask must be a vector of i32, not '%v'", mask.Typ)
		return nil
	}
	each := mask
	if mask.Kind == ConstSplat {
		each = mask.Elems[0]
	}
	elems := mask.Elems
	if mask.Kind != ConstAggregate {
		p.m.splats += mask.Typ.Len // the mask also expands to more elements than it has characters
		if p.m.splats > splatsFree+splatsPerByte*uint64(len(p.src)) {
			p.fail(pos, "shuffle mask of type '%v' is too long", mask.Typ)
			return nil
		}
		elems = make([]*Const, mask.Typ.Len)
		for i := range elems {
			elems[i] = each
		}
	}
	path := make([]int, len(elems))
	for i, e := range elems {
		switch e.Kind {
		case ConstInt:
			if !e.Int.IsInt64() || e.Int.Int64() >= 1<<31 {
				p.fail(pos, "shuffle mask selects no element")
				return nil
			}
			if mask.Typ.Scalable && e.Int.Sign() != 0 {
				p.fail(pos, "shuffle mask of scalable type '%v' must be zeroinitializer, undef or poison", mask.Typ)
				return nil
			}
			path[i] = int(e.Int.Int64())
		case ConstZero:
			path[i] = 0
		case ConstUndef, ConstPoison:
			path[i] = -1
		default:
			p.fail(pos, "shuffle mask must be constant integers")
			return nil
		}
	}
	return path
}
