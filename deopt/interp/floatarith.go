package interp

import (
	"math"
	"math/big"

	"reframe/deopt/ir"
)

func (d *decoder) floatArith(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 2)
	if err != nil {
		return nil, err
	}
	a, b := args[0], args[1]
	if err := wideFloats(i.Op, out.s); err != nil {
		return nil, err
	}
	lane, _ := out.s.lane()
	if !lane.typ.Float() || !alike(a.s, out.s) || !alike(b.s, out.s) {
		return nil, troublef(KindModule, "%v of %v and %v", i.Op, a.s.typ, b.s.typ)
	}
	kind, op := lane.typ.Kind, i.Op
	return floatLanes2(out, a, b, func(x, y uint64) uint64 { return floatOp(op, kind, x, y) })
}

// floatLanes2 applies f to the bits of floats; an undefined bit in makes all
// bits undefined.
func floatLanes2(out, a, b slot, f func(x, y uint64) uint64) (step, error) {
	lane, _ := out.s.lane()
	return lanes2(out, a, b, func(dst, x, y []word) error {
		if x[0].u|y[0].u != 0 {
			poisonWords(dst, lane.bits)
			return nil
		}
		dst[0] = word{v: f(x[0].v, y[0].v)}
		return nil
	})
}

// floatOp calculates in the format's own precision. For half and bfloat it
// calculates in float64 and rounds once more, which is exact for + - * and /:
// 53 bits are more than twice the bits of either and two more. The remainder
// is always exact.
func floatOp(op ir.Op, kind ir.TypeKind, a, b uint64) uint64 {
	if kind == ir.FloatKind && op != ir.OpFRem {
		x, y := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		var r float32
		switch op {
		case ir.OpFAdd:
			r = x + y
		case ir.OpFSub:
			r = x - y
		case ir.OpFMul:
			r = x * y
		default:
			r = x / y
		}
		return uint64(math.Float32bits(r))
	}
	x, y := floatOf(kind, a), floatOf(kind, b)
	var r float64
	switch op {
	case ir.OpFAdd:
		r = x + y
	case ir.OpFSub:
		r = x - y
	case ir.OpFMul:
		r = x * y
	case ir.OpFDiv:
		r = x / y
	default:
		r = math.Mod(x, y)
	}
	return floatBits(kind, r)
}

// fused is x*y + z rounded once.
func fused(kind ir.TypeKind, x, y, z float64) uint64 {
	r := math.FMA(x, y, z)
	if kind == ir.DoubleKind || math.IsNaN(r) || math.IsInf(r, 0) || r == 0 {
		return floatBits(kind, r)
	}
	// The exact product of two floats has at most 48 bits; the sum with the
	// third spans less than 1000.
	f := new(big.Float).SetPrec(2048).SetFloat64(x)
	f.Mul(f, new(big.Float).SetFloat64(y))
	f.Add(f, new(big.Float).SetFloat64(z))
	return floatBits(kind, toOdd(f))
}

// unary decodes fneg, which flips the sign bit of any float, and freeze.
func (d *decoder) unary(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	if !alike(a.s, out.s) {
		return nil, troublef(KindModule, "%v of %v to %v", i.Op, a.s.typ, out.s.typ)
	}
	if i.Op == ir.OpFreeze {
		// Any value is right for an undefined bit, as long as it stays the same.
		return func(fr *frame) error {
			for k, w := range a.in(fr) {
				fr.w[out.at+k] = word{v: w.v &^ w.u}
			}
			return nil
		}, nil
	}
	lane, _ := out.s.lane()
	if !lane.typ.Float() {
		return nil, troublef(KindModule, "fneg of %v", a.s.typ)
	}
	last, sign := lane.words-1, uint64(1)<<uint((lane.bits-1)%64)
	return lanes1(out, a, func(dst, src []word) error {
		copy(dst, src)
		if dst[last].u&sign == 0 {
			dst[last].v ^= sign
		}
		return nil
	})
}
