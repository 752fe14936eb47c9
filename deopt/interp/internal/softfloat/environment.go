package softfloat

import (
	"fmt"
	"math/big"
	"strings"
)

// Flush selects what replaces a subnormal number (LangRef, "denormal-fp-math").
type Flush uint8

// The ways.
const (
	Kept       Flush = iota // it stays
	SignedZero              // it becomes a zero of its sign
	PlainZero               // it becomes +0
)

// Environment is a floating-point environment. The zero value is the default one: results are rounded to nearest, ties to even,
// to the precision of their format, and subnormal numbers stay.
type Environment struct {
	Direction Direction
	Precision int // of the results of arithmetic, in bits; 0 is that of the format. The range of exponents stays.
	Operands  Flush
	Results   Flush
	// TinyBefore flushes a result that is subnormal before it is rounded, as arm64 does. Without it a result is flushed that is
	// subnormal after it was rounded with exponents without bounds, as on x86-64.
	TinyBefore bool
	// DefaultNaN makes all NaNs that operations result in the positive quiet one without payload.
	DefaultNaN bool
}

// Direction is the direction in which results are rounded.
type Direction uint8

// The directions.
const (
	Nearest    Direction = iota // ties to even
	Downward                    // towards negative infinity
	Upward                      // towards positive infinity
	TowardZero                  // cuts off
)

// Whole is the direction for numbers that become integers.
func (d Direction) Whole() Rounding {
	return [...]Rounding{TiesToEven, Down, Up, ToZero}[d]
}

// String names the direction.
func (d Direction) String() string {
	return [...]string{"to nearest", "downward", "upward", "toward zero"}[d]
}

// String lists the differences from the default environment.
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
		list = append(list, "NaNs are the default one")
	}
	return strings.Join(list, ", ")
}

func (w Flush) of(n Number) Number { return Number{Neg: n.Neg && w == SignedZero} }

// Operand returns a number of format f as an operation uses it.
func (e *Environment) Operand(f Format, n Number) Number {
	if e.Operands != Kept && n.Class == Finite && f.tiny(n) {
		return e.Operands.of(n)
	}
	return n
}

// tiny reports whether a finite number is less than the least normal one.
func (f Format) tiny(n Number) bool { return n.Exp+n.Mant.BitLen()-1 < 1-f.bias() }

// Sum returns a+b, exactly: a sum that is zero and of no zeros alone, or of zeros with different signs, is -0 where the direction is
// downward (IEEE 754-2019 §6.3).
func (e *Environment) Sum(a, b Number) Number {
	sum := Add(a, b)
	if e.Direction == Downward && sum.Class == Zero {
		sum.Neg = a.Neg || b.Neg
	}
	return sum
}

// MultiplyAdd returns a*b + c, exactly, with the sign of a zero as of [Environment.Sum].
func (e *Environment) MultiplyAdd(a, b, c Number) Number {
	if nan, ok := eitherNaN(a, b, c); ok {
		return nan
	}
	return e.Sum(Mul(a, b), c)
}

// Encode rounds a number to the format as the environment says, to its precision where arithmetic is true.
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

// at rounds n to prec bits of which the first stands for 2^lead. The mantissa may have one bit more then, or be zero.
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

// away reports whether the direction leads away from zero.
func (e *Environment) away(negative bool) bool {
	return e.Direction == Upward && !negative || e.Direction == Downward && negative
}

// overflow is the result of an operation whose own result is too large: infinite, or the greatest number (IEEE 754-2019 §7.4).
func (e *Environment) overflow(f Format, n Number, prec int) *big.Int {
	if e.Direction == Nearest || e.away(n.Neg) {
		return f.Encode(Number{Class: Inf, Neg: n.Neg})
	}
	most := new(big.Int).Lsh(big.NewInt(1), uint(prec))
	return f.Encode(Number{Class: Finite, Neg: n.Neg, Mant: most.Sub(most, big.NewInt(1)), Exp: f.bias() - prec + 1})
}
