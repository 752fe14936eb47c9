package interp

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"

	"reframe/deopt/ir"
)

// FormatBits is FromBytes and then Format: the text of a value that is held as
// bytes, lowest address first. It errs where the type is no value's or the
// bytes are too few.
func FormatBits(dl *ir.DataLayout, t *ir.Type, raw []byte) (string, error) {
	v, err := FromBytes(dl, t, raw)
	if err != nil {
		return "", err
	}
	return v.Format(), nil
}

// Format is the value in its type's natural form: a signed decimal integer, true
// or false for i1, a pointer as 0x and its hexadecimal digits, a float as the
// shortest decimal that reads back to it, <…> for vectors, […] for arrays, {…}
// for structs. A scalar with an undefined bit is undef. No value is void.
func (v Value) Format() string {
	if v.s == nil {
		return "void"
	}
	open, end := "{", "}"
	switch v.s.typ.Kind {
	case ir.VectorKind:
		open, end = "<", ">"
	case ir.ArrayKind:
		open, end = "[", "]"
	case ir.StructKind:
	default:
		return v.formatScalar()
	}
	parts := make([]string, v.s.n)
	for i := range parts {
		e, _ := v.Elem(i)
		parts[i] = e.Format()
	}
	return open + strings.Join(parts, ", ") + end
}

func (v Value) formatScalar() string {
	if !defined(v.w) {
		return "undef"
	}
	switch t := v.s.typ; t.Kind {
	case ir.IntKind:
		if t.Bits == 1 {
			return strconv.FormatBool(v.w[0].v == 1)
		}
		return toSigned(v.w, t.Bits).String()
	case ir.PointerKind:
		return fmt.Sprintf("0x%x", toBig(v.w))
	case ir.FloatKind:
		return formatFloat(floatOf(t.Kind, v.w[0].v), 32)
	case ir.DoubleKind:
		return formatFloat(math.Float64frombits(v.w[0].v), 64)
	case ir.HalfKind, ir.BFloatKind:
		return shortest(t.Kind, v.w[0].v)
	case ir.X86FP80Kind:
		return formatWide(toBig(v.w), 15, 64, true)
	case ir.FP128Kind:
		return formatWide(toBig(v.w), 15, 113, false)
	}
	return v.s.typ.String()
}

func formatFloat(f float64, bits int) string {
	switch {
	case math.IsNaN(f):
		return "nan"
	case math.IsInf(f, 1):
		return "inf"
	case math.IsInf(f, -1):
		return "-inf"
	}
	return strconv.FormatFloat(f, 'g', -1, bits)
}

// shortest finds the shortest decimal of a 16-bit float, for which strconv has
// no width: five digits are enough for either format.
func shortest(k ir.TypeKind, bits uint64) string {
	f := floatOf(k, bits)
	if math.IsNaN(f) || math.IsInf(f, 0) {
		return formatFloat(f, 64)
	}
	for digits := 1; digits < 5; digits++ {
		s := strconv.FormatFloat(f, 'g', digits, 64)
		if g, err := strconv.ParseFloat(s, 64); err == nil && floatBits(k, g) == bits {
			return s
		}
	}
	return strconv.FormatFloat(f, 'g', 5, 64)
}

// formatWide formats x87's 80-bit format (explicit integer bit: Intel SDM
// volume 1, §4.2.2) and IEEE 754 binary128 (implicit).
func formatWide(bits *big.Int, expBits, precision uint, explicit bool) string {
	fracBits := precision - 1
	if explicit {
		fracBits = precision
	}
	frac := new(big.Int).And(bits, ones(fracBits))
	exp := int(new(big.Int).And(new(big.Int).Rsh(bits, fracBits), ones(expBits)).Uint64())
	sign := ""
	if bits.Bit(int(fracBits+expBits)) == 1 {
		sign = "-"
	}
	bias := 1<<(expBits-1) - 1
	if exp == 1<<expBits-1 {
		if explicit {
			frac.SetBit(frac, int(precision-1), 0)
		}
		if frac.Sign() == 0 {
			return sign + "inf"
		}
		return "nan"
	}
	if exp == 0 {
		exp = 1
	} else if !explicit {
		frac.SetBit(frac, int(precision-1), 1)
	}
	f := new(big.Float).SetPrec(precision).SetInt(frac)
	f.SetMantExp(f, exp-bias-int(precision)+1)
	return sign + f.Text('g', -1)
}

func ones(n uint) *big.Int {
	one := big.NewInt(1)
	return new(big.Int).Sub(new(big.Int).Lsh(one, n), one)
}

// Hex is the raw bits of the value as one hexadecimal number, without leading
// zeros: of a vector or aggregate its elements in a list. It is "undef" where a
// scalar has an undefined bit.
func (v Value) Hex() string {
	switch {
	case v.s == nil:
		return ""
	case v.s.bits != 0 && !defined(v.w):
		return "undef"
	case v.s.bits != 0:
		return fmt.Sprintf("0x%x", toBig(v.w))
	}
	parts := make([]string, v.s.n)
	for i := range parts {
		e, _ := v.Elem(i)
		parts[i] = e.Hex()
	}
	return "[" + strings.Join(parts, ", ") + "]"
}
