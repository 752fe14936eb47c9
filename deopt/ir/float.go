package ir

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// floatFormat is an IEEE binary interchange format that is not wider than double.
type floatFormat struct{ exponent, fraction int } // bits

var floatFormats = map[TypeKind]floatFormat{
	HalfKind: {5, 10}, BFloatKind: {8, 7}, FloatKind: {8, 23}, DoubleKind: {11, 52},
}

// floatLiteral returns the bits that a literal has in the format of a type. As
// in LLVM, a decimal or 0x literal is a double first, and it must fit the type
// without loss; the other forms belong to one type each (LangRef, "Simple
// Constants").
func floatLiteral(kind TypeKind, text string) (*big.Int, error) {
	if len(text) > 2 && text[:2] == "0x" {
		if letter := text[2]; letter >= 'H' && letter <= 'R' {
			return hexFloat(kind, letter, text[3:])
		}
		v, err := strconv.ParseUint(text[2:], 16, 64)
		if err != nil {
			return nil, fmt.Errorf("%s is not 1 to 16 hexadecimal digits", text)
		}
		return fitFloat(kind, v)
	}
	if len(text) > maxDigits {
		return nil, fmt.Errorf("it has more than %d digits", maxDigits)
	}
	// Too large a number becomes infinite, as in LLVM.
	d, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("%s is malformed", text)
	}
	return fitFloat(kind, math.Float64bits(d))
}

// hexFloat reads the digits of 0xK, 0xL, 0xM, 0xH and 0xR. Of the two 128-bit
// forms the low eight bytes come first.
func hexFloat(kind TypeKind, letter byte, digits string) (*big.Int, error) {
	form := map[byte]struct {
		kind   TypeKind
		digits int
	}{'K': {X86FP80Kind, 20}, 'L': {FP128Kind, 32}, 'M': {PPCFP128Kind, 32}, 'H': {HalfKind, 4}, 'R': {BFloatKind, 4}}[letter]
	switch {
	case form.kind != kind:
		return nil, fmt.Errorf("0x%c is another type", letter)
	case len(digits) != form.digits:
		return nil, fmt.Errorf("0x%c needs %d hexadecimal digits", letter, form.digits)
	}
	if form.digits == 32 {
		digits = digits[16:] + digits[:16]
	}
	n, ok := new(big.Int).SetString(digits, 16)
	if !ok {
		return nil, fmt.Errorf("0x%c%s is malformed", letter, digits)
	}
	return n, nil
}

// fitFloat converts the bits of a double to a format, or says that it would lose
// something. A NaN keeps its payload and whether it is quiet.
func fitFloat(kind TypeKind, double uint64) (*big.Int, error) {
	f, ok := floatFormats[kind]
	if !ok {
		return nil, fmt.Errorf("the literal is a double")
	}
	if kind == DoubleKind {
		return new(big.Int).SetUint64(double), nil
	}
	const doubleFraction, doubleBias = 52, 1023
	sign := double >> 63 << (f.exponent + f.fraction)
	exp := int(double >> doubleFraction & 0x7ff)
	frac := double & (1<<doubleFraction - 1)
	drop := doubleFraction - f.fraction
	maxExp := 1<<f.exponent - 1
	bias := maxExp >> 1
	result := sign
	switch {
	case exp == 0 && frac == 0:
	case exp == 0x7ff:
		result |= uint64(maxExp)<<f.fraction | frac>>drop
	case exp == 0:
		return nil, fmt.Errorf("it does not fit exactly") // below every number of the smaller formats
	default:
		e := exp - doubleBias + bias
		if e >= maxExp {
			return nil, fmt.Errorf("it does not fit exactly")
		}
		if e <= 0 { // a denormal: the leading one becomes part of the fraction
			frac |= 1 << doubleFraction
			drop += 1 - e
			e = 0
		}
		if drop > doubleFraction || bits.TrailingZeros64(frac) < drop && frac != 0 {
			return nil, fmt.Errorf("it does not fit exactly")
		}
		result |= uint64(e)<<f.fraction | frac>>drop
	}
	if exp == 0x7ff && frac != 0 && bits.TrailingZeros64(frac) < drop {
		return nil, fmt.Errorf("the NaN's payload does not fit")
	}
	return new(big.Int).SetUint64(result), nil
}
