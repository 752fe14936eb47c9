package softfloat

import "math/big"

// Rounding is the direction in which a number is rounded to an integer.
type Rounding uint8

// The directions.
const (
	ToZero Rounding = iota
	Down
	Up
	TiesToEven
	TiesAway
)

// Round rounds a number to an integer and keeps its sign, even for zero (IEEE 754-2019 §5.9).
func (n Number) Round(r Rounding) Number {
	if n.Class == NaN {
		return n.quiet()
	}
	if n.Class != Finite || n.Exp >= 0 {
		return n
	}
	v := shift(n.Mant, n.Exp)
	inexact := int(n.Mant.TrailingZeroBits()) < -n.Exp
	half := n.Mant.Bit(-n.Exp-1) == 1
	switch {
	case r == TiesToEven:
		v = nearest(n.Mant, n.Exp)
	case r == TiesAway && half, r == Down && inexact && n.Neg, r == Up && inexact && !n.Neg:
		v.Add(v, big.NewInt(1))
	}
	if v.Sign() == 0 {
		return Number{Neg: n.Neg}
	}
	return Number{Class: Finite, Neg: n.Neg, Mant: v}
}

// Int returns the number without its fraction; false for an infinity or a NaN.
func (n Number) Int() (*big.Int, bool) {
	switch n.Class {
	case Inf, NaN:
		return nil, false
	case Zero:
		return new(big.Int), true
	}
	v := shift(n.Mant, n.Exp)
	if n.Neg {
		v.Neg(v)
	}
	return v, true
}

// Scale returns n*2^by. It clamps exponents beyond those of all formats, which does not change the rounded result.
func (n Number) Scale(by *big.Int) Number {
	if n.Class != Finite {
		return n
	}
	const far = 1 << 17
	if by.IsInt64() {
		n.Exp += int(max(-far, min(far, by.Int64())))
	} else {
		n.Exp += far * by.Sign()
	}
	return n
}

// Frexp splits a number into a fraction in [0.5, 1) and an exponent of two. The exponent is 0 if the number is not finite.
func (n Number) Frexp() (Number, int) {
	if n.Class != Finite {
		return n, 0
	}
	exp := n.Exp + n.Mant.BitLen()
	n.Exp = -n.Mant.BitLen()
	return n, exp
}
