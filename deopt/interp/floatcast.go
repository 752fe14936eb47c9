package interp

import (
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

// floatCast decodes the conversions from and to floats.
func (d *decoder) floatCast(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	from, _ := a.s.lane()
	to, _ := out.s.lane()
	fromInt := i.Op == ir.OpUIToFP || i.Op == ir.OpSIToFP
	toInt := i.Op == ir.OpFPToUI || i.Op == ir.OpFPToSI
	if from.typ.Float() == fromInt || to.typ.Float() == toInt || from.typ.Kind == ir.PointerKind || to.typ.Kind == ir.PointerKind {
		return nil, troublef(KindModule, "%v of %v to %v", i.Op, a.s.typ, out.s.typ)
	}
	convert := betweenFloats(i.Flags, from, to)
	switch {
	case fromInt:
		convert = intToFloat(i.Op == ir.OpSIToFP, i.Flags&ir.NNeg != 0, from, to)
	case toInt:
		convert = floatToInt(i.Op == ir.OpFPToSI, from, to)
	}
	if special, err := d.conversion(i, from, to); special != nil || err != nil {
		if err != nil {
			return nil, err
		}
		return lanes1(out, a, special)
	}
	// The loop has a fast path for scalars. Do not use it in the step, so that single-stepping can expose a wrong fast path.
	quick := shortWay(nil)
	if a.s.typ.Kind == ir.VectorKind {
		quick = conversionShort(i.Op, i.Flags, from, to)
	}
	return lanes1(out, a, func(dst, src []word) error {
		if !defined(src) {
			unknownWords(dst, to.bits, src)
			return nil
		}
		if quick != nil {
			if r, ok := quick(src[0].v, 0, 0); ok {
				dst[0] = word{v: r}
				return nil
			}
		}
		convert(dst, src)
		return nil
	})
}

// betweenFloats returns the conversion of fpext or fptrunc.
func betweenFloats(flags ir.Flags, from, to *shape) func(dst, src []word) {
	p, q := from.typ.Kind, to.typ.Kind
	narrow := narrowFloat(from.typ) && narrowFloat(to.typ)
	return func(dst, src []word) {
		if narrow {
			dst[0] = word{v: floatBits(q, floatOf(p, src[0].v))}
		} else {
			setFloat(q, dst, floatNumber(p, src))
		}
		if !promised(flags, p, src) || !promised(flags, q, dst) {
			poisonWords(dst, to.bits)
		}
	}
}

// intToFloat returns a conversion that rounds once, from the integer to the float.
func intToFloat(signed, notNegative bool, from, to *shape) func(dst, src []word) {
	kind, top := to.typ.Kind, (from.bits-1)/64
	return func(dst, src []word) {
		negative := src[top].v>>uint((from.bits-1)%64) == 1
		switch {
		case notNegative && negative:
			poisonWords(dst, to.bits)
		case kind == ir.DoubleKind && from.bits <= 64 && signed:
			dst[0] = word{v: floatBits(kind, float64(int64(signExtend(src[0].v, from.bits))))}
		case kind == ir.DoubleKind && from.bits <= 64:
			dst[0] = word{v: floatBits(kind, float64(src[0].v))}
		case signed:
			setFloat(kind, dst, softfloat.FromInt(toSigned(src, from.bits)))
		default:
			setFloat(kind, dst, softfloat.FromInt(toBig(src)))
		}
	}
}

// floatToInt returns a conversion that drops the fraction. A value that does not fit is poison (LangRef, "fptoui").
func floatToInt(signed bool, from, to *shape) func(dst, src []word) {
	kind := from.typ.Kind
	return func(dst, src []word) {
		if kind == ir.DoubleKind && signed && to.bits <= 64 {
			// In this range the conversion is exact in Go as in LLVM.
			if f := floatOf(kind, src[0].v); f > -1<<62 && f < 1<<62 {
				v := int64(f)
				if int64(signExtend(uint64(v), to.bits)) == v {
					dst[0] = word{v: uint64(v) & maskAt(to.bits, 0)}
					return
				}
			}
		}
		v, ok := floatNumber(kind, src).Int()
		if !ok || clamp(v, to.bits, signed).Cmp(v) != 0 {
			poisonWords(dst, to.bits)
			return
		}
		setBig(dst, v, to.bits)
	}
}

// saturatingCast is a conversion to an integer that has a result for every float: the nearest integer that the type can hold, or 0 for NaN (LangRef,
// "llvm.fptosi.sat").
type saturatingCast struct{ isSigned bool }

func (x saturatingCast) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	return integerOfFloat(d, i, args, out, func(dst []word, n softfloat.Number, bits int) {
		low, high := bounds(bits, x.isSigned)
		v := new(big.Int)
		switch {
		case n.Class == softfloat.Inf && n.Neg:
			v = low
		case n.Class == softfloat.Inf:
			v = high
		case n.Class != softfloat.NaN:
			whole, _ := n.Int()
			v = clamp(whole, bits, x.isSigned)
		}
		setBig(dst, v, bits)
	})
}

// integerOfFloat decodes an intrinsic that converts each float to an integer of the result's width.
func integerOfFloat(d *decoder, i *ir.Instr, args []slot, out slot, convert func(dst []word, n softfloat.Number, bits int)) (step, error) {
	if len(args) != 1 {
		return nil, wrongUse(i)
	}
	from, _ := args[0].s.lane()
	to, _ := out.s.lane()
	if !from.typ.Float() || to.typ.Kind != ir.IntKind {
		return nil, wrongUse(i)
	}
	r := d.rulesOf(from.typ.Kind)
	return lanes1(out, args[0], func(dst, src []word) error {
		if defined(src) {
			convert(dst, r.number(from.typ.Kind, src), to.bits)
		} else {
			unknownWords(dst, to.bits, src)
		}
		return nil
	})
}
