package interp

import (
	"math"
	"math/big"

	"reframe/deopt/ir"
)

// resize decodes the conversions between integers and pointers, which keep, cut
// or extend the bits.
func (d *decoder) resize(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	from, _ := a.s.lane()
	to, _ := out.s.lane()
	if from.typ.Float() || to.typ.Float() {
		return nil, troublef(KindModule, "%v of %v to %v", i.Op, a.s.typ, out.s.typ)
	}
	if i.Op == ir.OpAddrSpaceCast && from.bits != to.bits {
		return nil, unsupported("", "addrspacecast of %v to %v", a.s.typ, out.s.typ)
	}
	// Flags that make the result poison: trunc nuw, nsw; zext nneg (LangRef).
	poisons := func(a, dst []word) bool {
		if !defined(a) {
			return false
		}
		switch {
		case i.Op == ir.OpZExt && i.Flags&ir.NNeg != 0:
			return a[(from.bits-1)/64].v>>uint((from.bits-1)%64) == 1
		case i.Op != ir.OpTrunc:
			return false
		case i.Flags&ir.NUW != 0 && toBig(a).Cmp(toBig(dst)) != 0:
			return true
		}
		return i.Flags&ir.NSW != 0 && toSigned(a, from.bits).Cmp(toSigned(dst, to.bits)) != 0
	}
	return lanes1(out, a, func(dst, src []word) error {
		if anyPoison(src) {
			poisonWords(dst, to.bits)
			return nil
		}
		extend(dst, src, from.bits, to.bits, i.Op == ir.OpSExt)
		if i.Flags&(ir.NNeg|ir.NUW|ir.NSW) != 0 && poisons(src, dst) {
			poisonWords(dst, to.bits)
		}
		return nil
	})
}

// extend copies an integer into one of another width, known and undefined bits
// alike: the sign bit is extended as what it is.
func extend(dst, src []word, from, to int, signed bool) {
	n := copy(dst, src)
	if to > from {
		top := word{}
		last := (from - 1) / 64
		if signed {
			bit := uint(from-1) % 64
			top = word{-(src[last].v >> bit & 1), -(src[last].u >> bit & 1)}
		}
		for i := n; i < len(dst); i++ {
			dst[i] = top
		}
		keep := maskAt(from, last)
		dst[last].v |= top.v &^ keep
		dst[last].u |= top.u &^ keep
	}
	last := len(dst) - 1
	dst[last].v &= maskAt(to, last)
	dst[last].u &= maskAt(to, last)
}

func (d *decoder) bitcast(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	from, n := a.s.lane()
	to, k := out.s.lane()
	switch {
	case from.bits == 0 || to.bits == 0 || from.bits*n != to.bits*k:
		return nil, troublef(KindModule, "bitcast of %v to %v", a.s.typ, out.s.typ)
	case n == k:
		return func(fr *frame) error {
			copy(out.in(fr), a.in(fr))
			return nil
		}, nil
	case d.in.layout.BigEndian:
		return nil, unsupported("", "a bitcast that changes the number of elements in big-endian order")
	}
	size := (from.bits*n + 7) / 8
	whole := leaf{bits: from.bits, packed: n}
	parts := leaf{bits: to.bits, packed: k}
	return func(fr *frame) error {
		data, shadow := make([]byte, size), make([]byte, size)
		whole.encode(data, shadow, a.in(fr), false)
		parts.decode(out.in(fr), data, shadow, false)
		return nil
	}, nil
}

// wideFloats refuses to calculate with floats that have no hardware outside of x87.
func wideFloats(what any, shapes ...*shape) error {
	for _, s := range shapes {
		if l, _ := s.lane(); l.typ.Float() && !narrowFloat(l.typ) {
			return unsupported("values of this type can be loaded, stored and moved only", "%v of %v", what, l.typ)
		}
	}
	return nil
}

func (d *decoder) floatCast(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	if err := wideFloats(i.Op, a.s, out.s); err != nil {
		return nil, err
	}
	from, _ := a.s.lane()
	to, _ := out.s.lane()
	fromInt := i.Op == ir.OpUIToFP || i.Op == ir.OpSIToFP
	toInt := i.Op == ir.OpFPToUI || i.Op == ir.OpFPToSI
	if from.typ.Float() == fromInt || to.typ.Float() == toInt || from.typ.Kind == ir.PointerKind || to.typ.Kind == ir.PointerKind {
		return nil, troublef(KindModule, "%v of %v to %v", i.Op, a.s.typ, out.s.typ)
	}
	return lanes1(out, a, func(dst, src []word) error {
		if !defined(src) {
			poisonWords(dst, to.bits)
			return nil
		}
		switch {
		case fromInt:
			v := toBig(src)
			if i.Op == ir.OpSIToFP {
				v = toSigned(src, from.bits)
			}
			if i.Flags&ir.NNeg != 0 && toSigned(src, from.bits).Sign() < 0 {
				poisonWords(dst, to.bits)
				return nil
			}
			dst[0] = word{v: intToFloat(to.typ.Kind, v)}
		case toInt:
			v, ok := floatToInt(floatOf(from.typ.Kind, src[0].v), to.bits, i.Op == ir.OpFPToSI)
			if !ok {
				poisonWords(dst, to.bits)
				return nil
			}
			setBig(dst, v, to.bits)
		default:
			dst[0] = word{v: floatBits(to.typ.Kind, floatOf(from.typ.Kind, src[0].v))}
		}
		return nil
	})
}

// intToFloat rounds an integer to a float once: to nearest, ties to even.
func intToFloat(k ir.TypeKind, v *big.Int) uint64 {
	f := new(big.Float).SetInt(v) // exact: its precision is what v needs
	if k == ir.DoubleKind {
		d, _ := f.Float64()
		return math.Float64bits(d)
	}
	return floatBits(k, toOdd(f))
}

// toOdd is f cut to a float64 whose last bit is set where something was cut
// off. To round that once more, to a format of at most 51 bits, gives what
// rounding f would (Boldo and Melquiond, "Emulation of FMA and correctly rounded
// sums", 2008).
func toOdd(f *big.Float) float64 {
	cut := new(big.Float).SetMode(big.ToZero).SetPrec(53).Set(f)
	d, _ := cut.Float64()
	if cut.Cmp(f) != 0 && !math.IsInf(d, 0) {
		d = math.Float64frombits(math.Float64bits(d) | 1)
	}
	return d
}

// floatToInt cuts the fraction off; false where the integer does not fit.
func floatToInt(f float64, bits int, signed bool) (*big.Int, bool) {
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return nil, false
	}
	v, _ := new(big.Float).SetFloat64(f).Int(nil)
	if signed {
		return v, fitsSigned(v, bits)
	}
	return v, v.Sign() >= 0 && v.BitLen() <= bits
}
