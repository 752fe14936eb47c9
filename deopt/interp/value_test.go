package interp_test

import (
	"encoding/binary"
	"fmt"
	"math"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

func integer(bits int) *ir.Type { return &ir.Type{Kind: ir.IntKind, Bits: bits} }

var (
	half   = &ir.Type{Kind: ir.HalfKind}
	bfloat = &ir.Type{Kind: ir.BFloatKind}
	single = &ir.Type{Kind: ir.FloatKind}
	double = &ir.Type{Kind: ir.DoubleKind}
	fp80   = &ir.Type{Kind: ir.X86FP80Kind}
	fp128  = &ir.Type{Kind: ir.FP128Kind}
)

// TestFrameTypeIsBounded requires that the frame type of a small type lists its parts, and that of a large type has only its number of bits.
func TestFrameTypeIsBounded(t *testing.T) {
	dl, err := ir.ParseDataLayout("")
	require.NoError(t, err)
	deep, empty := ir.I8, &ir.Type{Kind: ir.StructKind}
	for n := range 60 {
		deep = &ir.Type{Kind: ir.StructKind, Name: fmt.Sprint(n), Fields: []*ir.Type{deep, {Kind: ir.ArrayKind, Len: 0, Elem: deep}, {Kind: ir.ArrayKind, Len: 0, Elem: deep}}}
		empty = &ir.Type{Kind: ir.StructKind, Name: fmt.Sprint("e", n), Fields: []*ir.Type{empty, empty}}
	}
	array := func(n uint64, elem *ir.Type) *ir.Type { return &ir.Type{Kind: ir.ArrayKind, Len: n, Elem: elem} }
	for _, c := range []struct {
		typ  *ir.Type
		kind frame.TypeKind
	}{
		{array(4000, ir.I8), frame.Array}, {array(5000, ir.I8), frame.Opaque}, {array(70000, ir.I8), frame.NoType}, {array(0, ir.I8), frame.Array},
		{array(100, array(100, ir.I8)), frame.Opaque}, {vector(4000, ir.I1), frame.Vector}, {vector(5000, ir.I1), frame.Opaque}, {deep, frame.Struct}, {empty, frame.Opaque},
	} {
		require.Equal(t, c.kind, interp.FrameType(dl, c.typ).Kind, "%d x", c.typ.Len)
	}
}

func vector(n uint64, elem *ir.Type) *ir.Type {
	return &ir.Type{Kind: ir.VectorKind, Len: n, Elem: elem}
}

// TestFormatOfBytes requires the text of values that are decoded from memory. The bytes of floats are those that gcc emits for constants of _Float16,
// __bf16, float, double, long double and __float128.
func TestFormatOfBytes(t *testing.T) {
	dl, err := ir.ParseDataLayout("")
	require.NoError(t, err)
	for _, c := range []struct {
		typ  *ir.Type
		raw  []byte
		text string
	}{
		{ir.I1, []byte{0xff}, "true"}, // bits 1 to 7 of a recorded i1 are garbage
		{ir.I1, []byte{0xfe}, "false"},
		{ir.I8, []byte{0xfb}, "-5"},
		{integer(7), []byte{0x40}, "-64"},
		{ir.I32, []byte{1, 2, 3, 4, 0xaa, 0xbb}, "67305985"},
		{ir.I64, []byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "-1"},
		{integer(65), []byte{1, 0, 0, 0, 0, 0, 0, 0, 1}, "-18446744073709551615"},
		{integer(128), []byte{0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0, 0}, "18446744073709551616"},
		{ir.Ptr, []byte{0x10, 0x20, 0xd3, 0x5e, 0x18, 0x7f, 0, 0}, "0x7f185ed32010"},
		{half, []byte{0x00, 0x41}, "2.5"},
		{half, []byte{0x66, 0x2e}, "0.099975586"},
		{half, []byte{0x01, 0x00}, "5.9604645e-08"},
		{half, []byte{0xff, 0x7b}, "65504.0"},
		{bfloat, []byte{0x20, 0x40}, "2.5"},
		{single, []byte{0xcd, 0xcc, 0xcc, 0x3d}, "0.1"},
		{double, []byte{0, 0, 0, 0, 0, 0, 0x04, 0x40}, "2.5"},
		{double, []byte{0, 0, 0, 0, 0, 0, 0xf0, 0xff}, "-inf"},
		{double, []byte{0, 0, 0, 0, 0, 0, 0xf8, 0x7f}, "nan"},
		{fp80, []byte{0, 0, 0, 0, 0, 0, 0, 0xa0, 0x00, 0xc0}, "-2.5"},
		{fp80, []byte{0, 0, 0, 0, 0, 0, 0, 0x80, 0xff, 0x7f}, "inf"},
		{fp128, []byte{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0x40, 0, 0x40}, "2.5"},
		{fp128, make([]byte, 16), "0.0"},
		{vector(2, ir.I32), []byte{1, 0, 0, 0, 0xfe, 0xff, 0xff, 0xff}, "<1, -2>"},
		{vector(4, ir.I1), []byte{0xf5}, "<true, false, true, false>"},
		{&ir.Type{Kind: ir.ArrayKind, Len: 2, Elem: integer(24)}, []byte{1, 0, 0, 9, 2, 0, 0, 9}, "[1, 2]"},
		{&ir.Type{Kind: ir.StructKind, Fields: []*ir.Type{ir.I8, ir.I32}}, []byte{1, 9, 9, 9, 2, 0, 0, 0}, "{1, 2}"},
		{&ir.Type{Kind: ir.StructKind, Packed: true, Fields: []*ir.Type{ir.I8, ir.I32}}, []byte{1, 2, 0, 0, 0}, "{1, 2}"},
		{vector(3, integer(12)), []byte{0x01, 0xf0, 0xff, 0x03, 0x00}, "<1, -1, 3>"},
		{&ir.Type{Kind: ir.StructKind, Fields: []*ir.Type{ir.I8, {Kind: ir.ArrayKind, Elem: ir.I8}, {Kind: ir.StructKind}}}, []byte{1}, "{1, [], {}}"},
		{vector(2, half), []byte{0x00, 0x41, 0x00, 0x3c}, "<2.5, 1.0>"},
		{vector(2, ir.Ptr), []byte{1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0, 0, 0, 0, 0, 0, 0x80}, "<0x1, 0x80000000000000ff>"},
		{&ir.Type{Kind: ir.ArrayKind, Len: 2, Elem: vector(2, ir.I8)}, []byte{1, 2, 3, 4}, "[<1, 2>, <3, 4>]"},
		{&ir.Type{Kind: ir.StructKind, Fields: []*ir.Type{ir.I1, double, {Kind: ir.StructKind, Fields: []*ir.Type{ir.Ptr}}}},
			[]byte{1, 9, 9, 9, 9, 9, 9, 9, 0, 0, 0, 0, 0, 0, 4, 0x40, 16, 0, 0, 0, 0, 0, 0, 0}, "{true, 2.5, {0x10}}"},
	} {
		v, err := interp.FromBytes(nil, c.typ, c.raw)
		require.NoError(t, err)
		require.Equal(t, c.text, v.Format(), "%v %x", c.typ, c.raw)
		require.Equal(t, c.text, interp.FrameType(dl, c.typ).Format(c.raw, binary.LittleEndian), "as a frame has it: %v %x", c.typ, c.raw)

		raw, ok := v.Bytes(nil)
		require.True(t, ok)
		again, err := interp.FromBytes(nil, c.typ, raw)
		require.NoError(t, err)
		require.True(t, v.Equal(again))
	}
}

func TestBigEndianBytes(t *testing.T) {
	dl, err := ir.ParseDataLayout("E")
	require.NoError(t, err)
	for _, c := range []struct {
		typ  *ir.Type
		raw  []byte
		text string
	}{
		{ir.I32, []byte{0, 0, 1, 2}, "258"},
		{integer(33), []byte{1, 0, 0, 0, 1}, "-4294967295"},
		{double, []byte{0x40, 0x04, 0, 0, 0, 0, 0, 0}, "2.5"},
	} {
		v, err := interp.FromBytes(dl, c.typ, c.raw)
		require.NoError(t, err)
		require.Equal(t, c.text, v.Format())
		raw, ok := v.Bytes(dl)
		require.True(t, ok)
		require.Equal(t, c.raw, raw)
	}
}

func TestValuesThatCannotBe(t *testing.T) {
	_, err := interp.FromBytes(nil, ir.I64, make([]byte, 7))
	require.EqualError(t, err, "7 bytes are too few for a value of type i64")
	_, err = interp.FromBytes(nil, &ir.Type{Kind: ir.ArrayKind, Len: math.MaxUint64, Elem: ir.I8}, nil)
	require.Error(t, err)
	_, err = interp.FromBytes(nil, &ir.Type{Kind: ir.StructKind, Opaque: true, Name: "o"}, nil)
	require.EqualError(t, err, "a value of the opaque type %o")
	require.Panics(t, func() { interp.FromUint(vector(2, ir.I8), 1) })
}

func TestAccessors(t *testing.T) {
	v := interp.FromUint(ir.I8, 0x1fb)
	u, ok := v.Uint()
	require.True(t, ok)
	require.EqualValues(t, 0xfb, u)
	i, ok := v.Int()
	require.True(t, ok)
	require.EqualValues(t, -5, i)
	f, ok := interp.FromFloat64(single, 0.1).Float64()
	require.True(t, ok)
	require.Equal(t, float64(float32(0.1)), f)

	und, err := interp.Undef(ir.I8)
	require.NoError(t, err)
	require.False(t, und.Defined())
	_, ok = und.Uint()
	require.False(t, ok)
	_, ok = und.Bytes(nil)
	require.False(t, ok)
	require.Equal(t, "undef", und.Format())

	var none interp.Value
	require.True(t, none.IsNone())
	require.Equal(t, "void", none.Format())
	require.Zero(t, none.Len())

	pair, err := interp.FromBytes(nil, vector(2, ir.I16), []byte{1, 0, 2, 0})
	require.NoError(t, err)
	require.Equal(t, 2, pair.Len())
	e, ok := pair.Elem(1)
	require.True(t, ok)
	require.Equal(t, "2", e.Format())
	_, ok = pair.Elem(2)
	require.False(t, ok)
}
