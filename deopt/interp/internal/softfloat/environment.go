package softfloat

import (
	"fmt"
	"math/big"
	"strings"
)

// Flush selects the replacement for subnormal numbers (LangRef, "denormal-fp-math").
type Flush uint8

// The replacements.
const (
	Kept       Flush = iota // the number itself
	SignedZero              // a zero with the number's sign
	PlainZero               // +0
)

// Environment is a floating-point environment. The zero value is the default environment: results are rounded to nearest, ties to even, to the
// precision of their format, and subnormal numbers are kept.
type Environment struct {
	Direction Direction
	Precision int // precision of results in bits; 0 means that of the format. The exponent range does not change.
	Operands  Flush
	Results   Flush
	// TinyBefore makes operations flush a result that is subnormal before rounding, as arm64 does. Otherwise they flush a result that is subnormal
	// after rounding with unbounded exponents, as x86-64 does.
	TinyBefore bool
	// DefaultNaN replaces each NaN result by the positive quiet NaN without payload.
	DefaultNaN bool
}

// Direction is the rounding direction of results.
type Direction uint8

// The directions.
const (
	Nearest    Direction = iota // ties to even
	Downward                    // towards negative infinity
	Upward                      // towards positive infinity
	TowardZero                  // truncates
)

// Whole returns the corresponding direction for rounding to an integer.
func (d Direction) Whole() Rounding {
	return [...]Rounding{TiesToEven, Down, Up, ToZero}[d]
}

// String returns the name of the direction.
func (d Direction) String() string {
	return [...]string{"to nearest", "downward", "upward", "toward zero"}[d]
}

// String returns the differences from the default environment.
func (e Environment) String() string {
	var list []string
	if e.Direction != Nearest {
		list = append(list, "rounding "+e.Direction.String())
	}
	if e.Precision != 0 {
		list = append(list, fmt.Sprintf("precision of %d bits", e.Precision))
	}
	switch {
	case e.Operands != Kept && e.Results != Kept:
		list = append(list, "subnormal operands and results are zero")
	case e.Operands != Kept:
		list = append(list, "subnormal operands are zero")
	case e.Results != Kept:
		list = append(list, "subnormal results are zero")
	}
	if e.DefaultNaN {
		list = append(list, "NaNs are replaced by the default NaN")
	}
	return strings.Join(list, ", ")
}

func (w Flush) of(n Number) Number { return Number{Neg: n.Neg && w == SignedZero} }

// Operand returns a number of format f as an operation reads it, flushed if the environment flushes operands.
func (e *Environment) Operand(f Format, n Number) Number {
	if e.Operands != Kept && n.Class == Finite && f.tiny(n) {
		return e.Operands.of(n)
	}
	return n
}

// tiny reports whether the magnitude of a finite number is below the least normal number.
func (f Format) tiny(n Number) bool { return n.Exp+n.Mant.BitLen()-1 < 1-f.bias() }

// Sum returns a+b, exactly. When rounding downward, a zero sum is -0 unless both operands are +0 (IEEE 754-2019 §6.3).
func (e *Environment) Sum(a, b Number) Number {
	sum := Add(a, b)
	if e.Direction == Downward && sum.Class == Zero {
		sum.Neg = a.Neg || b.Neg
	}
	return sum
}

// MultiplyAdd returns a*b + c, exactly, with the sign of a zero as in [Environment.Sum].
func (e *Environment) MultiplyAdd(a, b, c Number) Number {
	if nan, ok := eitherNaN(a, b, c); ok {
		return nan
	}
	return e.Sum(Mul(a, b), c)
}

// Encode rounds a number to the format in this environment. Precision applies only if arithmetic is set.
func (e *Environment) Encode(f Format, n Number, arithmetic bool) *big.Int {
	switch n.Class {
	case NaN:
		if e.DefaultNaN {
			n = Number{Class: NaN}
		}
		return f.Encode(n)
	case Inf, Zero:
		return f.Encode(n)
	}
	prec := f.Prec
	if arithmetic && e.Precision > 0 {
		prec = min(prec, e.Precision)
	}
	lead := n.Exp + n.Mant.BitLen() - 1
	least := 1 - f.bias()
	if e.Results != Kept && lead < least {
		if r := e.at(n, lead, prec); e.TinyBefore || f.tiny(r) {
			return f.Encode(e.Results.of(n))
		}
	}
	if rounded := e.at(n, max(lead, least), prec); rounded.Mant.Sign() != 0 {
		if top := rounded.Exp + rounded.Mant.BitLen() - 1; top <= f.bias() {
			return f.Encode(rounded)
		}
		return e.overflow(f, n, prec)
	}
	return f.Encode(Number{Neg: n.Neg})
}

// at rounds n to prec bits, the first of which stands for 2^lead. The rounded mantissa may have one bit more, or be zero.
func (e *Environment) at(n Number, lead, prec int) Number {
	unit := lead - prec + 1
	by := n.Exp - unit
	if by >= 0 {
		return Number{Class: Finite, Neg: n.Neg, Mant: shift(n.Mant, by), Exp: unit}
	}
	var v *big.Int
	if e.Direction == Nearest {
		v = nearest(n.Mant, by)
	} else if v = shift(n.Mant, by); int(n.Mant.TrailingZeroBits()) < -by && e.away(n.Neg) {
		v.Add(v, big.NewInt(1))
	}
	return Number{Class: Finite, Neg: n.Neg, Mant: v, Exp: unit}
}

// away reports whether the direction rounds away from zero.
func (e *Environment) away(negative bool) bool {
	return e.Direction == Upward && !negative || e.Direction == Downward && negative
}

// overflow returns the result of an operation whose exact result is too large: infinity or the greatest finite number (IEEE 754-2019 §7.4).
func (e *Environment) overflow(f Format, n Number, prec int) *big.Int {
	if e.Direction == Nearest || e.away(n.Neg) {
		return f.Encode(Number{Class: Inf, Neg: n.Neg})
	}
	most := new(big.Int).Lsh(big.NewInt(1), uint(prec))
	return f.Encode(Number{Class: Finite, Neg: n.Neg, Mant: most.Sub(most, big.NewInt(1)), Exp: f.bias() - prec + 1})
}
