package libm

import (
	"math/big"

	"reframe/deopt/interp/internal/softfloat"
)

// Complex is a complex number.
type Complex struct{ Re, Im softfloat.Number }

// complexField is arithmetic in a format: each operation is rounded.
type complexField struct{ f softfloat.Format }

func (k complexField) round(n softfloat.Number) softfloat.Number { return k.f.Decode(k.f.Encode(n)) }

func (k complexField) add(a, b softfloat.Number) softfloat.Number {
	return k.round(softfloat.Add(a, b))
}
func (k complexField) sub(a, b softfloat.Number) softfloat.Number {
	return k.round(softfloat.Sub(a, b))
}
func (k complexField) mul(a, b softfloat.Number) softfloat.Number {
	return k.round(softfloat.Mul(a, b))
}
func (k complexField) div(a, b softfloat.Number) softfloat.Number {
	return k.round(softfloat.Div(a, b, k.f.Prec))
}
func (k complexField) sqrt(a softfloat.Number) softfloat.Number {
	return k.round(softfloat.Sqrt(a, k.f.Prec))
}
func (k complexField) call(f Func, v ...softfloat.Number) softfloat.Number { return f.Call(k.f, v...) }

// wide is a format in which nothing of other formats overflows, with bits to spare.
func (k complexField) wide() complexField {
	return complexField{softfloat.Format{ExpBits: 24, Prec: 2*k.f.Prec + 64}}
}

// power is 2^n.
func power(n int) softfloat.Number {
	return softfloat.Number{Class: softfloat.Finite, Mant: big.NewInt(1), Exp: n}
}

func (k complexField) most() int                  { return 1<<(k.f.ExpBits-1) - 1 } // the exponent of the largest number
func (k complexField) epsilon() softfloat.Number  { return power(1 - k.f.Prec) }
func (k complexField) least() softfloat.Number    { return power(1 - k.most()) } // of those that are not subnormal
func (k complexField) infinity() softfloat.Number { return softfloat.Number{Class: softfloat.Inf} }

var (
	unit     = softfloat.FromInt(big.NewInt(1))
	nothing  = softfloat.Number{}
	notThere = softfloat.Sub(softfloat.Number{Class: softfloat.Inf}, softfloat.Number{Class: softfloat.Inf}) // NaN
)

func withSign(a, sign softfloat.Number) softfloat.Number {
	a.Neg = sign.Neg
	return a
}

func isFinite(a softfloat.Number) bool { return a.Class <= softfloat.Finite }
func isZero(a softfloat.Number) bool   { return a.Class == softfloat.Zero }
func isInf(a softfloat.Number) bool    { return a.Class == softfloat.Inf }
func isNaN(a softfloat.Number) bool    { return a.Class == softfloat.NaN }

func below(a, b softfloat.Number) bool { return softfloat.Cmp(a, b) < 0 }

// turned is i·z, and back is -i·z.
func turned(z Complex) Complex { return Complex{z.Im.Negated(), z.Re} }
func back(z Complex) Complex   { return Complex{z.Im, z.Re.Negated()} }

// ComplexFunc is a function of <complex.h> (C17 7.3), of one or two numbers. Ends and zeros are those of C17 G.6. Elsewhere results are
// made of functions that are rounded correctly, each step rounded in the format, as glibc makes them; where a step would
// overflow or lose digits by underflow, of more bits.
type ComplexFunc struct {
	Args int
	f    func(k complexField, z []Complex) Complex
}

// Call evaluates the function; its arguments are numbers of the format, and so is its result.
func (x ComplexFunc) Call(f softfloat.Format, z ...Complex) Complex {
	k := complexField{f}
	r := x.f(k, z)
	return Complex{k.round(r.Re), k.round(r.Im)}
}

func complexOne(f func(k complexField, z Complex) Complex) ComplexFunc {
	return ComplexFunc{1, func(k complexField, z []Complex) Complex { return f(k, z[0]) }}
}

