package softfloat

import (
	"math/big"
	"strings"
)

// Flush selects the replacement for subnormal numbers (LangRef, "denormal-fp-math").
type Flush uint8

// The kinds of Flush.
const (
	Kept       Flush = iota // the subnormal number itself
	SignedZero              // a zero with the number's sign
	PlainZero               // +0
)

// Environment describes how operations treat subnormal numbers and NaNs. Results are rounded to nearest, ties to even. The zero value is the default
// environment, which keeps subnormal numbers.
type Environment struct {
	Operands Flush
	Results  Flush
	// TinyBefore makes operations flush a result that is subnormal before rounding, as arm64 does. Otherwise they flush a result that is subnormal
	// after rounding with unbounded exponents, as x86-64 does.
	TinyBefore bool
	// DefaultNaN replaces each NaN result by the positive quiet NaN without payload.
	DefaultNaN bool
}

// String returns the differences from the default environment.
func (e Environment) String() string {
	var list []string
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

// Encode rounds the result of an operation to the format. It also flushes a subnormal result, and replaces a NaN, as the environment requires.
func (e *Environment) Encode(f Format, n Number) *big.Int {
	switch {
	case n.Class == NaN && e.DefaultNaN:
		n = Number{Class: NaN}
	case n.Class == Finite && e.Results != Kept && f.tiny(n):
		// Rounded to the format's precision with unbounded exponents.
		unit := n.Exp + n.Mant.BitLen() - f.Prec
		rounded := Number{Class: Finite, Neg: n.Neg, Mant: nearest(n.Mant, n.Exp-unit), Exp: unit}
		if e.TinyBefore || f.tiny(rounded) {
			n = e.Results.of(n)
		}
	}
	return f.Encode(n)
}
