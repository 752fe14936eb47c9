package ir

import (
	"fmt"
	"math"
	"math/big"
	"strconv"
	"strings"
)

// Ref returns the constant as it is written as an operand, without its type.
func (c *Const) Ref() string {
	switch c.Kind {
	case ConstInt:
		return c.intRef()
	case ConstFloat:
		return c.floatRef()
	case ConstNull:
		return "null"
	case ConstUndef:
		return "undef"
	case ConstPoison:
		return "poison"
	case ConstZero:
		return "zeroinitializer"
	case ConstToken:
		return "none"
	case ConstBytes:
		quoted := quoteName(string(c.Bytes) + "\x00") // the zero byte forces quotation marks
		return "c" + strings.TrimSuffix(quoted, `\00"`) + `"`
	case ConstRef:
		return c.Target.Ref()
	case ConstSplat:
		return "splat (" + constList(c.Elems) + ")"
	case ConstPtrAuth:
		return "ptrauth (" + constList(c.Elems) + ")"
	case ConstBlockAddr:
		return fmt.Sprintf("blockaddress(%s, %%%s)", c.Target.Ref(), quoteName(c.Block))
	case ConstAggregate:
		open, shut := "{ ", " }"
		switch {
		case c.Typ.Kind == ArrayKind:
			open, shut = "[", "]"
		case c.Typ.Kind == VectorKind:
			open, shut = "<", ">"
		case c.Typ.Packed:
			open, shut = "<{ ", " }>"
		}
		return open + constList(c.Elems) + shut
	}
	return c.exprRef()
}

func constList(elems []*Const) string {
	parts := make([]string, len(elems))
	for i, e := range elems {
		parts[i] = e.Typ.String() + " " + e.Ref()
	}
	return strings.Join(parts, ", ")
}

// exprRef returns a constant expression as LLVM writes it, without its flags.
func (c *Const) exprRef() string {
	head := c.Op.String() + " "
	if c.Pred != "" {
		head += c.Pred + " "
	}
	if c.Op == OpGEP {
		return fmt.Sprintf("%s(%v, %s)", head, c.Source, constList(c.Elems))
	}
	body := constList(c.Elems)
	if c.Op.Cast() {
		body += " to " + c.Typ.String()
	}
	for _, i := range c.Path {
		body += fmt.Sprintf(", %d", i)
	}
	return head + "(" + body + ")"
}

// intRef returns a signed integer as LLVM prints it; an i1 is true or false.
func (c *Const) intRef() string {
	if c.Typ.Bits == 1 {
		return strconv.FormatBool(c.Int.Sign() != 0)
	}
	if c.Int.Bit(c.Typ.Bits-1) == 0 {
		return c.Int.String()
	}
	return new(big.Int).Sub(c.Int, new(big.Int).Lsh(big.NewInt(1), uint(c.Typ.Bits))).String()
}

// floatRef returns a float or double in decimal if six digits are exact, or otherwise in hexadecimal. LLVM writes the bits of a float as those of the equal
// double.
func (c *Const) floatRef() string {
	bits := c.Int.Uint64()
	switch c.Typ.Kind {
	case HalfKind:
		return fmt.Sprintf("0xH%04X", bits)
	case BFloatKind:
		return fmt.Sprintf("0xR%04X", bits)
	case X86FP80Kind:
		return fmt.Sprintf("0xK%020X", c.Int)
	case FP128Kind, PPCFP128Kind:
		letter := map[TypeKind]string{FP128Kind: "L", PPCFP128Kind: "M"}[c.Typ.Kind]
		high := new(big.Int).Rsh(c.Int, 64)
		return fmt.Sprintf("0x%s%016X%016X", letter, bitsOf(c.Int), bitsOf(high))
	case FloatKind:
		bits = widenFloat(uint32(bits))
	}
	d := math.Float64frombits(bits)
	text := strconv.FormatFloat(d, 'e', 6, 64)
	if back, err := strconv.ParseFloat(text, 64); err == nil && math.Float64bits(back) == bits && !math.IsInf(d, 0) {
		return text
	}
	return fmt.Sprintf("0x%016X", bits)
}

// bitsOf returns the low 64 bits.
func bitsOf(n *big.Int) uint64 {
	mask := new(big.Int).SetUint64(math.MaxUint64)
	return mask.And(mask, n).Uint64()
}

// widenFloat returns the double that equals a float. It widens a NaN bit by bit, because the processor's conversion would quiet it.
func widenFloat(bits uint32) uint64 {
	f := math.Float32frombits(bits)
	if f == f {
		return math.Float64bits(float64(f))
	}
	return uint64(bits>>31)<<63 | 0x7ff<<52 | uint64(bits&(1<<23-1))<<29
}
