package libm

import "reframe/deopt/interp/internal/softfloat"

// toOnes makes of an infinite number ±1 and of another one ±0 (C17 G.5.1).
func toOnes(z Complex) Complex {
	one := func(n softfloat.Number) softfloat.Number {
		if isInf(n) {
			return withSign(unit, n)
		}
		return withSign(nothing, n)
	}
	return Complex{one(z.Re), one(z.Im)}
}

// toZeros replaces each part that is NaN by a zero.
func toZeros(z Complex) Complex {
	zero := func(n softfloat.Number) softfloat.Number {
		if isNaN(n) {
			return withSign(nothing, n)
		}
		return n
	}
	return Complex{zero(z.Re), zero(z.Im)}
}

func infinite2(z Complex) bool { return isInf(z.Re) || isInf(z.Im) }
func finite2(z Complex) bool   { return isFinite(z.Re) && isFinite(z.Im) }

// multiply returns the product as the function that compilers call for it does: an infinite factor makes it infinite, also where its parts came out
// as NaN (C17 G.5.1).
func (k complexField) multiply(z, w Complex) Complex {
	product := func(z, w Complex, mul, add, sub func(a, b softfloat.Number) softfloat.Number) (parts [4]softfloat.Number, r Complex) {
		parts = [4]softfloat.Number{mul(z.Re, w.Re), mul(z.Im, w.Im), mul(z.Re, w.Im), mul(z.Im, w.Re)}
		return parts, Complex{sub(parts[0], parts[1]), add(parts[2], parts[3])}
	}
	parts, r := product(z, w, k.mul, k.add, k.sub)
	if !isNaN(r.Re) || !isNaN(r.Im) {
		return r
	}
	again := infinite2(z) || infinite2(w)
	if infinite2(z) {
		z, w = toOnes(z), toZeros(w)
	}
	if infinite2(w) {
		w, z = toOnes(w), toZeros(z)
	}
	if !again {
		for _, p := range parts {
			again = again || isInf(p)
		}
		z, w = toZeros(z), toZeros(w)
	}
	if !again {
		return r
	}
	_, r = product(z, w, k.mul, k.add, k.sub)
	return Complex{k.mul(k.infinity(), r.Re), k.mul(k.infinity(), r.Im)}
}

// divide returns the quotient as the function of libgcc 12 that compilers call for it does: by Smith's method with scaling (Baudin and Smith, "A
// robust complex division in Scilab", 2012), and for floats by plain division in double.
func (k complexField) divide(z, w Complex) Complex {
	r, z, w := k.quotient(z, w)
	if !isNaN(r.Re) || !isNaN(r.Im) {
		return r
	}
	switch {
	case isZero(w.Re) && isZero(w.Im) && (!isNaN(z.Re) || !isNaN(z.Im)):
		size := withSign(k.infinity(), w.Re)
		return Complex{k.mul(size, z.Re), k.mul(size, z.Im)}
	case infinite2(z) && finite2(w):
		z = toOnes(z)
		return Complex{
			k.mul(k.infinity(), k.add(k.mul(z.Re, w.Re), k.mul(z.Im, w.Im))),
			k.mul(k.infinity(), k.sub(k.mul(z.Im, w.Re), k.mul(z.Re, w.Im))),
		}
	case infinite2(w) && finite2(z):
		w = toOnes(w)
		return Complex{
			k.mul(nothing, k.add(k.mul(z.Re, w.Re), k.mul(z.Im, w.Im))),
			k.mul(nothing, k.sub(k.mul(z.Im, w.Re), k.mul(z.Re, w.Im))),
		}
	}
	return r
}

// quotient returns z/w for numbers that are finite, and z and w as they were scaled: its caller uses those.
func (k complexField) quotient(z, w Complex) (r, scaledZ, scaledW Complex) {
	if k.f == softfloat.Single {
		d := complexField{softfloat.Double}
		den := d.add(d.mul(w.Re, w.Re), d.mul(w.Im, w.Im))
		return Complex{
			k.round(d.div(d.add(d.mul(z.Re, w.Re), d.mul(z.Im, w.Im)), den)),
			k.round(d.div(d.sub(d.mul(z.Im, w.Re), d.mul(z.Re, w.Im)), den)),
		}, z, w
	}
	// With the larger part of w in the place of w.Re the imaginary part of the quotient has the other sign.
	swapped := less(w.Re.Abs(), w.Im.Abs())
	difference := k.sub
	if swapped {
		z, w = Complex{z.Im, z.Re}, Complex{w.Im, w.Re}
		difference = func(a, b softfloat.Number) softfloat.Number { return k.sub(b, a) }
	}
	z, w = k.scaled(z, w)
	ratio := k.div(w.Im, w.Re)
	den := k.add(k.mul(w.Im, ratio), w.Re)
	if less(k.least(), ratio.Abs()) {
		r = Complex{k.add(k.mul(z.Im, ratio), z.Re), difference(z.Im, k.mul(z.Re, ratio))}
	} else { // where its digits are lost
		r = Complex{k.add(k.mul(w.Im, k.div(z.Im, w.Re)), z.Re), difference(z.Im, k.mul(w.Im, k.div(z.Re, w.Re)))}
	}
	r = Complex{k.div(r.Re, den), k.div(r.Im, den)}
	if swapped {
		z, w = Complex{z.Im, z.Re}, Complex{w.Im, w.Re}
	}
	return r, z, w
}

func less(a, b softfloat.Number) bool { return !isNaN(a) && !isNaN(b) && below(a, b) }

// scaled keeps a quotient's steps from the ends of the format; the real part of w is its larger one.
func (k complexField) scaled(z, w Complex) (Complex, Complex) {
	scale := func(by softfloat.Number) {
		z = Complex{k.mul(z.Re, by), k.mul(z.Im, by)}
		w = Complex{k.mul(w.Re, by), k.mul(w.Im, by)}
	}
	large := k.sub(power(k.most()), power(k.most()-k.f.Prec)) // half of the largest number
	enough := k.mul(large, k.epsilon())
	if !isNaN(w.Re) && !less(w.Re.Abs(), large) {
		scale(power(-1))
	}
	a, b, c := z.Re.Abs(), z.Im.Abs(), w.Re.Abs()
	small := func(a, b softfloat.Number) bool { return less(a, k.least()) && less(b, enough) && less(c, enough) }
	if less(c, k.epsilon()) || small(a, b) || small(b, a) {
		scale(power(k.f.Prec - 1))
	}
	return z, w
}
