package libm

import (
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// The powers and roots.
var (
	Pow   = Func{2, pow}
	Cbrt  = Func{1, cbrt}
	Hypot = Func{2, hypot}
)

// pow implements x^y, with the special cases of C17 F.10.4.4.
func pow(f softfloat.Format, v []softfloat.Number) softfloat.Number {
	x, y := v[0], v[1]
	unit := softfloat.FromInt(big.NewInt(1))
	whole, odd := isInteger(y)
	neg := x.Neg && odd
	signed := func(n softfloat.Number) softfloat.Number {
		n.Neg = neg
		return n
	}
	size := 0 // -1, 0 or 1 for |x| less than, equal to or greater than one
	if x.Class != softfloat.NaN {
		size = softfloat.Cmp(x.Abs(), unit)
	}
	switch {
	case y.Class == softfloat.Zero, x.Class == softfloat.Finite && softfloat.Cmp(x, unit) == 0:
		return unit
	case x.Class == softfloat.NaN || y.Class == softfloat.NaN:
		return softfloat.Add(x, y)
	case y.Class == softfloat.Inf && size == 0:
		return unit
	case y.Class == softfloat.Inf && size > 0 == y.Neg:
		return softfloat.Number{}
	case y.Class == softfloat.Inf:
		return softfloat.Number{Class: softfloat.Inf}
	case x.Class == softfloat.Zero && y.Neg, x.Class == softfloat.Inf && !y.Neg:
		return signed(softfloat.Number{Class: softfloat.Inf})
	case x.Class == softfloat.Zero || x.Class == softfloat.Inf:
		return signed(softfloat.Number{})
	case x.Neg && !whole:
		return softfloat.Number{Class: softfloat.NaN}
	case size == 0:
		return signed(unit)
	case lead(y) > f.Prec+f.ExpBits: // |log x| > 2^-Prec: the result is outside of the exponent range
		return signed(past(size > 0 == y.Neg))
	case lead(y) < -f.Prec-f.ExpBits-2: // |log x| < 2^ExpBits: the result rounds to one
		return unit
	}
	x.Neg = false
	return signed(roundCorrectly(f, func(prec int) approx {
		frac := prec + f.Prec + f.ExpBits + max(0, lead(y)) + 32
		z := new(big.Int).Mul(logFixed(x, frac), y.Mant)
		if y.Neg {
			z.Neg(z)
		}
		if y.Exp >= 0 {
			z.Lsh(z, uint(y.Exp))
		} else {
			z.Rsh(z, uint(-y.Exp))
		}
		if z.BitLen() > frac+f.ExpBits+1 {
			return approx{one(prec), prec - past(z.Sign() < 0).Exp}
		}
		return expFixed(z, frac, prec)
	}))
}

// isInteger reports whether n is an integer, and if so whether it is odd.
func isInteger(n softfloat.Number) (whole, odd bool) {
	switch n.Class {
	case softfloat.Zero:
		return true, false
	case softfloat.Finite:
		whole = n.Exp >= 0 || int(n.Mant.TrailingZeroBits()) >= -n.Exp
		return whole, whole && n.Exp <= 0 && n.Mant.Bit(-n.Exp) == 1
	}
	return false, false
}

// cbrt computes the cube root of a scaled integer, and appends a sticky bit that is set if the root is inexact.
func cbrt(f softfloat.Format, v []softfloat.Number) softfloat.Number {
	x := v[0]
	if x.Class != softfloat.Finite {
		return x
	}
	up := 3 * (f.Prec + 4)
	for (x.Exp-up)%3 != 0 {
		up++
	}
	n := new(big.Int).Lsh(x.Mant, uint(up))
	// Newton's method; the first value is above the root.
	root := one(n.BitLen()/3 + 1)
	for {
		next := new(big.Int).Mul(root, root)
		next.Quo(n, next).Add(next, root).Add(next, root).Quo(next, big.NewInt(3))
		if next.Cmp(root) >= 0 {
			break
		}
		root = next
	}
	exact := new(big.Int).Exp(root, big.NewInt(3), nil).Cmp(n) == 0
	root.Lsh(root, 1)
	if !exact {
		root.SetBit(root, 0, 1)
	}
	return softfloat.Number{Class: softfloat.Finite, Neg: x.Neg, Mant: root, Exp: (x.Exp-up)/3 - 1}
}

// hypot returns infinity if one argument is infinite, even if the other is a NaN (C17 F.10.4.3).
func hypot(f softfloat.Format, v []softfloat.Number) softfloat.Number {
	for _, n := range v {
		if n.Class == softfloat.Inf {
			return n.Abs()
		}
	}
	return softfloat.Sqrt(softfloat.Add(softfloat.Mul(v[0], v[0]), softfloat.Mul(v[1], v[1])), f.Prec)
}
