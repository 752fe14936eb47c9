package softfloat

import "math/big"

// invalid returns the result of an invalid operation (IEEE 754-2019 §7.2).
func invalid() Number { return Number{Class: NaN}.quiet() }

// eitherNaN returns the NaN that an operation propagates from its operands.
func eitherNaN(list ...Number) (Number, bool) {
	for _, n := range list {
		if n.Class == NaN {
			return n.quiet(), true
		}
	}
	return Number{}, false
}

// Negated returns n with the opposite sign.
func (n Number) Negated() Number {
	n.Neg = !n.Neg
	return n
}

// Abs returns n without its sign.
func (n Number) Abs() Number {
	n.Neg = false
	return n
}

// FromInt returns an integer as an exact number.
func FromInt(v *big.Int) Number {
	if v.Sign() == 0 {
		return Number{}
	}
	return Number{Class: Finite, Neg: v.Sign() < 0, Mant: new(big.Int).Abs(v)}
}

// signed returns the signed significand in units of 2^exp, for exp <= n.Exp.
func (n Number) signed(exp int) *big.Int {
	if n.Class == Zero {
		return new(big.Int)
	}
	v := shift(n.Mant, n.Exp-exp)
	if n.Neg {
		v.Neg(v)
	}
	return v
}

// Add returns a+b, exactly.
func Add(a, b Number) Number {
	if nan, ok := eitherNaN(a, b); ok {
		return nan
	}
	switch {
	case a.Class == Inf && b.Class == Inf && a.Neg != b.Neg:
		return invalid()
	case a.Class == Inf:
		return a
	case b.Class == Inf:
		return b
	case a.Class == Zero && b.Class == Zero:
		return Number{Neg: a.Neg && b.Neg}
	case a.Class == Zero:
		return b
	case b.Class == Zero:
		return a
	}
	exp := min(a.Exp, b.Exp)
	sum := FromInt(a.signed(exp).Add(a.signed(exp), b.signed(exp)))
	sum.Exp = exp
	return sum
}

// Sub returns a-b, exactly.
func Sub(a, b Number) Number {
	if b.Class == NaN {
		return Add(a, b) // b is a NaN: keep its sign
	}
	return Add(a, b.Negated())
}

// Mul returns a*b, exactly.
func Mul(a, b Number) Number {
	if nan, ok := eitherNaN(a, b); ok {
		return nan
	}
	neg := a.Neg != b.Neg
	switch {
	case a.Class == Inf && b.Class == Zero, a.Class == Zero && b.Class == Inf:
		return invalid()
	case a.Class == Inf || b.Class == Inf:
		return Number{Class: Inf, Neg: neg}
	case a.Class == Zero || b.Class == Zero:
		return Number{Neg: neg}
	}
	return Number{Class: Finite, Neg: neg, Mant: new(big.Int).Mul(a.Mant, b.Mant), Exp: a.Exp + b.Exp}
}

// FMA returns a*b + c, exactly.
func FMA(a, b, c Number) Number {
	if nan, ok := eitherNaN(a, b, c); ok {
		return nan
	}
	return Add(Mul(a, b), c)
}

// Div returns a/b, precise enough for one rounding to a format of at most prec bits.
func Div(a, b Number, prec int) Number {
	if nan, ok := eitherNaN(a, b); ok {
		return nan
	}
	neg := a.Neg != b.Neg
	switch {
	case a.Class == b.Class && a.Class != Finite:
		return invalid()
	case a.Class == Inf || b.Class == Zero:
		return Number{Class: Inf, Neg: neg}
	case a.Class == Zero || b.Class == Inf:
		return Number{Neg: neg}
	}
	up := max(0, prec+3+b.Mant.BitLen()-a.Mant.BitLen())
	q, rem := new(big.Int).QuoRem(shift(a.Mant, up), b.Mant, new(big.Int))
	return Number{Class: Finite, Neg: neg, Mant: sticky(q, rem), Exp: a.Exp - up - b.Exp - 1}
}

// sticky appends to v a bit that is set if rest, the bits that were dropped, is not zero.
func sticky(v, rest *big.Int) *big.Int {
	v.Lsh(v, 1)
	if rest.Sign() != 0 {
		v.SetBit(v, 0, 1)
	}
	return v
}

// Rem returns the exact remainder of a/b, with the quotient truncated towards zero. It has the sign of a (C17 7.12.10.1; LangRef, "frem").
func Rem(a, b Number) Number {
	if nan, ok := eitherNaN(a, b); ok {
		return nan
	}
	switch {
	case a.Class == Inf || b.Class == Zero:
		return invalid()
	case a.Class == Zero || b.Class == Inf:
		return a
	}
	exp := min(a.Exp, b.Exp)
	r := new(big.Int).Rem(shift(a.Mant, a.Exp-exp), shift(b.Mant, b.Exp-exp))
	if r.Sign() == 0 {
		return Number{Neg: a.Neg}
	}
	return Number{Class: Finite, Neg: a.Neg, Mant: r, Exp: exp}
}

// Sqrt returns the square root, precise enough for one rounding to a format of at most prec bits.
func Sqrt(a Number, prec int) Number {
	switch {
	case a.Class == NaN:
		return a.quiet()
	case a.Class == Zero || a.Class == Inf && !a.Neg:
		return a
	case a.Neg:
		return invalid()
	}
	up := max(0, 2*(prec+3)-a.Mant.BitLen())
	if (a.Exp-up)%2 != 0 {
		up++
	}
	v := shift(a.Mant, up)
	root := new(big.Int).Sqrt(v)
	rest := new(big.Int).Sub(v, new(big.Int).Mul(root, root))
	return Number{Class: Finite, Mant: sticky(root, rest), Exp: (a.Exp-up)/2 - 1}
}

// Cmp compares two numbers other than NaN: -1, 0 or 1. Zeros are equal.
func Cmp(a, b Number) int {
	rank := func(n Number) int {
		r := map[Class]int{Finite: 1, Inf: 2}[n.Class]
		if n.Neg {
			return -r
		}
		return r
	}
	switch x, y := rank(a), rank(b); {
	case x < y:
		return -1
	case x > y:
		return 1
	case a.Class != Finite:
		return 0
	}
	exp := min(a.Exp, b.Exp)
	return a.signed(exp).Cmp(b.signed(exp))
}
