package interp

import (
	"math"
	"math/big"

	"reframe/deopt/ir"
)

// floatFunc is a function of floats, lane by lane. The results of those that
// IEEE 754 does not require to be rounded correctly (sin, pow, exp ...) are Go's
// and may differ from a C library's in the last place.
type floatFunc struct {
	args int
	f    func(v []float64) float64
	bits func(k ir.TypeKind, v []uint64) uint64 // instead of f: on the bits themselves
}

func one(f func(float64) float64) floatFunc {
	return floatFunc{args: 1, f: func(v []float64) float64 { return f(v[0]) }}
}

func two(f func(a, b float64) float64) floatFunc {
	return floatFunc{args: 2, f: func(v []float64) float64 { return f(v[0], v[1]) }}
}

type floatIntrinsic interface {
	decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error)
}

var floatIntrinsics = map[string]floatIntrinsic{
	"sqrt": one(math.Sqrt), "floor": one(math.Floor), "ceil": one(math.Ceil), "trunc": one(math.Trunc),
	"rint": one(math.RoundToEven), "nearbyint": one(math.RoundToEven), "roundeven": one(math.RoundToEven),
	"round": one(math.Round), "sin": one(math.Sin), "cos": one(math.Cos), "tan": one(math.Tan),
	"exp": one(math.Exp), "exp2": one(math.Exp2), "exp10": one(func(x float64) float64 { return math.Pow(10, x) }),
	"log": one(math.Log), "log2": one(math.Log2), "log10": one(math.Log10), "pow": two(math.Pow),
	"minnum": two(minNum), "maxnum": two(maxNum), "minimum": two(math.Min), "maximum": two(math.Max),
	"fabs":     floatFunc{args: 1, bits: func(k ir.TypeKind, v []uint64) uint64 { return v[0] &^ signBit(k) }},
	"copysign": floatFunc{args: 2, bits: func(k ir.TypeKind, v []uint64) uint64 { return v[0]&^signBit(k) | v[1]&signBit(k) }},
	"fma": floatFunc{args: 3, bits: func(k ir.TypeKind, v []uint64) uint64 {
		return fused(k, floatOf(k, v[0]), floatOf(k, v[1]), floatOf(k, v[2]))
	}},
	// A target may fuse it or not (LangRef, "llvm.fmuladd"); plain x86-64 does not.
	"fmuladd": floatFunc{args: 3, bits: func(k ir.TypeKind, v []uint64) uint64 {
		return floatOp(ir.OpFAdd, k, floatOp(ir.OpFMul, k, v[0], v[1]), v[2])
	}},
	"powi": powi{}, "fptosi.sat": saturatingCast{true}, "fptoui.sat": saturatingCast{false},
}

func signBit(k ir.TypeKind) uint64 {
	switch k {
	case ir.DoubleKind:
		return 1 << 63
	case ir.FloatKind:
		return 1 << 31
	}
	return 1 << 15
}

// minNum and maxNum return the number where the other operand is a NaN.
func minNum(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	if math.IsNaN(b) {
		return a
	}
	return math.Min(a, b)
}

func maxNum(a, b float64) float64 {
	if math.IsNaN(a) {
		return b
	}
	if math.IsNaN(b) {
		return a
	}
	return math.Max(a, b)
}

func (x floatFunc) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != x.args {
		return nil, wrongUse(i)
	}
	if err := wideFloats(i.Call.Callee.Ref(), out.s); err != nil {
		return nil, err
	}
	lane, n := out.s.lane()
	for _, a := range args {
		if !alike(a.s, out.s) || !lane.typ.Float() {
			return nil, wrongUse(i)
		}
	}
	kind := lane.typ.Kind
	return func(fr *frame) error {
		for k := range n {
			raw, v := make([]uint64, len(args)), make([]float64, len(args))
			var u uint64
			for j, a := range args {
				w := fr.w[a.at+k]
				u |= w.u
				raw[j], v[j] = w.v, floatOf(kind, w.v)
			}
			switch dst := &fr.w[out.at+k]; {
			case u != 0:
				*dst = word{u: maskAt(lane.bits, 0)}
			case x.bits != nil:
				*dst = word{v: x.bits(kind, raw)}
			default:
				*dst = word{v: floatBits(kind, x.f(v))}
			}
		}
		return nil
	}, nil
}

type powi struct{}

// decode multiplies as compiler-rt's __powidf2 does, in the type's precision.
func (powi) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 2 || !alike(args[0].s, out.s) || args[1].s.typ.Kind != ir.IntKind || args[1].s.words != 1 {
		return nil, wrongUse(i)
	}
	if err := wideFloats("llvm.powi", out.s); err != nil {
		return nil, err
	}
	lane, n := out.s.lane()
	kind := lane.typ.Kind
	if !lane.typ.Float() {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		e := fr.w[args[1].at]
		for k := range n {
			x := fr.w[args[0].at+k]
			if x.u|e.u != 0 {
				fr.w[out.at+k] = word{u: maskAt(lane.bits, 0)}
				continue
			}
			power := int64(signExtend(e.v, args[1].s.bits))
			base, r, one := x.v, floatBits(kind, 1), floatBits(kind, 1)
			for p := power; ; {
				if p&1 != 0 {
					r = floatOp(ir.OpFMul, kind, r, base)
				}
				if p /= 2; p == 0 {
					break
				}
				base = floatOp(ir.OpFMul, kind, base, base)
			}
			if power < 0 {
				r = floatOp(ir.OpFDiv, kind, one, r)
			}
			fr.w[out.at+k] = word{v: r}
		}
		return nil
	}, nil
}

// saturatingCast is a conversion to an integer that has a result for every
// float: the nearest integer of the type, 0 for NaN.
type saturatingCast struct{ isSigned bool }

func (x saturatingCast) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 1 {
		return nil, wrongUse(i)
	}
	if err := wideFloats(i.Call.Callee.Ref(), args[0].s); err != nil {
		return nil, err
	}
	from, _ := args[0].s.lane()
	to, _ := out.s.lane()
	if !from.typ.Float() || to.typ.Kind != ir.IntKind {
		return nil, wrongUse(i)
	}
	return lanes1(out, args[0], func(dst, src []word) error {
		if src[0].u != 0 {
			poisonWords(dst, to.bits)
			return nil
		}
		low, high := bounds(to.bits, x.isSigned)
		f := floatOf(from.typ.Kind, src[0].v)
		v := new(big.Int)
		switch {
		case math.IsNaN(f):
		case math.IsInf(f, 1):
			v = high
		case math.IsInf(f, -1):
			v = low
		default:
			whole, _ := new(big.Float).SetFloat64(f).Int(nil)
			v = clamp(whole, to.bits, x.isSigned)
		}
		setBig(dst, v, to.bits)
		return nil
	})
}
