package interp

import (
	"encoding/binary"
	"fmt"
	"math/big"
	"slices"

	"example.com/reframe/internal/llvm/ir"
)

// Value is one value of an IR type. Each of its bits is known, undefined or poison. The zero Value holds no value. Values are immutable.
type Value struct {
	s *shape
	w []word
}

// IsNone reports whether there is no value, as for a void function.
func (v Value) IsNone() bool { return v.s == nil }

// Type returns the value's type, void for no value.
func (v Value) Type() *ir.Type {
	if v.s == nil {
		return ir.Void
	}
	return v.s.typ
}

// FromBytes decodes a value of type t from memory: raw[0] is at the lowest address, in the byte order of the data layout. It ignores bytes and bits
// past the type's store size. A nil layout means pointers of 8 bytes, little-endian.
func FromBytes(dl *ir.DataLayout, t *ir.Type, raw []byte) (Value, error) {
	s, err := newShapes(dl).of(t)
	if err != nil {
		return Value{}, err
	}
	w := make([]word, s.words)
	for _, l := range s.leaf {
		if l.off+uint64(l.bytes()) > uint64(len(raw)) {
			return Value{}, fmt.Errorf("%d bytes are too few for a value of type %v", len(raw), t)
		}
		l.decode(w, raw[l.off:], nil, dl != nil && dl.BigEndian)
	}
	return Value{s, w}, nil
}

// FromUint makes a scalar (integer, pointer or the bits of a float) from its low 64 bits; the bits above are zero. It panics for a type that is not
// a scalar, because that is a bug of the caller.
func FromUint(t *ir.Type, v uint64) Value {
	return FromBig(t, new(big.Int).SetUint64(v))
}

// FromBig makes a scalar from an integer, reduced modulo 2^width. For a float, v is its bits. It panics as [FromUint] does.
func FromBig(t *ir.Type, v *big.Int) Value {
	s, err := newShapes(nil).of(t)
	if err != nil || s.bits == 0 {
		panic(fmt.Sprintf("interp: %v is not a scalar type", t))
	}
	w := make([]word, s.words)
	setBig(w, v, s.bits)
	return Value{s, w}
}

// FromFloat64 makes a float of type t, rounded to nearest. It panics if t is not half, bfloat, float or double.
func FromFloat64(t *ir.Type, f float64) Value {
	if !narrowFloat(t) {
		panic(fmt.Sprintf("interp: %v is not half, bfloat, float or double", t))
	}
	return FromUint(t, floatBits(t.Kind, f))
}

// Undef makes a value of type t with all bits undefined.
func Undef(t *ir.Type) (Value, error) {
	s, err := newShapes(nil).of(t)
	if err != nil {
		return Value{}, err
	}
	return Value{s, s.undefined()}, nil
}

// FromScalars makes a value of an aggregate type from the scalars that it contains, in order.
func FromScalars(t *ir.Type, scalars []Value) (Value, error) {
	v, err := Undef(t)
	if err != nil {
		return Value{}, err
	}
	var w []word
	for _, s := range scalars {
		w = append(w, s.w...)
	}
	if len(w) != len(v.w) {
		return Value{}, fmt.Errorf("%d scalars for a value of type %v", len(scalars), t)
	}
	return Value{v.s, w}, nil
}

// Defined reports whether every bit of the value is known.
func (v Value) Defined() bool { return v.s != nil && defined(v.w) }

// Uint returns the low 64 bits of a scalar. It returns false for no value, for an aggregate and for a value with unknown bits.
func (v Value) Uint() (uint64, bool) {
	if !v.Defined() || v.s.bits == 0 {
		return 0, false
	}
	return v.w[0].v, true
}

// Int returns a scalar as a signed integer. It returns false as Uint does.
func (v Value) Int() (int64, bool) {
	u, ok := v.Uint()
	if ok && v.s.bits < 64 {
		u = signExtend(u, v.s.bits)
	}
	return int64(u), ok
}

// Big returns a scalar as an unsigned integer of its full width.
func (v Value) Big() (*big.Int, bool) {
	if !v.Defined() || v.s.bits == 0 {
		return nil, false
	}
	return toBig(v.w), true
}

// Float64 returns the value of a half, bfloat, float or double.
func (v Value) Float64() (float64, bool) {
	if !v.Defined() || !narrowFloat(v.s.typ) {
		return 0, false
	}
	return floatOf(v.s.typ.Kind, v.w[0].v), true
}

// Bits returns the words of a scalar, lowest bits first, and a mask of the unknown bits, whose values in bits are arbitrary. Bits above the width
// are clear in both. It returns nil for an aggregate.
func (v Value) Bits() (bits, unknown []uint64) {
	if v.s == nil || v.s.bits == 0 {
		return nil, nil
	}
	for _, w := range v.w {
		bits, unknown = append(bits, w.v), append(unknown, w.u)
	}
	return bits, unknown
}

// Elem returns element or field i of a vector, array or struct.
func (v Value) Elem(i int) (Value, bool) {
	if v.s == nil {
		return Value{}, false
	}
	s, at, ok := v.s.part(i)
	if !ok {
		return Value{}, false
	}
	return Value{s, v.w[at : at+s.words]}, true
}

// Len returns the number of elements or fields, 0 for a scalar.
func (v Value) Len() int {
	if v.s == nil {
		return 0
	}
	return v.s.n
}

// Equal reports whether both values have the same bits, known, undefined and poison. It does not compare types.
func (v Value) Equal(u Value) bool { return slices.Equal(v.w, u.w) }

// Bytes encodes the value as in memory, the inverse of [FromBytes]. Padding is zero. It returns false if a bit is undefined or poison.
func (v Value) Bytes(dl *ir.DataLayout) ([]byte, bool) {
	if !v.Defined() {
		return nil, false
	}
	size := uint64(0)
	for _, l := range v.s.leaf {
		size = max(size, l.off+uint64(l.bytes()))
	}
	raw := make([]byte, size)
	shadow := make([]byte, size)
	for _, l := range v.s.leaf {
		l.encode(raw[l.off:], shadow[l.off:], v.w, dl != nil && dl.BigEndian)
	}
	return raw, true
}

func defined(w []word) bool {
	for _, x := range w {
		if x.u != 0 {
			return false
		}
	}
	return true
}

func toBig(w []word) *big.Int {
	if len(w) == 1 {
		return new(big.Int).SetUint64(w[0].v)
	}
	b := make([]byte, 0, 8*len(w))
	for i := len(w) - 1; i >= 0; i-- {
		b = binary.BigEndian.AppendUint64(b, w[i].v)
	}
	return new(big.Int).SetBytes(b)
}

// toSigned is toBig for a signed number, in two's complement.
func toSigned(w []word, bits int) *big.Int {
	z := toBig(w)
	if z.Bit(bits-1) == 1 {
		z.Sub(z, new(big.Int).Lsh(big.NewInt(1), uint(bits)))
	}
	return z
}

// setBig writes v modulo 2^bits, with all bits known.
func setBig(w []word, v *big.Int, bits int) {
	if v.Sign() < 0 || v.BitLen() > bits {
		v = new(big.Int).And(v, ones(uint(bits)))
	}
	b := v.FillBytes(make([]byte, 8*len(w)))
	for i := range w {
		w[i] = word{v: binary.BigEndian.Uint64(b[8*(len(w)-1-i):])}
	}
}

func signExtend(v uint64, bits int) uint64 {
	shift := uint(64 - bits)
	return uint64(int64(v<<shift) >> shift)
}
