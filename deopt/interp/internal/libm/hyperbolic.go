package libm

import (
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// The inverse hyperbolic functions, computed as logarithms.
var (
	// asinh is odd, and asinh x = log(x + sqrt(x^2+1)).
	Asinh = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		if x.Class != softfloat.Finite || lead(x) < -f.Prec/2-2 {
			return x
		}
		return odd(x, func(x softfloat.Number) softfloat.Number {
			return roundCorrectly(f, func(prec int) approx {
				frac := prec + f.Prec + 24 // for small x the result is about x, with leading zero bits
				return logOfSum(fixed(x, frac), 1, frac).cut(prec)
			})
		})
	}}
	// acosh x = log(x + sqrt(x^2-1)).
	Acosh = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		switch order := softfloat.Cmp(x, softfloat.FromInt(big.NewInt(1))); {
		case order < 0:
			return softfloat.Number{Class: softfloat.NaN}
		case order == 0:
			return softfloat.Number{}
		case x.Class == softfloat.Inf:
			return x
		}
		return roundCorrectly(f, func(prec int) approx {
			frac := prec + f.Prec + 24
			return logOfSum(fixed(x, frac), -1, frac).cut(prec)
		})
	}}
	// atanh is odd, and atanh x = log((1+x)/(1-x)) / 2.
	Atanh = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		order := softfloat.Cmp(x.Abs(), softfloat.FromInt(big.NewInt(1)))
		switch {
		case order > 0:
			return softfloat.Number{Class: softfloat.NaN}
		case order == 0:
			return softfloat.Number{Class: softfloat.Inf, Neg: x.Neg}
		case x.Class == softfloat.Zero || lead(x) < -f.Prec/2-2:
			return x
		}
		return odd(x, func(x softfloat.Number) softfloat.Number {
			return roundCorrectly(f, func(prec int) approx {
				frac := prec + f.Prec + 24
				y := fixed(x, frac)
				ratio := div(new(big.Int).Add(one(frac), y), new(big.Int).Sub(one(frac), y), frac)
				return approx{logFixed(approx{ratio, frac}.number(), frac), frac + 1}.cut(prec)
			})
		})
	}}
)

// odd evaluates an odd function; f computes it for positive numbers.
func odd(x softfloat.Number, f func(x softfloat.Number) softfloat.Number) softfloat.Number {
	r := f(x.Abs())
	r.Neg = x.Neg
	return r
}

// logOfSum returns log(y + sqrt(y^2+sign)).
func logOfSum(y *big.Int, sign int64, frac int) approx {
	square := new(big.Int).Mul(y, y)
	square.Add(square, new(big.Int).Lsh(big.NewInt(sign), uint(2*frac)))
	sum := square.Sqrt(square)
	return approx{logFixed(approx{sum.Add(sum, y), frac}.number(), frac), frac}
}
