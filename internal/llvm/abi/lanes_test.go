package abi_test

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine"
)

// typeOf parses a type as a module writes it.
func typeOf(t *testing.T, text string) (*ir.Type, *ir.DataLayout) {
	t.Helper()
	m, err := ir.Parse("type.ll", []byte("declare void @f("+text+")\n"))
	require.NoError(t, err)
	return m.Funcs[0].Params[0].Typ, m.Layout
}

// TestLayouts requires the layout of elements for the sizes that llc 16 to 22 record of vectors.
func TestLayouts(t *testing.T) {
	for _, c := range []struct {
		arch   *machine.Arch
		typ    string
		size   int
		stored bool
		stride int // bits; 0 if unknown
	}{
		{machine.AMD64, "<16 x i1>", 16, false, 8},
		{machine.AMD64, "<8 x i7>", 16, false, 16},
		{machine.AMD64, "<4 x i24>", 16, false, 32},
		{machine.AMD64, "<2 x i7>", 16, false, 64},
		{machine.AMD64, "<4 x i33>", 32, false, 64},
		{machine.AMD64, "<16 x i24>", 64, false, 32},
		{machine.AMD64, "<16 x i1>", 2, false, 1},
		{machine.AMD64, "<1 x i1>", 2, false, 1},
		{machine.AMD64, "<64 x i1>", 8, false, 1},
		{machine.AMD64, "<32 x i1>", 2, false, 0},
		{machine.AMD64, "<4 x i32>", 16, false, 32},
		{machine.AMD64, "<8 x half>", 16, false, 16},
		{machine.AMD64, "<2 x ptr>", 16, false, 64},
		{machine.AMD64, "<2 x i32>", 16, false, 0}, // LLVM would have to widen it; llc crashes
		{machine.AMD64, "<2 x float>", 16, false, 0},
		{machine.AMD64, "<3 x i24>", 16, false, 0},
		{machine.AMD64, "<4 x i24>", 12, false, 0},
		{machine.AMD64, "<4 x i24>", 0, false, 0},
		{machine.AMD64, "<16 x i1>", 2, true, 1},
		{machine.AMD64, "<8 x i1>", 2, true, 1}, // the size of a spilled mask register
		{machine.AMD64, "<4 x i24>", 12, true, 24},
		{machine.AMD64, "<3 x x86_fp80>", 30, true, 80},
		{machine.AMD64, "<16 x i1>", 16, true, 0},
		{machine.ARM64, "<8 x i1>", 8, false, 8},
		{machine.ARM64, "<2 x i16>", 8, false, 32}, // the elements are promoted
		{machine.ARM64, "<4 x i24>", 16, false, 32},
		{machine.ARM64, "<1 x i64>", 8, false, 64},
		{machine.S390X, "<4 x i24>", 16, false, 32},
		{machine.S390X, "<2 x i16>", 16, false, 0},
		{machine.PPC64LE, "<4 x i24>", 16, false, 0}, // POWER8 may exchange its halves
		{machine.PPC64LE, "<4 x i24>", 12, true, 24},
		{machine.RISCV64, "<4 x i32>", 16, false, 0},
		{machine.RISCV64, "<4 x i24>", 12, true, 24},
		{machine.AMD64, "<4294967295 x i1>", 16, false, 0},
		{machine.AMD64, "<vscale x 4 x i32>", 16, false, 0},
	} {
		typ, layout := typeOf(t, c.typ)
		l, err := abi.LanesOf(typ, layout, abi.LanePlace{Arch: c.arch, Size: c.size, Stored: c.stored})
		if c.stride == 0 {
			require.Error(t, err, "%s in %d bytes", c.typ, c.size)
			continue
		}
		require.NoError(t, err, "%s in %d bytes", c.typ, c.size)
		require.Equal(t, c.stride, l.Stride, "%s in %d bytes", c.typ, c.size)
	}
}

// TestPack requires the bytes that a store of the vector leaves in memory (LangRef, "Vector Type").
func TestPack(t *testing.T) {
	for _, c := range []struct {
		layout abi.Lanes
		raw    string
		order  binary.ByteOrder
		want   string
	}{
		{abi.Lanes{Len: 4, Bits: 1, Stride: 8}, "\xff\xfe\xff\xff", binary.LittleEndian, "\x0d"},
		{abi.Lanes{Len: 4, Bits: 1, Stride: 8}, "\xff\xfe\xff\xff", binary.BigEndian, "\x0b"},
		{abi.Lanes{Len: 2, Bits: 24, Stride: 32}, "\x01\x02\x03\xff\x04\x05\x06\xff", binary.LittleEndian, "\x01\x02\x03\x04\x05\x06"},
		{abi.Lanes{Len: 2, Bits: 24, Stride: 32}, "\xff\x01\x02\x03\xff\x04\x05\x06", binary.BigEndian, "\x01\x02\x03\x04\x05\x06"},
		{abi.Lanes{Len: 2, Bits: 12, Stride: 16}, "\xbc\xfa\xef\xfd", binary.LittleEndian, "\xbc\xfa\xde"},
		{abi.Lanes{Len: 3, Bits: 1, Stride: 1}, "\xfd\xff", binary.LittleEndian, "\x05"},
	} {
		got, err := c.layout.Pack([]byte(c.raw), c.order)
		require.NoError(t, err)
		require.Equal(t, c.want, string(got), "%+v", c.layout)
	}
	_, err := abi.Lanes{Len: 4, Bits: 24, Stride: 32}.Pack([]byte(strings.Repeat("x", 14)), binary.LittleEndian)
	require.Error(t, err)
}
