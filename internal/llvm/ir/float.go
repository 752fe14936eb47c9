package ir

import (
	"errors"
	"fmt"
	"math"
	"math/big"
	"math/bits"
	"strconv"
)

// floatFormat is an IEEE binary interchange format no wider than double.
type floatFormat struct{ exponent, fraction int } // bits

var floatFormats = map[TypeKind]floatFormat{
	HalfKind: {5, 10}, BFloatKind: {8, 7}, FloatKind: {8, 23}, DoubleKind: {11, 52},
}

// floatLiteral returns the bits of a literal in the format of a type. As in LLVM, a decimal or 0x literal is first a double, which must fit the type
// exactly. Each other form belongs to one type (LangRef, "Simple Constants").
func floatLiteral(kind TypeKind, text string) (*big.Int, error) {
	if len(text) > 2 && text[:2] == "0x" {
		if letter := text[2]; letter >= 'H' && letter <= 'R' {
			return hexFloat(kind, letter, text[3:])
		}
		v, ok := hexNumber(text[2:])
		if !ok {
			return nil, fmt.Errorf("%s is not a hexadecimal number of 64 bits", text)
		}
		return fitFloat(kind, v)
	}
	if len(text) > maxDigits {
		return nil, fmt.Errorf("it has more than %d digits", maxDigits)
	}
	// A number that is too large becomes infinite, as in LLVM.
	d, err := strconv.ParseFloat(text, 64)
	if err != nil && !errors.Is(err, strconv.ErrRange) {
		return nil, fmt.Errorf("%s is malformed", text)
	}
	return fitFloat(kind, math.Float64bits(d))
}

// hexNumber parses hexadecimal digits as LLVM's lexer does (LLLexer::HexIntToVal). LLVM detects an overflow of 64 bits only if a digit makes the low 64 bits
// smaller, and then returns 0 without an error. Otherwise it returns the low 64 bits.
func hexNumber(digits string) (uint64, bool) {
	if digits == "" {
		return 0, false
	}
	var n uint64
	for k := range len(digits) {
		if !isHex(digits[k]) {
			return 0, false
		}
		next := n<<4 + uint64(hexValue(digits[k]))
		if next < n {
			n = 0
			break
		}
		n = next
	}
	return n, true
}

// hexFloat parses the digits of 0xK, 0xL, 0xM, 0xH and 0xR. There may be fewer digits than the format has; surplus digits are ignored. The two 128-bit forms
// begin with the low eight bytes, unless they have fewer than 16 digits (LLLexer::HexToIntPair, FP80HexToIntPair).
func hexFloat(kind TypeKind, letter byte, digits string) (*big.Int, error) {
	form := map[byte]struct {
		kind   TypeKind
		digits int
	}{'K': {X86FP80Kind, 20}, 'L': {FP128Kind, 32}, 'M': {PPCFP128Kind, 32}, 'H': {HalfKind, 4}, 'R': {BFloatKind, 4}}[letter]
	if form.kind != kind {
		return nil, fmt.Errorf("0x%c is for another type", letter)
	}
	var high, low uint64
	ok := true
	if form.digits > 4 {
		digits = digits[:min(len(digits), form.digits)]
	}
	switch {
	case form.digits == 4: // use the low 16 bits
		low, ok = hexNumber(digits)
		low &= 0xffff
	case digits == "":
		ok = false
	case form.digits == 20:
		high, ok = hexNumber(digits[:min(len(digits), 4)])
		if ok && len(digits) > 4 {
			low, ok = hexNumber(digits[4:])
		}
	case len(digits) < 16:
		high, ok = hexNumber(digits)
	default:
		low, ok = hexNumber(digits[:16])
		if ok && len(digits) > 16 {
			high, ok = hexNumber(digits[16:])
		}
	}
	if !ok {
		return nil, fmt.Errorf("0x%c takes %d hexadecimal digits", letter, form.digits)
	}
	n := new(big.Int).SetUint64(high)
	return n.Or(n.Lsh(n, 64), new(big.Int).SetUint64(low)), nil
}

// fitFloat converts the bits of a double to a format. It returns an error if the conversion is not exact. A NaN keeps its payload and its quiet bit.
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
		return nil, fmt.Errorf("it does not fit exactly") // a denormal double is too small for half, bfloat and float
	default:
		e := exp - doubleBias + bias
		if e >= maxExp {
			return nil, fmt.Errorf("it does not fit exactly")
		}
		if e <= 0 { // denormal: the leading one becomes part of the fraction
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
