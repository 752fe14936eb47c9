package ir

// This file checks LangRef's rules for operands, as far as an interpreter relies on them. Instructions and constant expressions share the checks.

// operandCount returns the number of operands of an operation; 0 if it varies.
func operandCount(op Op) int {
	switch {
	case op.Cast(), op == OpFNeg, op == OpFreeze, op == OpExtractValue:
		return 1
	case op.Binary(), op == OpICmp, op == OpFCmp, op == OpExtractElement, op == OpInsertValue:
		return 2
	case op == OpSelect, op == OpInsertElement, op == OpShuffleVector:
		return 3
	}
	return 0
}

// scalar returns the element type of a vector, and any other type unchanged.
func scalar(t *Type) *Type {
	if t.Kind == VectorKind {
		return t.Elem
	}
	return t
}

func isInt(t *Type) bool     { return t.Kind == IntKind }
func isPointer(t *Type) bool { return t.Kind == PointerKind }

// sameShape reports whether two types are both scalars, or vectors of the same length.
func sameShape(a, b *Type) bool {
	if (a.Kind == VectorKind) != (b.Kind == VectorKind) {
		return false
	}
	return a.Kind != VectorKind || a.Len == b.Len && a.Scalable == b.Scalable
}

// resultType checks the operands of an operation whose result type depends only on them, and returns that type.
func (p *constParser) resultType(pos int, op Op, args []Value) *Type {
	a := args[0].Type()
	s := scalar(a)
	require := func(ok bool, format string, values ...any) {
		if !ok {
			p.fail(pos, format, values...)
		}
	}
	same := func() {
		b := args[1].Type()
		require(a.Equal(b), "operands of %v have different types '%v' and '%v'", op, a, b)
	}
	switch {
	case op.Binary():
		same()
		require(op.FloatBinary() && s.Float() || !op.FloatBinary() && isInt(s), "invalid operand type '%v' for %v", a, op)
		return a
	case op == OpFNeg:
		require(s.Float(), "invalid operand type '%v' for %v", a, op)
		return a
	case op == OpFreeze:
		return a
	case op == OpICmp, op == OpFCmp:
		same()
		require(op == OpFCmp && s.Float() || op == OpICmp && (isInt(s) || isPointer(s)), "invalid operand type '%v' for %v", a, op)
		return p.vectorLike(a, I1)
	case op == OpSelect:
		b, c := args[1].Type(), args[2].Type()
		require(isInt(s) && s.Bits == 1, "select condition must be i1 or a vector of i1, not '%v'", a)
		require(b.Equal(c), "select values have different types '%v' and '%v'", b, c)
		require(a.Kind != VectorKind || sameShape(a, b), "select condition '%v' does not fit values '%v'", a, b)
		return b
	case op == OpExtractElement:
		require(a.Kind == VectorKind && isInt(args[1].Type()), "invalid extractelement operands")
		return s
	case op == OpInsertElement:
		require(a.Kind == VectorKind && s.Equal(args[1].Type()) && isInt(args[2].Type()), "invalid insertelement operands")
		return a
	}
	p.fail(pos, "%v has no result of its own", op)
	return Void
}

// vectorLike returns elem, or a vector of elem with the length of t if t is a vector.
func (p *constParser) vectorLike(t, elem *Type) *Type {
	if t.Kind != VectorKind {
		return elem
	}
	return p.mk(Type{Kind: VectorKind, Elem: elem, Len: t.Len, Scalable: t.Scalable})
}

// checkCast checks that op can convert between two types (LangRef, "Conversion Operations").
func (p *constParser) checkCast(pos int, op Op, from, to *Type) {
	a, b := scalar(from), scalar(to)
	ok := sameShape(from, to)
	switch op {
	case OpTrunc:
		ok = ok && isInt(a) && isInt(b) && a.Bits > b.Bits
	case OpZExt, OpSExt:
		ok = ok && isInt(a) && isInt(b) && a.Bits < b.Bits
	case OpFPTrunc:
		ok = ok && a.Float() && b.Float() && floatWidth(a.Kind) > floatWidth(b.Kind)
	case OpFPExt:
		ok = ok && a.Float() && b.Float() && floatWidth(a.Kind) < floatWidth(b.Kind)
	case OpFPToUI, OpFPToSI:
		ok = ok && a.Float() && isInt(b)
	case OpUIToFP, OpSIToFP:
		ok = ok && isInt(a) && b.Float()
	case OpPtrToInt, OpPtrToAddr:
		ok = ok && isPointer(a) && isInt(b)
	case OpIntToPtr:
		ok = ok && isInt(a) && isPointer(b)
	case OpAddrSpaceCast:
		ok = ok && isPointer(a) && isPointer(b) && a.AddrSpace != b.AddrSpace
	case OpBitCast:
		ok = bitcastable(from, to)
	}
	if !ok {
		p.fail(pos, "invalid cast opcode for cast from '%v' to '%v'", from, to)
	}
}

// bitcastable reports whether a bitcast is valid: between pointers of the same address space, or between other types of the same width.
func bitcastable(from, to *Type) bool {
	if from.Equal(to) {
		return from.First() || from.Float() || from.Kind == X86MMXKind || from.Kind == X86AMXKind
	}
	a, b := scalar(from), scalar(to)
	if isPointer(a) || isPointer(b) {
		return isPointer(a) && isPointer(b) && a.AddrSpace == b.AddrSpace && lanes(from) == lanes(to)
	}
	n := bitWidth(from)
	return n != 0 && n == bitWidth(to) && isScalable(from) == isScalable(to)
}

