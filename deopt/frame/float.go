package frame

import (
	"math"
	"math/big"
	"strconv"
)

// formatFloat returns the shortest text that parses to the same value.
func formatFloat(v float64, bits int) string {
	switch {
	case math.IsNaN(v):
		return "nan"
	case math.IsInf(v, 0):
		return infinity(v < 0)
	}
	return pointed(strconv.FormatFloat(v, 'g', -1, bits))
}

func infinity(negative bool) string {
	if negative {
		return "-inf"
	}
	return "inf"
}

// pointed appends ".0" to a number that has neither a point nor an exponent, so that it does not look like an integer.
func pointed(s string) string {
	for _, c := range s {
		if c == '.' || c == 'e' {
			return s
		}
	}
	return s + ".0"
}

// halfToFloat converts an IEEE 754 binary16 to a double, exactly.
func halfToFloat(h uint16) float64 {
	sign, exp, frac := 1.0, int(h>>10&31), float64(h&1023)
	if h>>15 == 1 {
		sign = -1
	}
	switch exp {
	case 0:
		return sign * math.Ldexp(frac, -24)
	case 31:
		if frac != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+frac, exp-25)
}

// formatX87 formats an 80-bit extended value (Intel SDM vol. 1, 4.2.2).
func formatX87(n *big.Int) string {
	mantissa, exp := new(big.Int).And(n, ones(64)), int(new(big.Int).Rsh(n, 64).Uint64()&0x7fff)
	negative := n.Bit(79) == 1
	// The leading bit of the mantissa is stored. If it contradicts the exponent, the processor rejects the operand as invalid (Intel SDM vol. 1, 8.2.2).
	leading := mantissa.Bit(63) == 1
	switch {
	case exp == 0x7fff && mantissa.Uint64() == 1<<63:
		return infinity(negative)
	case exp == 0x7fff || exp != 0 && !leading:
		return "nan"
	}
	return wide(negative, mantissa, max(exp, 1), 64)
}

// formatQuad formats an IEEE 754 binary128.
func formatQuad(n *big.Int) string {
	mantissa, exp := new(big.Int).And(n, ones(112)), int(new(big.Int).Rsh(n, 112).Uint64()&0x7fff)
	negative := n.Bit(127) == 1
	switch {
	case exp == 0x7fff && mantissa.Sign() == 0:
		return infinity(negative)
	case exp == 0x7fff:
		return "nan"
	case exp != 0:
		mantissa.SetBit(mantissa, 112, 1) // the implicit leading bit
	}
	return wide(negative, mantissa, max(exp, 1), 113)
}

// wide formats a number with a 15-bit exponent, and a mantissa of precision bits.
func wide(negative bool, mantissa *big.Int, exp, precision int) string {
	const bias = 1<<14 - 1
	f := new(big.Float).SetPrec(uint(precision)).SetInt(mantissa)
	f.SetMantExp(f, exp-bias-precision+1)
	if negative {
		f.Neg(f)
	}
	return pointed(f.Text('g', -1))
}

func ones(bits uint) *big.Int {
	one := big.NewInt(1)
	return new(big.Int).Sub(new(big.Int).Lsh(one, bits), one)
}
