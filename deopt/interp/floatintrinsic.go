package interp

import (
	"math"

	"example.com/reframe/deopt/interp/internal/libm"
	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

// laneFunc is a function of floats of one type, applied lane by lane. soft computes it in any format; the caller rounds its result once. narrow, if
// not nil, computes it on the bits of a format whose values a float64 holds exactly.
type laneFunc struct {
	args   int
	soft   func(f softfloat.Format, v []softfloat.Number) softfloat.Number
	narrow func(k ir.TypeKind, v []uint64) uint64
}

// rounds returns a function that rounds to an integer. float64 computes it for all formats whose values a float64 holds exactly.
func rounds(f func(float64) float64, to softfloat.Rounding) laneFunc {
	return laneFunc{1,
		func(_ softfloat.Format, v []softfloat.Number) softfloat.Number { return v[0].Round(to) },
		func(k ir.TypeKind, v []uint64) uint64 { return floatBits(k, one(f).f([]float64{floatOf(k, v[0])})) },
	}
}

// fromC returns the intrinsic that computes a function of <math.h>, rounded correctly.
func fromC(x libm.Func) laneFunc {
	return laneFunc{x.Args, func(f softfloat.Format, v []softfloat.Number) softfloat.Number { return x.Call(f, v...) }, nil}
}

type floatIntrinsic interface {
	decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error)
}

var floatIntrinsics = map[string]floatIntrinsic{
	"sqrt": laneFunc{1,
		func(f softfloat.Format, v []softfloat.Number) softfloat.Number { return softfloat.Sqrt(v[0], f.Prec) },
		// 53 is at least 2p+2 for the precision p of each narrower format, so rounding the root twice equals rounding it once.
		func(k ir.TypeKind, v []uint64) uint64 {
			return floatBits(k, one(math.Sqrt).f([]float64{floatOf(k, v[0])}))
		},
	},
	"floor": rounds(math.Floor, softfloat.Down), "ceil": rounds(math.Ceil, softfloat.Up), "trunc": rounds(math.Trunc, softfloat.ToZero),
	"rint": rounds(math.RoundToEven, softfloat.TiesToEven), "nearbyint": rounds(math.RoundToEven, softfloat.TiesToEven),
	"roundeven": rounds(math.RoundToEven, softfloat.TiesToEven), "round": rounds(math.Round, softfloat.TiesAway),
	"exp": fromC(libm.Exp), "exp2": fromC(libm.Exp2), "exp10": fromC(libm.Exp10),
	"log": fromC(libm.Log), "log2": fromC(libm.Log2), "log10": fromC(libm.Log10), "pow": fromC(libm.Pow),
	"sin": fromC(libm.Sin), "cos": fromC(libm.Cos), "tan": fromC(libm.Tan),
	"asin": fromC(libm.Asin), "acos": fromC(libm.Acos), "atan": fromC(libm.Atan), "atan2": fromC(libm.Atan2),
	"sinh": fromC(libm.Sinh), "cosh": fromC(libm.Cosh), "tanh": fromC(libm.Tanh),
	"minnum": extremum{-1, true}.function(), "maxnum": extremum{1, true}.function(),
	"minimumnum": extremum{-1, true}.function(), "maximumnum": extremum{1, true}.function(),
	"minimum": extremum{-1, false}.function(), "maximum": extremum{1, false}.function(),
	"canonicalize": laneFunc{1, func(_ softfloat.Format, v []softfloat.Number) softfloat.Number { return v[0] }, nil},
	"fma": laneFunc{3,
		func(_ softfloat.Format, v []softfloat.Number) softfloat.Number {
			return softfloat.FMA(v[0], v[1], v[2])
		},
		func(k ir.TypeKind, v []uint64) uint64 {
			return fused(k, floatOf(k, v[0]), floatOf(k, v[1]), floatOf(k, v[2]))
		},
	},
	// A target may fuse the multiplication with the addition or not (LangRef, "llvm.fmuladd"); x86-64 without FMA does not.
	"fmuladd": laneFunc{3,
		func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
			return softfloat.Add(f.Decode(f.Encode(softfloat.Mul(v[0], v[1]))), v[2])
		},
		func(k ir.TypeKind, v []uint64) uint64 {
			return floatOp(ir.OpFAdd, k, floatOp(ir.OpFMul, k, v[0], v[1]), v[2])
		},
	},
	"fabs": signFunc{1}, "copysign": signFunc{2},
	"powi": powi{}, "ldexp": scaling{}, "frexp": splitExponent{}, "modf": splitFraction{}, "sincos": sinCos{},
	"is.fpclass": classTest{}, "fptosi.sat": saturatingCast{true}, "fptoui.sat": saturatingCast{false},
	"lrint": toInteger{softfloat.TiesToEven}, "llrint": toInteger{softfloat.TiesToEven},
	"lround": toInteger{softfloat.TiesAway}, "llround": toInteger{softfloat.TiesAway},
	"vector.reduce.fadd": orderedSum{ir.OpFAdd}, "vector.reduce.fmul": orderedSum{ir.OpFMul},
	"vector.reduce.fmin": extremum{-1, true}, "vector.reduce.fmax": extremum{1, true},
	"vector.reduce.fminimum": extremum{-1, false}, "vector.reduce.fmaximum": extremum{1, false},
}