func lanes(t *Type) uint64 {
	if t.Kind == VectorKind {
		return t.Len
	}
	return 1
}

func isScalable(t *Type) bool { return t.Kind == VectorKind && t.Scalable }

// bitWidth returns LLVM's getPrimitiveSizeInBits: 0 for pointers and aggregates.
func bitWidth(t *Type) uint64 {
	switch t.Kind {
	case IntKind:
		return uint64(t.Bits)
	case VectorKind:
		return times(t.Len, bitWidth(t.Elem))
	case X86MMXKind:
		return 64
	case X86AMXKind:
		return 8192
	}
	return uint64(floatWidth(t.Kind))
}

// floatWidth returns the width of a floating-point type in bits, or 0 for other types.
func floatWidth(k TypeKind) int {
	switch k {
	case HalfKind, BFloatKind:
		return 16
	case FloatKind:
		return 32
	case DoubleKind:
		return 64
	case X86FP80Kind:
		return 80
	case FP128Kind, PPCFP128Kind:
		return 128
	}
	return 0
}

// gepType checks the operands of a getelementptr (base, indices…) and returns its result type: a pointer, or a vector of pointers if any operand is a
// vector.
func (p *constParser) gepType(pos int, source *Type, args []Value) *Type {
	base := args[0].Type()
	ptr := scalar(base)
	if !isPointer(ptr) {
		p.fail(pos, "base of getelementptr must be a pointer, not '%v'", base)
		return Void
	}
	if ptr.Elem != nil && !ptr.Elem.Equal(source) {
		p.fail(pos, "explicit pointee type doesn't match operand's pointee type ('%v' vs '%v')", source, ptr.Elem)
		return Void
	}
	shape, at := base, source
	for i, idx := range args[1:] {
		t := idx.Type()
		if !isInt(scalar(t)) {
			p.fail(pos, "getelementptr index must be an integer, not '%v'", t)
			return Void
		}
		if t.Kind == VectorKind {
			if shape.Kind == VectorKind && !sameShape(shape, t) {
				p.fail(pos, "getelementptr vector index has a wrong number of elements")
				return Void
			}
			shape = t
		}
		if i == 0 {
			continue
		}
		switch at.Kind {
		case ArrayKind, VectorKind:
			at = at.Elem
		case StructKind:
			n, ok := fieldIndex(idx)
			if !ok || n >= uint64(len(at.Fields)) {
				p.fail(pos, "invalid getelementptr indices: '%v' has no field %s", at, idx.Ref())
				return Void
			}
			at = at.Fields[n]
		default:
			p.fail(pos, "invalid getelementptr indices: '%v' has no elements", at)
			return Void
		}
	}
	if at.Kind == VoidKind || at.Kind == FuncKind && len(args) > 1 || at.Kind == StructKind && at.Opaque {
		p.fail(pos, "base element of getelementptr must have a size, and '%v' has none", at)
		return Void
	}
	if ptr.Elem != nil {
		ptr = p.mk(Type{Kind: PointerKind, Elem: at, AddrSpace: ptr.AddrSpace})
	}
	return p.vectorLike(shape, ptr)
}

// fieldIndex returns the constant index of a struct field: an integer, or a vector of equal integers.
func fieldIndex(v Value) (uint64, bool) {
	c, ok := v.(*Const)
	if !ok {
		return 0, false
	}
	switch c.Kind {
	case ConstInt:
		return c.Int.Uint64(), c.Typ.Equal(I32) // LLVM accepts only i32
	case ConstZero:
		return 0, true
	case ConstAggregate:
		first, ok := fieldIndex(c.Elems[0])
		for _, e := range c.Elems[1:] {
			n, isInt := fieldIndex(e)
			ok = ok && isInt && n == first
		}
		return first, ok
	}
	return 0, false
}

// shuffleType returns the result type of a shufflevector with args (a, b, mask).
func (p *constParser) shuffleType(pos int, args []Value) *Type {
	a, b, mask := args[0].Type(), args[1].Type(), args[2].Type()
	if a.Kind != VectorKind || !a.Equal(b) || mask.Kind != VectorKind || mask.Scalable != a.Scalable {
		p.fail(pos, "invalid shufflevector operands")
		return Void
	}
	return p.mk(Type{Kind: VectorKind, Elem: a.Elem, Len: mask.Len, Scalable: mask.Scalable})
}

// pathType follows the indices of an extractvalue or insertvalue, and returns the result type.
func (p *constParser) pathType(pos int, args []Value, path []int) *Type {
	agg := args[0].Type()
	at := agg
	for _, i := range path {
		switch {
		case at.Kind == ArrayKind && uint64(i) < at.Len:
			at = at.Elem
		case at.Kind == StructKind && i < len(at.Fields):
			at = at.Fields[i]
		default:
			p.fail(pos, "invalid indices: '%v' has no element %d", at, i)
			return Void
		}
	}
	if len(path) == 0 {
		p.fail(pos, "expected an index")
		return Void
	}
	if len(args) == 1 {
		return at
	}
	if !args[1].Type().Equal(at) {
		p.fail(pos, "insertvalue operand and field disagree in type: '%v' instead of '%v'", args[1].Type(), at)
	}
	return agg
}
