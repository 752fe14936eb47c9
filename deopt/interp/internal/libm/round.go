package libm

import (
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// Func is a function of one or two numbers whose result is rounded to a format.
type Func struct {
	Args int
	f    func(f softfloat.Format, v []softfloat.Number) softfloat.Number
}

// Call evaluates the function. The arguments must be values of the format.
func (x Func) Call(f softfloat.Format, v ...softfloat.Number) softfloat.Number {
	for _, n := range v {
		if n.Class == softfloat.NaN && !(x.Args == 2) {
			return softfloat.Add(n, n)
		}
	}
	return f.Decode(f.Encode(x.f(f, v)))
}

// Float64 evaluates the function for doubles.
func (x Func) Float64(v ...float64) float64 {
	var args []softfloat.Number
	for _, d := range v {
		args = append(args, fromFloat(d))
	}
	return toFloat(x.Call(softfloat.Double, args...))
}

// approx is an approximation v * 2^-frac. Its error is less than 2^slack units of v.
type approx struct {
	v    *big.Int
	frac int
}

const slack = 12

// tries holds the precisions to try, in bits above the format's precision. If the rounding is still undecided at the last precision, the result is
// taken to be exact or a tie. No known argument of these functions in doubles has a result that is inexact and closer than 2^-65 of a unit to the
// middle between two doubles (Lefèvre and Muller, "Worst cases for correct rounding of the elementary functions in double precision", 2001).
var tries = []int{36, 280}

// roundCorrectly calls eval with increasing precision until both ends of the error bound round to the same number.
func roundCorrectly(f softfloat.Format, eval func(prec int) approx) softfloat.Number {
	for _, more := range tries {
		a := eval(f.Prec + more)
		e := new(big.Int).Lsh(big.NewInt(1), slack)
		low := approx{new(big.Int).Sub(a.v, e), a.frac}.number()
		high := approx{e.Add(a.v, e), a.frac}.number()
		if x, y := f.Encode(low), f.Encode(high); x.Cmp(y) == 0 {
			return f.Decode(x)
		} else if more == tries[len(tries)-1] {
			exact := nearest(a.v, slack+20)
			return f.Decode(f.Encode(approx{exact, a.frac - slack - 20}.number()))
		}
	}
	panic("libm: no precision to try") // unreachable, because tries is not empty
}

func (a approx) number() softfloat.Number {
	n := softfloat.FromInt(a.v)
	n.Exp = -a.frac
	return n
}

// nearest returns v/2^by rounded to the nearest integer.
func nearest(v *big.Int, by int) *big.Int {
	half := new(big.Int).Lsh(big.NewInt(1), uint(by-1))
	return half.Rsh(half.Add(v, half), uint(by))
}

// lead returns the binary exponent of a finite number: 1 <= |n|/2^lead < 2.
func lead(n softfloat.Number) int { return n.Exp + n.Mant.BitLen() - 1 }

// fixed returns a finite number with frac bits after the point, truncated.
func fixed(n softfloat.Number, frac int) *big.Int {
	if n.Class != softfloat.Finite {
		return new(big.Int)
	}
	v := new(big.Int)
	if by := n.Exp + frac; by >= 0 {
		v.Lsh(n.Mant, uint(by))
	} else {
		v.Rsh(n.Mant, uint(-by))
	}
	if n.Neg {
		v.Neg(v)
	}
	return v
}

// mul returns the product of two fixed-point numbers, and div the quotient.
func mul(a, b *big.Int, frac int) *big.Int {
	z := new(big.Int).Mul(a, b)
	return z.Rsh(z, uint(frac))
}

func div(a, b *big.Int, frac int) *big.Int {
	z := new(big.Int).Lsh(a, uint(frac))
	return z.Quo(z, b)
}

func one(frac int) *big.Int { return new(big.Int).Lsh(big.NewInt(1), uint(frac)) }
