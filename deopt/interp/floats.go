package interp

import (
	"math"

	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

// narrowFloat reports whether a float64 holds every value of t exactly, so that Go's arithmetic can be used. Software computes x86_fp80 and fp128.
func narrowFloat(t *ir.Type) bool { return t.Kind >= ir.HalfKind && t.Kind <= ir.DoubleKind }

// formats holds the supported float types (LangRef, "Floating-Point Types"). It has no entry for ppc_fp128, a pair of doubles, because shapes
// refuse that type.
var formats = map[ir.TypeKind]softfloat.Format{
	ir.HalfKind: softfloat.Half, ir.BFloatKind: softfloat.BFloat, ir.FloatKind: softfloat.Single,
	ir.DoubleKind: softfloat.Double, ir.X86FP80Kind: softfloat.X87, ir.FP128Kind: softfloat.Quad,
}

// floatNumber decodes a float of any type; setFloat rounds a number into words.
func floatNumber(k ir.TypeKind, w []word) softfloat.Number { return formats[k].Decode(toBig(w)) }

func setFloat(k ir.TypeKind, dst []word, n softfloat.Number) {
	f := formats[k]
	setBig(dst, f.Encode(n), f.Bits())
}

// floatOf decodes the bits of a half, bfloat, float or double. A float64 holds every value of the smaller formats exactly.
func floatOf(k ir.TypeKind, bits uint64) float64 {
	switch k {
	case ir.DoubleKind:
		return math.Float64frombits(bits)
	case ir.FloatKind:
		return widened(uint32(bits))
	case ir.BFloatKind:
		return widened(uint32(bits) << 16)
	}
	sign, exp, frac := bits>>15&1, int(bits>>10&0x1f), bits&0x3ff
	switch exp {
	case 0x1f: // infinity and NaN, with its payload
		return math.Float64frombits(sign<<63 | 0x7ff<<52 | frac<<42)
	case 0:
		f := math.Ldexp(float64(frac), -24)
		if sign == 1 {
			f = -f
		}
		return f
	}
	return math.Float64frombits(sign<<63 | uint64(exp-15+1023)<<52 | frac<<42)
}

// floatBits rounds f to the format k: to nearest, ties to even. A NaN keeps the upper bits of its payload and becomes quiet, as in the conversions
// of x86-64.
func floatBits(k ir.TypeKind, f float64) uint64 {
	switch k {
	case ir.DoubleKind:
		return math.Float64bits(f)
	case ir.FloatKind:
		if math.IsNaN(f) {
			b := math.Float64bits(f)
			return b>>63<<31 | 0x7fc<<20 | b>>29&(1<<22-1)
		}
		return uint64(math.Float32bits(float32(f)))
	case ir.BFloatKind:
		return roundBits(f, 8, 7)
	}
	return roundBits(f, 5, 10)
}

// roundBits rounds a float64 to a format of 16 bits in one step, to avoid double rounding.
func roundBits(f float64, expBits, fracBits int) uint64 {
	b := math.Float64bits(f)
	sign := b >> 63 << (expBits + fracBits)
	inf := uint64(1<<expBits-1) << fracBits
	switch {
	case math.IsNaN(f):
		return sign | inf | 1<<(fracBits-1) | b&(1<<52-1)>>(52-fracBits)
	case math.IsInf(f, 0):
		return sign | inf
	case f == 0:
		return sign
	}
	frac, exp := math.Frexp(math.Abs(f)) // frac in [0.5, 1)
	bias := 1<<(expBits-1) - 1
	// ulp is the exponent of the last place. All subnormal numbers have the exponent of the least normal number.
	ulp := max(exp-1, 1-bias) - fracBits
	units := math.RoundToEven(math.Ldexp(frac, exp-ulp))
	if math.Ldexp(units, ulp) >= math.Ldexp(1, bias+1) {
		return sign | inf
	}
	// The significand of a normal number contains its leading one, which carries into the exponent.
	return sign | (uint64(ulp+fracBits+bias-1)<<fracBits + uint64(units))
}
