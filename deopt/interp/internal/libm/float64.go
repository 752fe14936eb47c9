package libm

import (
	"math"
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

func fromFloat(d float64) softfloat.Number {
	return softfloat.Double.Decode(new(big.Int).SetUint64(math.Float64bits(d)))
}

func toFloat(n softfloat.Number) float64 {
	return math.Float64frombits(softfloat.Double.Encode(n).Uint64())
}

// near converts a fixed-point number to a double, as a first guess.
func near(v *big.Int, frac int) float64 { return toFloat(approx{v, frac}.number()) }
