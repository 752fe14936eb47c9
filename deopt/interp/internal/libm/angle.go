package libm

import (
	"math"
	"math/big"

	"example.com/reframe/deopt/interp/internal/softfloat"
)

// sinCos returns the sine and the cosine of |r| < 2, by their Taylor series.
func sinCos(r *big.Int, frac int) (sin, cos *big.Int) {
	wide := frac + 8
	x := new(big.Int).Lsh(r, 8)
	sin, cos = new(big.Int), one(wide)
	term, product, n := one(wide), new(big.Int), new(big.Int)
	for k := int64(1); ; k++ {
		term.Rsh(product.Mul(term, x), uint(wide))
		if term.Quo(term, n.SetInt64(k)); term.BitLen() <= 1 {
			return sin.Rsh(sin, 8), cos.Rsh(cos, 8)
		}
		sum := sin
		if k%2 == 0 {
			sum = cos
		}
		if k%4 < 2 {
			sum.Add(sum, term)
		} else {
			sum.Sub(sum, term)
		}
	}
}

// quadrant returns k modulo 4 and r such that the angle is k*pi/2 + r, with |r| <= pi/4.
func quadrant(x softfloat.Number, frac int) (k int, r *big.Int) {
	wide := frac + max(0, lead(x)) + 8
	y, right := fixed(x, wide), pi.at(wide+1)
	right.Rsh(right, 2)
	q := new(big.Int).Rsh(right, 1)
	q.Add(q, y).Div(q, right) // adding half of a right angle and rounding down gives the nearest multiple
	r = y.Sub(y, new(big.Int).Mul(q, right))
	return int(new(big.Int).And(q, big.NewInt(3)).Int64()), r.Rsh(r, uint(wide-frac))
}

// circular returns the function that of computes from the sine and cosine of an angle. For an angle near zero, the function returns the angle itself,
// or 1 if even is set.
func circular(even bool, of func(sin, cos *big.Int, frac int) *big.Int) Func {
	return Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		switch {
		case x.Class == softfloat.Inf:
			return softfloat.Number{Class: softfloat.NaN}
		case x.Class == softfloat.Zero || lead(x) < -f.Prec/2-2:
			if even {
				return softfloat.FromInt(big.NewInt(1))
			}
			return x
		}
		return roundCorrectly(f, func(prec int) approx {
			// The distance of an angle to a multiple of pi/2 can have about as many leading zeros as the angle has bits.
			wide := prec + 2*f.Prec + 24
			k, r := quadrant(x, wide)
			frac := prec + 24 + max(0, min(wide-r.BitLen(), 2*f.Prec))
			r.Rsh(r, uint(wide-frac))
			sin, cos := sinCos(r, frac)
			if k%2 == 1 {
				sin, cos = cos, sin.Neg(sin)
			}
			if k >= 2 {
				sin.Neg(sin)
				cos.Neg(cos)
			}
			return approx{of(sin, cos, frac), frac}.cut(prec)
		})
	}}
}

// The trigonometric functions.
var (
	Sin = circular(false, func(sin, _ *big.Int, _ int) *big.Int { return sin })
	Cos = circular(true, func(_, cos *big.Int, _ int) *big.Int { return cos })
	Tan = circular(false, div)
)

// arcTan returns the angle of the point (x, y), in (-pi, pi]. x and y are in fixed point and not both zero. It guesses an angle g, turns the point by
// -g, and adds the small angle of the turned point to g.
func arcTan(y, x *big.Int, frac int) *big.Int {
	guess := math.Atan2(near(y, frac), near(x, frac))
	if math.Abs(guess) > 0.9 {
		// Turn the point by one or two right angles: sinCos requires a small angle.
		turn := int64(math.RoundToEven(guess / (math.Pi / 2)))
		py, px := y, x
		switch turn {
		case 1:
			py, px = new(big.Int).Neg(x), y
		case -1:
			py, px = x, new(big.Int).Neg(y)
		default:
			py, px = new(big.Int).Neg(y), new(big.Int).Neg(x)
		}
		right := new(big.Int).Mul(pi.at(frac+8), big.NewInt(turn))
		return right.Rsh(right, 9).Add(right, arcTan(py, px, frac))
	}
	g := fixed(fromFloat(guess), frac)
	sin, cos := sinCos(g, frac)
	up := new(big.Int).Sub(mul(y, cos, frac), mul(x, sin, frac))
	along := new(big.Int).Add(mul(x, cos, frac), mul(y, sin, frac))
	return g.Add(g, arc(div(up, along, frac), frac, -1))
}

