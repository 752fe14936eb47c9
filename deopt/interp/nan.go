package interp

import (
	"math"

	"example.com/reframe/internal/llvm/ir"
)

// Which NaN an operation results in is up to the processor that this runs on: of several operands one takes the first, another
// a signaling one, a third none of them, and the one that is made of no NaN is negative here and positive there. A program that prints
// or stores it sees that, and what it sees must not depend on where it is interpreted. So the rule is that of
// x86-64 everywhere (Intel SDM vol. 1, 4.8.3.5 and table 4-7): the first operand that is a NaN, made quiet, or else the default one.
const (
	defaultNaN = 0xfff8 << 48 // "QNaN floating-point indefinite"
	quietBit   = 1 << 51
)

// nanOf is the NaN that an operation on doubles results in.
func nanOf(operands ...float64) float64 {
	for _, x := range operands {
		if math.IsNaN(x) {
			return math.Float64frombits(math.Float64bits(x) | quietBit)
		}
	}
	return math.Float64frombits(defaultNaN)
}

// double is the bits of a result of the doubles a and b, and single that of floats.
func double(r float64, a, b uint64) uint64 {
	if r != r {
		return nanBits(ir.DoubleKind, a, b)
	}
	return math.Float64bits(r)
}

func single(r float32, a, b uint64) uint64 {
	if r != r {
		return nanBits(ir.FloatKind, a, b)
	}
	return uint64(math.Float32bits(r))
}

func nanBits(k ir.TypeKind, a, b uint64) uint64 {
	return floatBits(k, nanOf(floatOf(k, a), floatOf(k, b)))
}

// widened makes a double of a float, and of a NaN a quiet one.
func widened(bits uint32) float64 {
	if f := math.Float32frombits(bits); f == f {
		return float64(f)
	}
	b := uint64(bits)
	return math.Float64frombits(b>>31<<63 | 0x7ff<<52 | quietBit | b&(1<<22-1)<<29)
}
