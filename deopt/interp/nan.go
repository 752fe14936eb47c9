package interp

import (
	"math"

	"example.com/reframe/internal/llvm/ir"
)

// Processors differ in the NaN that an operation yields: the first NaN operand, a signaling one, or a default NaN, whose sign also differs. A program
// can print or store the NaN, so the result must not depend on the processor that runs the interpreter. The interpreter always follows x86-64 (Intel
// SDM vol. 1, 4.8.3.5 and table 4-7): the result is the first NaN operand, made quiet, or else the default NaN.
const (
	defaultNaN = 0xfff8 << 48 // "QNaN floating-point indefinite"
	quietBit   = 1 << 51
)

// nanOf returns the NaN that an operation on doubles yields if its result is a NaN.
func nanOf(operands ...float64) float64 {
	for _, x := range operands {
		if math.IsNaN(x) {
			return math.Float64frombits(math.Float64bits(x) | quietBit)
		}
	}
	return math.Float64frombits(defaultNaN)
}

// double returns the bits of r, the result of an operation on the doubles a and b. If r is a NaN, it returns the NaN of nanOf. single does the same
// for floats.
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

// widened converts a float to a double. A NaN becomes quiet.
func widened(bits uint32) float64 {
	if f := math.Float32frombits(bits); f == f {
		return float64(f)
	}
	b := uint64(bits)
	return math.Float64frombits(b>>31<<63 | 0x7ff<<52 | quietBit | b&(1<<22-1)<<29)
}