// The functions of <complex.h> that are there.
var (
	Csqrt  = complexOne(complexField.csqrt)
	Cexp   = complexOne(complexField.cexp)
	Clog   = complexOne(complexField.clog)
	Csinh  = complexOne(complexField.csinh)
	Ccosh  = complexOne(complexField.ccosh)
	Ctanh  = complexOne(complexField.ctanh)
	Catanh = complexOne(complexField.catanh)
	Csin   = complexOne(func(k complexField, z Complex) Complex {
		if isInf(z.Im) && !isFinite(z.Re) { // of either sign (C17 G.6.2.5), which is glibc's
			return Complex{notThere, k.infinity()}
		}
		return back(k.csinh(turned(z)))
	})
	Ccos  = complexOne(func(k complexField, z Complex) Complex { return k.ccosh(turned(z)) })
	Ctan  = complexOne(func(k complexField, z Complex) Complex { return back(k.ctanh(turned(z))) })
	Catan = complexOne(func(k complexField, z Complex) Complex { // catanh is odd, and of the conjugate the conjugate
		r := k.catanh(Complex{z.Im, z.Re})
		return Complex{r.Im, r.Re}
	})
	Cproj = complexOne(func(_ complexField, z Complex) Complex {
		if isInf(z.Re) || isInf(z.Im) {
			return Complex{softfloat.Number{Class: softfloat.Inf}, softfloat.Number{Neg: z.Im.Neg}}
		}
		return z
	})
	Conj = complexOne(func(_ complexField, z Complex) Complex { return Complex{z.Re, z.Im.Negated()} })
	// Cpow is by its definition (C17 7.3.8.2), as in glibc: its last digits are as wrong as those of a product of a large logarithm.
	Cpow = ComplexFunc{2, func(k complexField, z []Complex) Complex { return k.cexp(k.multiply(z[1], k.clog(z[0]))) }}
	Cmul = ComplexFunc{2, func(k complexField, z []Complex) Complex { return k.multiply(z[0], z[1]) }}
	Cdiv = ComplexFunc{2, func(k complexField, z []Complex) Complex { return k.divide(z[0], z[1]) }}
)

// sinCosOf is the sine and the cosine of a finite angle.
func (k complexField) sinCosOf(y softfloat.Number) (sin, cos softfloat.Number) {
	return k.call(Sin, y), k.call(Cos, y)
}

// times returns a product in which a zero stays zero beside a factor that overflowed.
func times(a, b softfloat.Number) softfloat.Number {
	if isZero(a) || isZero(b) {
		return softfloat.Number{Neg: a.Neg != b.Neg}
	}
	return softfloat.Mul(a, b)
}

// reach returns the x up to which glibc takes the exponential function not to overflow, rounded to zero.
func (k complexField) reach() softfloat.Number {
	ln2 := k.wide().call(Log, power(1))
	return softfloat.Mul(softfloat.FromInt(big.NewInt(int64(k.most()))), ln2).Round(softfloat.ToZero)
}

// beyond is the field for an exponential of x.
func (k complexField) beyond(x softfloat.Number) complexField {
	if below(k.reach(), x.Abs()) {
		return k.wide()
	}
	return k
}

func (k complexField) cexp(z Complex) Complex {
	x, y := z.Re, z.Im
	switch {
	case isFinite(x) && isFinite(y):
		sin, cos := k.sinCosOf(y)
		e := k.beyond(x).call(Exp, x)
		return Complex{times(e, cos), times(e, sin)}
	case isFinite(x):
		return Complex{notThere, notThere}
	case isNaN(x):
		if isZero(y) {
			return Complex{x, y}
		}
		return Complex{notThere, notThere}
	case isFinite(y):
		size := k.infinity()
		if x.Neg {
			size = nothing
		}
		if isZero(y) {
			return Complex{size, y}
		}
		sin, cos := k.sinCosOf(y)
		return Complex{withSign(size, cos), withSign(size, sin)}
	case x.Neg:
		return Complex{nothing, withSign(nothing, y)}
	}
	return Complex{k.infinity(), notThere}
}

func (k complexField) csinh(z Complex) Complex {
	x, y := z.Re, z.Im
	switch {
	case isFinite(x) && isFinite(y):
		sin, cos := k.sinCosOf(y)
		b := k.beyond(x)
		return Complex{times(b.call(Sinh, x), cos), times(b.call(Cosh, x), sin)}
	case isZero(x):
		return Complex{x, notThere}
	case isFinite(x):
		return Complex{notThere, notThere}
	case isInf(x) && isZero(y):
		return Complex{x, y}
	case isInf(x) && isFinite(y):
		sin, cos := k.sinCosOf(y)
		re := withSign(k.infinity(), cos)
		re.Neg = re.Neg != x.Neg
		return Complex{re, withSign(k.infinity(), sin)}
	case isInf(x):
		return Complex{k.infinity(), notThere}
	case isZero(y):
		return Complex{notThere, y}
	}
	return Complex{notThere, notThere}
}

