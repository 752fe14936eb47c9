package libm

import (
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// The error function and the complementary error function (C17 7.12.8).
var (
	Erf = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		switch {
		case x.Class == softfloat.Zero:
			return x
		case x.Class == softfloat.Inf || lead(x) >= 4: // within e^-256 of one
			return odd(x, func(softfloat.Number) softfloat.Number { return plusOne(false) })
		}
		return odd(x, func(x softfloat.Number) softfloat.Number {
			return roundCorrectly(f, func(prec int) approx {
				frac := prec + max(0, -lead(x)) + 24
				return approx{errorFunction(x, frac), frac}.cut(prec)
			})
		})
	}}
	Erfc = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		switch {
		case x.Class == softfloat.Zero || x.Class == softfloat.Finite && lead(x) < -f.Prec-4:
			return plusOne(false)
		case (x.Class == softfloat.Inf || lead(x) >= 4) && x.Neg:
			return softfloat.FromInt(big.NewInt(2))
		case x.Class == softfloat.Inf:
			return softfloat.Number{}
		case lead(x) >= f.ExpBits/2: // smaller than every number of the format
			return past(true)
		}
		return roundCorrectly(f, func(prec int) approx {
			frac := prec + smallness(x) + 24
			y := errorFunction(x.Abs(), frac)
			if x.Neg {
				y.Neg(y)
			}
			return approx{y.Sub(one(frac), y), frac}.cut(prec)
		})
	}}
)

// smallness returns an upper bound of n, where e^-x^2 is 2^-n.
func smallness(x softfloat.Number) int {
	y := fixed(x.Abs(), 8)
	y.Mul(y, y).Rsh(y, 16)
	return int(y.Int64())*3/2 + 8
}

// errorFunction returns erf x for 0 < x < 2^8: 2/sqrt(pi) times the sum of (-1)^n x^(2n+1) / (n! (2n+1)). The terms and their errors grow to e^x^2
// before they shrink.
func errorFunction(x softfloat.Number, frac int) *big.Int {
	wide := frac + smallness(x) + 16
	y := fixed(x, wide)
	square := mul(y, y, wide)
	sum, power := new(big.Int).Set(y), y
	for n := int64(1); ; n++ {
		power = mul(power, square, wide)
		power.Quo(power, big.NewInt(-n))
		if power.Sign() == 0 {
			break
		}
		sum.Add(sum, new(big.Int).Quo(power, big.NewInt(2*n+1)))
	}
	root := pi.at(2 * wide)
	sum = div(sum.Lsh(sum, 1), root.Sqrt(root), wide)
	return sum.Rsh(sum, uint(wide-frac))
}
