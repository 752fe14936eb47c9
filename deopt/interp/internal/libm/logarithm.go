package libm

import (
	"math"
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// logFixed returns the logarithm of a finite n > 0 with frac bits after the point.
func logFixed(n softfloat.Number, frac int) *big.Int {
	k := lead(n)
	n.Exp -= k // n is now in [1, 2)
	m := fixed(n, frac+8)
	if m.Cmp(new(big.Int).Lsh(big.NewInt(3), uint(frac+7))) > 0 {
		// Move n below one. Otherwise k*ln2 and the logarithm of n would cancel for a number just below a power of two.
		k++
		n.Exp--
		m = fixed(n, frac+8)
	}
	z := logNear(m, frac+8)
	if k != 0 {
		ln := new(big.Int).Mul(ln2.at(frac+40), big.NewInt(int64(k)))
		z.Add(z, ln.Rsh(ln, 32))
	}
	return z.Rsh(z, 8)
}

// logNear returns log m for m in [3/4, 3/2]. It guesses the logarithm g, and adds the logarithm of m/e^g, which is close to one.
func logNear(m *big.Int, frac int) *big.Int {
	guess := fixed(fromFloat(math.Log(near(m, frac))), frac)
	rest := mul(m, expOf(new(big.Int).Neg(guess), frac), frac)
	t := new(big.Int).Sub(rest, one(frac))
	// log(1+t) = 2 atanh(t/(2+t)).
	s := div(t, new(big.Int).Add(rest, one(frac)), frac)
	return guess.Add(guess, new(big.Int).Lsh(arc(s, frac, 1), 1))
}

// arc returns the sum of sign^k s^(2k+1)/(2k+1) for a small s. This is atanh(s) for sign 1, and atan(s) for sign -1.
func arc(s *big.Int, frac int, sign int64) *big.Int {
	square := mul(s, s, frac)
	sum, power := new(big.Int).Set(s), s
	for k, g := int64(3), sign; ; k, g = k+2, g*sign {
		power = mul(power, square, frac)
		term := new(big.Int).Quo(power, big.NewInt(k*g))
		if term.Sign() == 0 || power.BitLen() <= 1 {
			return sum
		}
		sum.Add(sum, term)
	}
}

// logarithm returns the logarithm function of a base, where c is the natural logarithm of the base, or nil for base e.
func logarithm(c *constant) Func {
	return Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		return logOf(f, v[0], 0, c)
	}}
}

func logOf(f softfloat.Format, x softfloat.Number, extra int, c *constant) softfloat.Number {
	switch {
	case x.Class == softfloat.Zero:
		return softfloat.Number{Class: softfloat.Inf, Neg: true}
	case x.Neg:
		return softfloat.Number{Class: softfloat.NaN}
	case x.Class == softfloat.Inf:
		return x
	case softfloat.Cmp(x, softfloat.FromInt(big.NewInt(1))) == 0:
		return softfloat.Number{}
	}
	return roundCorrectly(f, func(prec int) approx {
		frac := prec + f.Prec + extra + 24 // the logarithm of x near one is about x-1, so its leading bits are zero
		z := logFixed(x, frac)
		if c != nil {
			z = div(z, c.at(frac), frac)
		}
		return approx{z, frac}.cut(prec)
	})
}

// The logarithms.
var (
	Log   = logarithm(nil)
	Log2  = logarithm(ln2)
	Log10 = logarithm(ln10)
	Log1p = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		if x.Class == softfloat.Zero || x.Class == softfloat.Finite && lead(x) < -f.Prec-2 {
			return x
		}
		return logOf(f, softfloat.Add(x, softfloat.FromInt(big.NewInt(1))), f.Prec, nil)
	}}
)
