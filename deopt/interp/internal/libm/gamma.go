package libm

import (
	"math/big"
	"sync"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// The gamma function, and the logarithm of its absolute value (C17 7.12.8).
var (
	Tgamma = Func{1, tgamma}
	Lgamma = Func{1, lgamma}
)

// tgamma implements the gamma function, with the special cases of C17 F.10.5.4.
func tgamma(f softfloat.Format, v []softfloat.Number) softfloat.Number {
	x := v[0]
	whole, _ := isInteger(x)
	switch {
	case x.Class == softfloat.Zero:
		return softfloat.Number{Class: softfloat.Inf, Neg: x.Neg}
	case x.Class == softfloat.Inf && !x.Neg:
		return x
	case x.Class == softfloat.Inf, x.Neg && whole:
		return softfloat.Number{Class: softfloat.NaN}
	}
	neg := x.Neg && belowIsOdd(x)
	var r softfloat.Number
	switch {
	case lead(x) >= f.ExpBits: // overflow, or underflow for a negative x
		r = past(x.Neg)
	case lead(x) < -f.Prec-4: // gamma(x) differs from 1/x by less than its last place
		r = softfloat.Div(softfloat.FromInt(big.NewInt(1)), x.Abs(), f.Prec)
	default:
		r = roundCorrectly(f, func(prec int) approx {
			frac := prec + f.Prec + f.ExpBits + 40
			log := logGamma(x, frac)
			if log.BitLen() > frac+f.ExpBits+1 {
				return approx{one(prec), prec - past(log.Sign() < 0).Exp}
			}
			return expFixed(log, frac, prec)
		})
	}
	r.Neg = neg
	return r
}

// lgamma implements log |gamma(x)|, with the special cases of C17 F.10.5.3.
func lgamma(f softfloat.Format, v []softfloat.Number) softfloat.Number {
	x := v[0]
	whole, _ := isInteger(x)
	switch {
	case x.Class == softfloat.Inf, x.Class == softfloat.Zero, x.Neg && whole:
		return softfloat.Number{Class: softfloat.Inf}
	case whole && (softfloat.Cmp(x, softfloat.FromInt(big.NewInt(1))) == 0 || softfloat.Cmp(x, softfloat.FromInt(big.NewInt(2))) == 0):
		return softfloat.Number{}
	}
	return roundCorrectly(f, func(prec int) approx {
		frac := prec + f.Prec + 40 // near a zero, the result is about as small as the distance of x from it
		return approx{logGamma(x, frac), frac}.cut(prec)
	})
}

// belowIsOdd reports whether the next lower integer is odd. The number must be negative and not an integer.
func belowIsOdd(x softfloat.Number) bool {
	return x.Exp < 0 && new(big.Int).Rsh(x.Mant, uint(-x.Exp)).Bit(0) == 0
}

// logGamma returns the logarithm of |gamma(x)| with frac bits after the point; x must not be a pole. For a large x, frac counts correct bits.
func logGamma(x softfloat.Number, frac int) *big.Int {
	unit := softfloat.FromInt(big.NewInt(1))
	switch {
	case lead(x) < -1: // gamma(x) = gamma(1+x)/x
		z := logGammaFrom(fixed(softfloat.Add(unit, x), frac), frac)
		return z.Sub(z, logFixed(x.Abs(), frac))
	case !x.Neg:
		return logGammaFrom(fixed(x, frac), frac)
	}
	// Use gamma(x) gamma(1-x) = pi / sin(pi x). The absolute value of the sine depends only on the distance to the nearest integer.
	y := fixed(x, frac)
	z := logGammaFrom(new(big.Int).Sub(one(frac), y), frac)
	y.Sub(y, new(big.Int).Lsh(nearest(y, frac), uint(frac)))
	sin, _ := sinCos(mul(y.Abs(y), pi.at(frac), frac), frac)
	z.Add(z, logFixed(approx{sin, frac}.number(), frac))
	return z.Sub(lnPi.at(frac), z)
}

// logGammaFrom returns the logarithm of gamma(z) for z >= 1/2. It evaluates Stirling's series at y = z+n, large enough for the precision. Then
// gamma(z) is gamma(y) divided by the product z (z+1) ... (y-1) (NIST DLMF 5.5.1, 5.11.1).
func logGammaFrom(z *big.Int, frac int) *big.Int {
	wide := frac + 32
	y := new(big.Int).Lsh(z, 32)
	unit, product := one(wide), one(wide)
	for least := new(big.Int).Lsh(big.NewInt(int64(wide/3)), uint(wide)); y.Cmp(least) < 0; {
		product = mul(product, y, wide)
		y.Add(y, unit)
	}
	sum := new(big.Int).Sub(y, new(big.Int).Rsh(unit, 1))
	sum = mul(sum, logFixed(approx{y, wide}.number(), wide), wide)
	sum.Sub(sum, y)
	half := new(big.Int).Add(lnPi.at(wide), ln2.at(wide))
	sum.Add(sum, half.Rsh(half, 1))
	power := div(unit, y, wide)
	for k, square := 1, mul(power, power, wide); ; k++ {
		c := stirling.at(k)
		term := new(big.Int).Mul(power, c.Num())
		if term.Quo(term, c.Denom()); term.Sign() == 0 {
			break
		}
		sum.Add(sum, term)
		power = mul(power, square, wide)
	}
	sum.Sub(sum, logFixed(approx{product, wide}.number(), wide))
	return sum.Rsh(sum, 32)
}

var lnPi = &constant{make: func(frac int) *big.Int { return logFixed(approx{pi.at(frac), frac}.number(), frac) }}

// coefficients holds the coefficients of Stirling's series, B(2k) / (2k (2k-1)) for k from 1 on, as far as computed.
type coefficients struct {
	mu        sync.Mutex
	bernoulli []*big.Rat // B(0), B(1), B(2) ...
}

var stirling coefficients

func (c *coefficients) at(k int) *big.Rat {
	c.mu.Lock()
	defer c.mu.Unlock()
	for n := len(c.bernoulli); n <= 2*k; n++ {
		// The sum of C(n+1, j) B(j) for j from 0 to n is 0, and 1 for n = 0 (NIST DLMF 24.5.3).
		b := new(big.Rat)
		for j, earlier := range c.bernoulli {
			b.Sub(b, new(big.Rat).Mul(earlier, new(big.Rat).SetInt(new(big.Int).Binomial(int64(n+1), int64(j)))))
		}
		if n == 0 {
			b.SetInt64(1)
		}
		c.bernoulli = append(c.bernoulli, b.Quo(b, big.NewRat(int64(n+1), 1)))
	}
	return new(big.Rat).Quo(c.bernoulli[2*k], big.NewRat(int64(2*k*(2*k-1)), 1))
}