// arcOf returns the angle of the point (x, y), which must be finite and not the origin. exact returns the point, or a multiple of it, in fixed point.
func arcOf(f softfloat.Format, y, x softfloat.Number, exact func(prec, frac int) (y, x *big.Int)) softfloat.Number {
	extra := 0
	if y.Class == softfloat.Finite && x.Class == softfloat.Finite && !x.Neg {
		extra = max(0, lead(x)-lead(y)) // number of leading zero bits of the result
	}
	if extra > 2*f.Prec {
		// The result is slightly less than y/x. The difference matters only for rounding a tie, so decrement the last bit.
		n := softfloat.Div(y, x, f.Prec)
		n.Mant.Lsh(n.Mant, 1).Sub(n.Mant, big.NewInt(1))
		n.Exp--
		return n
	}
	return roundCorrectly(f, func(prec int) approx {
		frac := prec + extra + 32
		py, px := exact(prec, frac)
		return approx{arcTan(py, px, frac), frac}.cut(prec)
	})
}

// point returns a function for arcOf that scales (x, y) so that the greater coordinate is about one. Scaling does not change the angle.
func point(y, x softfloat.Number) func(prec, frac int) (*big.Int, *big.Int) {
	up := -1 << 30
	for _, n := range []softfloat.Number{y, x} {
		if n.Class == softfloat.Finite {
			up = max(up, lead(n))
		}
	}
	return func(_, frac int) (*big.Int, *big.Int) { return fixed(y, frac-up), fixed(x, frac-up) }
}

// arcs returns asin or acos, for |x| <= 1, computed from x and sqrt(1-x^2).
func arcs(sine bool) Func {
	return Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x, unit := v[0], softfloat.FromInt(big.NewInt(1))
		switch {
		case softfloat.Cmp(x.Abs(), unit) > 0:
			return softfloat.Number{Class: softfloat.NaN}
		case sine && (x.Class == softfloat.Zero || lead(x) < -f.Prec/2-2):
			return x
		case !sine && softfloat.Cmp(x, unit) == 0:
			return softfloat.Number{}
		}
		rest := softfloat.Sub(unit, softfloat.Mul(x, x))
		exact := func(prec, frac int) (*big.Int, *big.Int) {
			side := softfloat.Sqrt(rest, frac+f.Prec)
			if sine {
				return fixed(x, frac), fixed(side, frac)
			}
			return fixed(side, frac), fixed(x, frac)
		}
		if sine {
			return arcOf(f, x, softfloat.Sqrt(rest, f.Prec), exact)
		}
		return arcOf(f, softfloat.Sqrt(rest, f.Prec), x, exact)
	}}
}

// The inverse trigonometric functions; Atan2 takes y and x.
var (
	Asin = arcs(true)
	Acos = arcs(false)
	Atan = Func{1, func(f softfloat.Format, v []softfloat.Number) softfloat.Number {
		x := v[0]
		if x.Class == softfloat.Zero || x.Class == softfloat.Finite && lead(x) < -f.Prec/2-2 {
			return x
		}
		return atan2(f, []softfloat.Number{x, softfloat.FromInt(big.NewInt(1))})
	}}
	Atan2 = Func{2, atan2}
)

// atan2 implements atan2, with the special cases of C17 F.10.1.4.
func atan2(f softfloat.Format, v []softfloat.Number) softfloat.Number {
	y, x := v[0], v[1]
	turn := func(eighths int64) softfloat.Number {
		r := roundCorrectly(f, func(prec int) approx {
			z := pi.at(prec + 8)
			return approx{z.Mul(z, big.NewInt(eighths)), prec + 11}
		})
		r.Neg = y.Neg
		return r
	}
	switch {
	case y.Class == softfloat.NaN || x.Class == softfloat.NaN:
		return softfloat.Add(y, x)
	case y.Class == softfloat.Inf && x.Class == softfloat.Inf && x.Neg:
		return turn(6)
	case y.Class == softfloat.Inf && x.Class == softfloat.Inf:
		return turn(2)
	case y.Class == softfloat.Inf, y.Class == softfloat.Finite && x.Class == softfloat.Zero:
		return turn(4)
	case y.Class == softfloat.Zero || x.Class == softfloat.Inf:
		if x.Neg {
			return turn(8)
		}
		return softfloat.Number{Neg: y.Neg}
	}
	r := arcOf(f, y, x, point(y, x))
	r.Neg = y.Neg // also set the sign where arcOf ignored y, because y is negligible compared with x
	return r
}
