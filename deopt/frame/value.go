package frame

import (
	"encoding/binary"
	"encoding/json"
	"math"
	"math/big"
	"slices"
	"strconv"
)

// Hex is a hexadecimal number as a string, because JSON readers may lose digits of a large number. An empty Hex means no number.
type Hex string

// HexOf formats an address or another 64-bit value.
func HexOf[T ~uint64](v T) Hex { return Hex("0x" + strconv.FormatUint(uint64(v), 16)) }

// TypeKind is the plain kind of a slot's type.
type TypeKind uint8

// The kinds of type.
const (
	NoType TypeKind = iota
	Int             // two's complement, any width
	Float           // IEEE 754 binary16, binary32, binary64, binary128 by width; 80 is the x87 format
	BFloat          // the upper half of a binary32
	Pointer
	Vector // Len elements, packed
	Array  // Len elements, Stride bytes apart
	Struct // fields at their offsets
	Opaque // bits of unknown meaning
)

// Type is a slot's type: a plain kind, a width, and the spelling in the source (such as the IR).
type Type struct {
	Kind   TypeKind
	Bits   int
	Source string // the spelling in the source: i64, ptr, double

	Elem   *Type   // of a vector or array
	Len    int     // of a vector or array
	Stride int     // bytes from one element of an array to the next
	Fields []Field // of a struct
}

// Field is one field of a struct.
type Field struct {
	Type
	Offset int // bytes
}

// Composite reports whether values of t have parts.
func (t Type) Composite() bool { return t.Kind == Vector || t.Kind == Array || t.Kind == Struct }

// MarshalJSON writes the type as Source.
func (t Type) MarshalJSON() ([]byte, error) { return json.Marshal(t.Source) }

// IsZero reports whether there is no type.
func (t Type) IsZero() bool { return t.Kind == NoType }

// Size returns the number of bytes that a value of t takes in memory.
func (t Type) Size() int { return (t.Bits + 7) / 8 }

// Number reads raw, in the given order, as an unsigned number.
func Number(raw []byte, order binary.ByteOrder) *big.Int {
	b := slices.Clone(raw)
	if order != binary.ByteOrder(binary.BigEndian) {
		slices.Reverse(b)
	}
	return new(big.Int).SetBytes(b)
}

// word returns raw as an unsigned number, or false if it has more than 64 bits. It is the fast path for most values.
func word(raw []byte, order binary.ByteOrder) (v uint64, ok bool) {
	if len(raw) > 8 {
		return 0, false
	}
	for i := range raw {
		if order == binary.ByteOrder(binary.BigEndian) {
			v = v<<8 | uint64(raw[i])
		} else {
			v |= uint64(raw[i]) << (8 * i)
		}
	}
	return v, true
}

// HexBytes formats raw bits as one number.
func HexBytes(raw []byte, order binary.ByteOrder) Hex {
	if v, ok := word(raw, order); ok {
		return HexOf(v)
	}
	return Hex("0x" + Number(raw, order).Text(16))
}

// Format formats raw bits in the natural form of the type: -5, 2.5, true, 0x7ffd…, a vector as <1, 77>, an array as [1, 2], a struct as {1, 2.5}. It
// returns "" if the type or a part has no such form. It also returns "" if raw has fewer bytes than the type, because missing bytes are not zero.
//
// It ignores bits above the type's width, because they may hold anything: bits 1 to 7 of an i1, or the upper half of a register that holds an i32.
func (t Type) Format(raw []byte, order binary.ByteOrder) string {
	if t.Bits <= 0 && !t.Composite() || len(raw) < t.Size() {
		return ""
	}
	if t.Composite() {
		return t.formatParts(raw, order)
	}
	// Fast path without big.Int: a trace formats millions of these.
	switch v, ok := word(raw, order); {
	case !ok:
	case t.Kind == Int && t.Bits > 1:
		unused := 64 - t.Bits
		return strconv.FormatInt(int64(v<<unused)>>unused, 10)
	case t.Kind == Pointer:
		return string(HexOf(v & (math.MaxUint64 >> (64 - t.Bits))))
	case t.Kind == Float && t.Bits == 64:
		return formatFloat(math.Float64frombits(v), 64)
	}
	n := Number(raw, order)
	n.And(n, ones(uint(t.Bits)))
	switch t.Kind {
	case Int:
		if t.Bits == 1 {
			return strconv.FormatBool(n.Bit(0) == 1)
		}
		if n.Bit(t.Bits-1) == 1 {
			n.Sub(n, new(big.Int).Lsh(big.NewInt(1), uint(t.Bits)))
		}
		return n.String()
	case Pointer:
		return "0x" + n.Text(16)
	case BFloat:
		return formatFloat(float64(math.Float32frombits(uint32(n.Uint64())<<16)), 32)
	case Float:
		switch t.Bits {
		case 16:
			return formatFloat(halfToFloat(uint16(n.Uint64())), 32)
		case 32:
			return formatFloat(float64(math.Float32frombits(uint32(n.Uint64()))), 32)
		case 64:
			return formatFloat(math.Float64frombits(n.Uint64()), 64)
		case 80:
			return formatX87(n)
		case 128:
			return formatQuad(n)
		}
	}
	return ""
}
