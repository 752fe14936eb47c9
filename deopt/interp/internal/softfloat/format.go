package softfloat

import "math/big"

// Format is a binary format: a sign, an exponent, and a significand.
type Format struct {
	ExpBits int
	Prec    int // bits of the significand, including its leading one
	// Explicit is set for a format that stores the leading one (Intel SDM vol. 1, §4.2.2).
	Explicit bool
}

// The formats of LLVM IR (LangRef, "Floating-Point Types").
var (
	Half   = Format{ExpBits: 5, Prec: 11}
	BFloat = Format{ExpBits: 8, Prec: 8}
	Single = Format{ExpBits: 8, Prec: 24}
	Double = Format{ExpBits: 11, Prec: 53}
	X87    = Format{ExpBits: 15, Prec: 64, Explicit: true}
	Quad   = Format{ExpBits: 15, Prec: 113}
)

// Class is the class of a number.
type Class uint8

// The classes. Operations preserve the payload of a NaN where IEEE 754 does.
const (
	Zero Class = iota
	Finite
	Inf
	NaN
)

// Number is a floating-point value. In class Finite it is Mant*2^Exp with Mant > 0, negative if Neg is set. In class NaN, Mant*2^Exp is the payload
// as a fraction below one, including the quiet bit. The zero Number is +0.
type Number struct {
	Class Class
	Neg   bool
	Mant  *big.Int
	Exp   int
}

// Bits returns the width of the format.
func (f Format) Bits() int {
	if f.Explicit {
		return 1 + f.ExpBits + f.Prec
	}
	return f.ExpBits + f.Prec
}

func (f Format) bias() int { return 1<<(f.ExpBits-1) - 1 }

// split splits the bits into sign, biased exponent, and the significand as stored.
func (f Format) split(bits *big.Int) (neg bool, exp int, mant *big.Int) {
	stored := f.Prec - 1
	if f.Explicit {
		stored = f.Prec
	}
	mant = low(bits, stored)
	exp = int(low(new(big.Int).Rsh(bits, uint(stored)), f.ExpBits).Int64())
	return bits.Bit(f.Bits()-1) == 1, exp, mant
}

func low(v *big.Int, bits int) *big.Int {
	m := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	return m.And(m.Sub(m, big.NewInt(1)), v)
}

// Decode returns the number that the bits encode. x86_fp80 encodings that the processor rejects as operands (unnormal, pseudo-NaN, pseudo-infinity;
// Intel SDM vol. 1, §8.2.2) are NaN.
func (f Format) Decode(bits *big.Int) Number {
	neg, exp, mant := f.split(bits)
	frac := low(mant, f.Prec-1)
	lead := exp != 0
	if f.Explicit {
		lead = mant.Bit(f.Prec-1) == 1
		if !lead && exp != 0 {
			return Number{Class: NaN, Neg: neg}.quiet()
		}
	}
	if exp == 1<<f.ExpBits-1 {
		if frac.Sign() == 0 {
			return Number{Class: Inf, Neg: neg}
		}
		return Number{Class: NaN, Neg: neg, Mant: frac, Exp: 1 - f.Prec}
	}
	if lead {
		frac.SetBit(frac, f.Prec-1, 1)
	}
	if frac.Sign() == 0 {
		return Number{Neg: neg}
	}
	return Number{Class: Finite, Neg: neg, Mant: frac, Exp: max(exp, 1) - f.bias() - f.Prec + 1}
}

// Encode rounds a number to the format. A number that is too large becomes infinite. A NaN becomes quiet, and the bits of its payload that do not fit
// are dropped.
func (f Format) Encode(n Number) *big.Int {
	top := new(big.Int).Lsh(big.NewInt(1<<f.ExpBits-1), uint(f.Prec-1)) // infinity, without sign
	r := new(big.Int)
	switch n.Class {
	case Finite:
		r = f.round(n)
		if r.Cmp(top) > 0 {
			r = top
		}
	case Inf:
		r = top
	case NaN:
		frac := shift(n.quiet().Mant, n.quiet().Exp+f.Prec-1)
		r = top.Or(top, low(frac, f.Prec-1))
	}
	return f.join(n.Neg, r)
}

// round rounds to the format, and returns the exponent field and the fraction as one integer. A carry out of the fraction increments the exponent.
func (f Format) round(n Number) *big.Int {
	lead := n.Exp + n.Mant.BitLen() - 1
	ulp := max(lead, 1-f.bias()) - f.Prec + 1
	if lead > f.bias()+1 {
		return new(big.Int).Lsh(big.NewInt(1), uint(f.ExpBits+f.Prec)) // larger than every finite number
	}
	units := nearest(n.Mant, n.Exp-ulp)
	// The significand of a normal number contains its leading one, which adds one to the exponent field. So use an exponent field that is one less.
	field := big.NewInt(int64(ulp + f.Prec - 1 + f.bias() - 1))
	return units.Add(units, field.Lsh(field, uint(f.Prec-1)))
}

// join adds the sign to an exponent and fraction, and inserts the leading one if the format stores it.
func (f Format) join(neg bool, r *big.Int) *big.Int {
	if f.Explicit {
		exp := new(big.Int).Rsh(r, uint(f.Prec-1))
		lead := uint(0)
		if exp.Sign() != 0 {
			lead = 1
		}
		r = low(r, f.Prec-1)
		r.SetBit(r, f.Prec-1, lead)
		r.Or(r, exp.Lsh(exp, uint(f.Prec)))
	} else {
		r = new(big.Int).Set(r)
	}
	if neg {
		r.SetBit(r, f.Bits()-1, 1)
	}
	return r
}

// Signaling reports whether the bits are a signaling NaN.
func (f Format) Signaling(bits *big.Int) bool {
	return f.Decode(bits).Class == NaN && bits.Bit(f.Prec-2) == 0
}

// Subnormal reports whether the bits are a subnormal number.
func (f Format) Subnormal(bits *big.Int) bool {
	_, exp, _ := f.split(bits)
	return exp == 0 && f.Decode(bits).Class == Finite
}

// shift returns v*2^by, truncated towards zero.
func shift(v *big.Int, by int) *big.Int {
	if by >= 0 {
		return new(big.Int).Lsh(v, uint(by))
	}
	return new(big.Int).Rsh(v, uint(-by))
}

// nearest returns v*2^by for v >= 0, rounded to the nearest integer, ties to even.
func nearest(v *big.Int, by int) *big.Int {
	r := shift(v, by)
	if by >= 0 || v.Bit(-by-1) == 0 {
		return r
	}
	if r.Bit(0) == 1 || int(v.TrailingZeroBits()) < -by-1 {
		r.Add(r, big.NewInt(1))
	}
	return r
}

// quiet returns a NaN with its quiet bit set.
func (n Number) quiet() Number {
	if n.Mant == nil {
		n.Mant, n.Exp = big.NewInt(1), -1
		return n
	}
	m := new(big.Int).Set(n.Mant)
	n.Mant = m.SetBit(m, -n.Exp-1, 1)
	return n
}