func (k complexField) ccosh(z Complex) Complex {
	x, y := z.Re, z.Im
	switch {
	case isFinite(x) && isFinite(y):
		sin, cos := k.sinCosOf(y)
		b := k.beyond(x)
		return Complex{times(b.call(Cosh, x), cos), times(b.call(Sinh, x), sin)}
	case isZero(x):
		return Complex{notThere, nothing}
	case isFinite(x):
		return Complex{notThere, notThere}
	case isInf(x) && isZero(y):
		y.Neg = y.Neg != x.Neg
		return Complex{k.infinity(), y}
	case isInf(x) && isFinite(y):
		sin, cos := k.sinCosOf(y)
		im := withSign(k.infinity(), sin)
		im.Neg = im.Neg != x.Neg
		return Complex{withSign(k.infinity(), cos), im}
	case isInf(x):
		return Complex{k.infinity(), notThere}
	case isZero(y):
		return Complex{notThere, y}
	}
	return Complex{notThere, notThere}
}

func (k complexField) ctanh(z Complex) Complex {
	x, y := z.Re, z.Im
	switch {
	case isInf(x):
		im := withSign(nothing, y)
		if isFinite(y) && below(unit, y.Abs()) {
			sin, cos := k.sinCosOf(y)
			im.Neg = sin.Neg != cos.Neg
		}
		return Complex{withSign(unit, x), im}
	case !isFinite(x) || !isFinite(y):
		switch {
		case isZero(y):
			return Complex{notThere, y}
		case isZero(x):
			return Complex{x, notThere}
		}
		return Complex{notThere, notThere}
	}
	sin, cos := k.sinCosOf(y)
	half := k.reach()
	half.Exp--
	if below(half.Round(softfloat.ToZero), x.Abs()) {
		w := k.wide()
		im := times(softfloat.Mul(sin, cos), w.call(Exp, softfloat.Mul(power(1), withSign(x, unit.Negated()))))
		return Complex{withSign(unit, x), times(power(2), im)}
	}
	sinh, cosh := k.call(Sinh, x), k.call(Cosh, x)
	den := k.mul(cos, cos)
	if below(k.mul(cos.Abs(), k.epsilon()), sinh.Abs()) {
		den = k.add(k.mul(sinh, sinh), den)
	}
	return Complex{k.div(k.mul(sinh, cosh), den), k.div(k.mul(sin, cos), den)}
}

// squares is x² + y² - less, to the bits of the wide format.
func (k complexField) squares(z Complex, less softfloat.Number) softfloat.Number {
	return k.wide().round(softfloat.Sub(softfloat.Add(softfloat.Mul(z.Re, z.Re), softfloat.Mul(z.Im, z.Im)), less))
}

func (k complexField) clog(z Complex) Complex {
	switch {
	case isNaN(z.Re) || isNaN(z.Im):
		if isInf(z.Re) || isInf(z.Im) {
			return Complex{k.infinity(), notThere}
		}
		return Complex{notThere, notThere}
	case isInf(z.Re) || isInf(z.Im):
		return Complex{k.infinity(), k.call(Atan2, z.Im, z.Re)}
	}
	re := k.infinity().Negated()
	switch s := k.squares(z, nothing); {
	case isZero(s):
	case below(power(-1), s) && below(s, power(2)): // near 1, where digits are lost
		re = k.wide().call(Log1p, k.squares(z, unit))
		if re.Class == softfloat.Finite {
			re.Exp--
		}
	default:
		if re = k.call(Hypot, z.Re, z.Im); isFinite(re) && !below(re, k.least()) {
			re = k.call(Log, re)
			break
		}
		re = k.wide().call(Log, s)
		re.Exp--
	}
	return Complex{re, k.call(Atan2, z.Im, z.Re)}
}