// fused computes x*y + z, rounded once, for a format whose values a float64 holds exactly. In the narrower formats the product is exact. The sum is
// rounded to odd, so that rounding it again equals rounding once (Boldo and Melquiond, "Emulation of FMA and correctly rounded sums", 2008).
func fused(kind ir.TypeKind, x, y, z float64) uint64 {
	p := float64(x * y) // the conversion rounds, so that Go does not fuse the product with the sum
	s := p + z
	if kind == ir.DoubleKind {
		s = math.FMA(x, y, z)
	}
	if math.IsNaN(s) {
		s = nanOf(x, y, z)
	}
	if kind == ir.DoubleKind || math.IsNaN(s) || math.IsInf(s, 0) {
		return floatBits(kind, s)
	}
	// The error of the sum (Knuth, TAOCP vol. 2, §4.2.2, theorem B).
	q := s - p
	if e := (p - (s - q)) + (z - q); e != 0 && math.Float64bits(s)&1 == 0 {
		if e > 0 == (s > 0) {
			s = math.Float64frombits(math.Float64bits(s) + 1)
		} else {
			s = math.Float64frombits(math.Float64bits(s) - 1)
		}
	}
	return floatBits(kind, s)
}

// decode returns the step of a function whose operands and result have one type.
func (x laneFunc) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	lane, n := out.s.lane()
	if len(args) != x.args || !lane.typ.Float() {
		return nil, wrongUse(i)
	}
	for _, a := range args {
		if !alike(a.s, out.s) {
			return nil, wrongUse(i)
		}
	}
	kind, f := lane.typ.Kind, formats[lane.typ.Kind]
	rules := d.rulesOf(kind)
	soft, result, err := rules.function(x, i)
	if err != nil {
		return nil, err
	}
	raw, v, words := make([]uint64, len(args)), make([]softfloat.Number, len(args)), make([][]word, len(args)+1)
	return func(fr *frame) error {
		if err := chargeLanes(fr.in, n); err != nil {
			return err
		}
		for k := range n {
			known := true
			for j, a := range args {
				words[j] = fr.w[a.at+k*lane.words : a.at+(k+1)*lane.words]
				known = known && defined(words[j])
			}
			dst := fr.w[out.at+k*lane.words : out.at+(k+1)*lane.words]
			words[len(args)] = dst
			switch {
			case !known:
				unknownWords(dst, lane.bits, words[:len(args)]...)
				continue
			case rules != nil:
				for j := range args {
					v[j] = floatNumber(kind, words[j])
				}
				n, err := soft(f, v)
				if err != nil {
					return err
				}
				result.set(kind, dst, n)
			case x.narrow != nil && narrowFloat(lane.typ):
				for j := range args {
					raw[j] = words[j][0].v
				}
				dst[0] = word{v: x.narrow(kind, raw)}
			default:
				for j := range args {
					v[j] = floatNumber(kind, words[j])
				}
				setFloat(kind, dst, x.soft(f, v))
			}
			if !promised(i.Flags, kind, words...) {
				poisonWords(dst, lane.bits)
			}
		}
		return nil
	}, nil
}

// signFunc is fabs (one operand) or copysign (two operands). Both are defined for a NaN (LangRef, "llvm.fabs"), so the result is not a default NaN.
type signFunc struct{ args int }

func (x signFunc) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	lane, _ := out.s.lane()
	if len(args) != x.args || !alike(args[0].s, out.s) || !alike(args[x.args-1].s, out.s) || !lane.typ.Float() {
		return nil, wrongUse(i)
	}
	last, sign := lane.words-1, uint64(1)<<uint((lane.bits-1)%64)
	return lanes2(out, args[0], args[x.args-1], func(dst, a, b []word) error {
		if anyPoison(a, b) || defined(a) && !promised(i.Flags, lane.typ.Kind, a) {
			poisonWords(dst, lane.bits)
			return nil
		}
		copy(dst, a)
		dst[last].v &^= sign
		dst[last].u &^= sign
		if x.args == 2 {
			dst[last].v |= b[last].v & sign
			dst[last].u |= b[last].u & sign
		}
		return nil
	})
}

// extremum is the minimum (-1) or the maximum (1) of two floats. It orders -0 below +0; for minnum and maxnum LangRef permits any order of zeros
// ("llvm.minnum"). If overNaNs is set, the result is the other operand if one is a NaN; else the result is the NaN.
type extremum struct {
	sign     int
	overNaNs bool
}

func (x extremum) function() laneFunc {
	return laneFunc{2, func(_ softfloat.Format, v []softfloat.Number) softfloat.Number { return x.of(v[0], v[1]) }, nil}
}

func (x extremum) of(a, b softfloat.Number) softfloat.Number {
	switch {
	case a.Class == softfloat.NaN && b.Class == softfloat.NaN, a.Class == softfloat.NaN && !x.overNaNs:
		return a
	case b.Class == softfloat.NaN && !x.overNaNs:
		return b
	case a.Class == softfloat.NaN:
		return b
	case b.Class == softfloat.NaN:
		return a
	}
	order := softfloat.Cmp(a, b)
	if order == x.sign || order == 0 && (a.Neg == (x.sign < 0)) {
		return a
	}
	return b
}
