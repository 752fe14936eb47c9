package libm

import (
	"math"
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// expOf returns e^r for |r| < 2. It sums the Taylor series for r/2^s and squares the sum s times.
func expOf(r *big.Int, frac int) *big.Int {
	const s = 8
	wide := frac + 2*s + 8
	x := new(big.Int).Lsh(r, uint(wide-frac-s))
	sum, term := one(wide), one(wide)
	product, n := new(big.Int), new(big.Int) // reused, because allocating numbers takes most of the time
	for k := int64(1); ; k++ {
		term.Rsh(product.Mul(term, x), uint(wide))
		if term.Quo(term, n.SetInt64(k)); term.Sign() == 0 {
			break
		}
		sum.Add(sum, term)
	}
	for range s {
		sum.Rsh(product.Mul(sum, sum), uint(wide))
	}
	return sum.Rsh(sum, uint(wide-frac))
}

// reduce returns k and r such that y = k*ln2 + r with |r| < 1/2, for |y| < 2^40.
func reduce(y *big.Int, frac int) (k int, r *big.Int) {
	k = int(math.RoundToEven(near(y, frac) / math.Ln2))
	wide := frac + 44
	r = new(big.Int).Mul(ln2.at(wide), big.NewInt(int64(k)))
	r.Sub(new(big.Int).Lsh(y, 44), r)
	return k, r.Rsh(r, 44)
}

// expFixed returns an approximation of e^y to prec bits, for |y| < 2^40.
func expFixed(y *big.Int, frac, prec int) approx {
	k, r := reduce(y, frac)
	r.Rsh(r, uint(frac-prec))
	return approx{expOf(r, prec), prec - k}
}

// exponential returns the function b^x, where c is the natural logarithm of the base b, or nil for base e.
func exponential(c *constant) Func {
	return Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		switch {
		case x.Class == softfloat.Inf && x.Neg:
			return softfloat.Number{}
		case x.Class == softfloat.Inf:
			return x
		case x.Class == softfloat.Zero || lead(x) < -f.Prec-4:
			return softfloat.FromInt(big.NewInt(1))
		case lead(x) > f.ExpBits: // the result is outside of the exponent range, for every base
			return past(x.Neg)
		}
		return roundCorrectly(f, func(prec int) approx {
			frac := prec + 24
			y := fixed(x, frac+8)
			if c != nil {
				y = mul(y, c.at(frac+8), frac+8)
			}
			return expFixed(y.Rsh(y, 8), frac, prec)
		})
	}}
}

// past returns a number that every format rounds to infinity, or to zero if small is set.
func past(small bool) softfloat.Number {
	n := softfloat.FromInt(big.NewInt(1))
	n.Exp = 1 << 16
	if small {
		n.Exp = -1 << 16
	}
	return n
}

// The exponential functions.
var (
	Exp   = exponential(nil)
	Exp2  = exponential(ln2)
	Exp10 = exponential(ln10)
	Expm1 = Func{1, hyperbolic(func(e, inverse *big.Int, frac int) *big.Int { return e.Sub(e, one(frac)) }, infinite, minusOne)}
	Sinh  = Func{1, hyperbolic(func(e, inverse *big.Int, _ int) *big.Int { e.Sub(e, inverse); return e.Rsh(e, 1) }, infinite, infinite)}
	Cosh  = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		if v[0].Class == softfloat.Zero || v[0].Class == softfloat.Finite && lead(v[0]) < -f.Prec/2-2 {
			return softfloat.FromInt(big.NewInt(1))
		}
		return hyperbolic(func(e, inverse *big.Int, _ int) *big.Int { e.Add(e, inverse); return e.Rsh(e, 1) }, infinite, infinite)(f, []softfloat.Number{v[0].Abs()})
	}}
	Tanh = Func{1, hyperbolic(func(e, inverse *big.Int, frac int) *big.Int {
		return div(new(big.Int).Sub(e, inverse), new(big.Int).Add(e, inverse), frac)
	}, plusOne, minusOne)}
)

func infinite(neg bool) softfloat.Number {
	n := past(false)
	n.Neg = neg
	return n
}

// plusOne and minusOne return the limits 1 and -1. For large arguments, the function rounds to its limit.
func plusOne(bool) softfloat.Number  { return softfloat.FromInt(big.NewInt(1)) }
func minusOne(bool) softfloat.Number { return softfloat.FromInt(big.NewInt(-1)) }

// hyperbolic returns the function that of computes from e^x and e^-x. The function must equal x near zero. high and low return its limits for large
// positive and negative x.
func hyperbolic(of func(e, inverse *big.Int, frac int) *big.Int, high, low func(neg bool) softfloat.Number) func(softfloat.Format, []softfloat.Number) softfloat.Number {
	return func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		large := x.Class == softfloat.Inf || x.Class == softfloat.Finite && lead(x) > f.ExpBits
		switch {
		case large && x.Neg:
			return low(true)
		case large:
			return high(false)
		case x.Class == softfloat.Zero || lead(x) < -f.Prec-2:
			return x
		}
		return roundCorrectly(f, func(prec int) approx {
			// For a small x the leading bits of the result cancel, so compute more bits.
			frac := prec + max(0, -2*lead(x)) + 24
			y := fixed(x, frac+24)
			e := expFixed(y, frac+24, frac)
			inverse := expFixed(y.Neg(y), frac+24, frac)
			r := of(fixed(e.number(), frac), fixed(inverse.number(), frac), frac)
			return approx{r, frac}.cut(prec)
		})
	}
}

// cut drops the surplus low bits of an approximation.
func (a approx) cut(prec int) approx {
	by := a.v.BitLen() - prec - 4
	if by <= 0 {
		return a
	}
	return approx{a.v.Rsh(a.v, uint(by)), a.frac - by}
}