func (k complexField) csqrt(z Complex) Complex {
	x, y := z.Re, z.Im
	switch {
	case isInf(y):
		return Complex{k.infinity(), y}
	case isInf(x) && x.Neg:
		re := nothing
		if isNaN(y) {
			re = notThere
		}
		return Complex{re, withSign(k.infinity(), y)}
	case isInf(x):
		if !isNaN(y) {
			y = withSign(nothing, y)
		}
		return Complex{x, y}
	case isNaN(x) || isNaN(y):
		return Complex{notThere, notThere}
	case isZero(y):
		root := k.sqrt(x.Abs())
		if x.Neg && !isZero(x) {
			return Complex{nothing, withSign(root, y)}
		}
		return Complex{root, y}
	}
	// With exponents far from their ends each step is of the format.
	b := k
	for _, n := range []softfloat.Number{x, y} {
		if !isZero(n) && (lead(n) > k.most()-4 || lead(n) < 4-k.most()) {
			b = k.wide()
		}
	}
	// 2·re·im is y, which loses no digits.
	large := b.sqrt(softfloat.Mul(power(-1), b.add(b.call(Hypot, x, y), x.Abs())))
	small := softfloat.Mul(power(-1), b.div(y.Abs(), large))
	switch {
	case isZero(x):
		small = large
	case x.Neg:
		large, small = small, large
	}
	return Complex{large, withSign(small, y)}
}

func (k complexField) catanh(z Complex) Complex {
	x, y := z.Re, z.Im
	quarter := withSign(k.wide().call(Atan2, unit, nothing), y)
	switch {
	case isInf(y):
		return Complex{withSign(nothing, x), quarter}
	case isInf(x) || isZero(x) && isNaN(y):
		if isNaN(y) {
			quarter = notThere
		}
		return Complex{withSign(nothing, x), quarter}
	case isNaN(x) || isNaN(y):
		return Complex{notThere, notThere}
	case isZero(x) && isZero(y):
		return z
	}
	if k.usual(x) && k.usual(y) {
		return k.plainCatanh(x, y)
	}
	w := k.wide()
	// re is ¼·log(((1+x)² + y²)/((1-x)² + y²)), of the positive x, im is ½·atan2(2y, 1 - x² - y²).
	den := k.squares(Complex{softfloat.Sub(unit, x.Abs()), y}, nothing)
	re := k.infinity()
	if !isZero(den) {
		re = w.call(Log1p, w.div(softfloat.Mul(power(2), x.Abs()), den))
		if re.Class == softfloat.Finite {
			re.Exp -= 2
		}
	}
	im := w.call(Atan2, y, softfloat.Mul(power(-1), k.squares(z, unit).Negated()))
	if isZero(y) && softfloat.Cmp(x.Abs(), unit) == 0 {
		im = y
	}
	if im.Class == softfloat.Finite {
		im.Exp--
	}
	return Complex{withSign(re, x), im}
}

// usual reports whether a number and its square are far from the ends of the format.
func (k complexField) usual(n softfloat.Number) bool {
	return n.Class == softfloat.Finite && max(lead(n), -lead(n)) < min(k.f.Prec, k.most()/4)
}

// plainCatanh has each step rounded.
func (k complexField) plainCatanh(x, y softfloat.Number) Complex {
	square := func(n softfloat.Number) softfloat.Number { return k.mul(n, n) }
	quarter, half, y2 := power(-2), power(-1), square(y)
	den := k.add(y2, square(k.sub(unit, x)))
	re := k.div(k.add(y2, square(k.add(unit, x))), den)
	if below(re, half) {
		re = k.call(Log, re)
	} else {
		re = k.call(Log1p, k.div(softfloat.Mul(power(2), x), den))
	}
	long, short := x.Abs(), y.Abs()
	if below(long, short) {
		long, short = short, long
	}
	rest := k.sub(k.mul(k.sub(unit, long), k.add(unit, long)), square(short))
	if below(long, unit) && (!below(long, softfloat.Mul(quarter, softfloat.FromInt(big.NewInt(3)))) || !below(short, half)) {
		rest = k.round(k.squares(Complex{x, y}, unit)).Negated() // whose digits the difference would lose
	}
	return Complex{softfloat.Mul(quarter, re), softfloat.Mul(half, k.call(Atan2, softfloat.Mul(power(1), y), rest))}
}
