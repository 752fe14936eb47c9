package stackmap

import (
	"encoding/binary"

	"example.com/reframe/internal/machine"
)

// byteOrder is a byte order of encoding/binary that can both read and append.
type byteOrder interface {
	binary.ByteOrder
	binary.AppendByteOrder
}

var orders = []byteOrder{binary.LittleEndian, binary.BigEndian}

// raw writes a section by hand, one field after the other.
type raw struct {
	order binary.AppendByteOrder
	b     []byte
}

func (w *raw) u8(v ...uint8) *raw { w.b = append(w.b, v...); return w }

func (w *raw) u16(v ...uint16) *raw {
	for _, v := range v {
		w.b = w.order.AppendUint16(w.b, v)
	}
	return w
}

func (w *raw) u32(v ...uint32) *raw {
	for _, v := range v {
		w.b = w.order.AppendUint32(w.b, v)
	}
	return w
}

func (w *raw) u64(v ...uint64) *raw {
	for _, v := range v {
		w.b = w.order.AppendUint64(w.b, v)
	}
	return w
}

// location appends a location of layout V3.
func (w *raw) location(kind uint8, size, reg uint16, offset int32) *raw {
	return w.u8(kind, 0).u16(size, reg, 0).u32(uint32(offset))
}

// sample is a section of layout V3 with every kind of location. It has two functions, two constants and two records. The second function has no
// records and no fixed stack size. The first record needs padding after its locations and after its live-outs.
func sample(order binary.AppendByteOrder) []byte {
	w := &raw{order: order}
	w.u8(3, 0, 0, 0).u32(2, 2, 2)
	w.u64(0x7f0000001000, 24, 2)
	w.u64(0x7f0000002000, 1<<64-1, 0)
	w.u64(0x123456789abcdef0, 1<<63)
	w.u64(1<<64-1).u32(0x44).u16(0, 5)
	w.location(1, 8, 3, 0).location(2, 8, 6, -16).location(3, 4, 7, 1<<31-1).location(4, 8, 0, -1).location(5, 8, 0, 1)
	w.u32(0)            // padding up to a multiple of 8
	w.u16(0xffff, 1)    // padding, which the format permits to have any value
	w.u16(17).u8(0, 64) // xmm0
	w.u64(7).u32(0).u16(0x8000, 0).u16(0, 0).u32(0)
	return w.b
}

// literal is a section that was written by hand from the description of its layout, and its decoded contents.
type literal struct {
	name    string
	version int
	dialect Dialect
	bytes   func(w *raw)
	want    Blob
	// exact is set if AppendBlob makes the same bytes. AppendBlob writes zeros into reserved fields, so it makes other bytes if a reserved field is not
	// zero.
	exact bool
}

func (l *literal) data(order binary.AppendByteOrder) []byte {
	w := &raw{order: order}
	l.bytes(w)
	return w.b
}

// The positions of records follow from the sizes of the header (16), the functions (16 or 24 each) and the constants (8 each) before them.
var literals = []literal{
	{"v3", 3, V3, func(w *raw) { w.b = sample(w.order) }, Blob{
		Constants: []uint64{0x123456789abcdef0, 0x8000000000000000},
		Functions: []BlobFunction{
			{Addr: 0x7f0000001000, StackSize: 24, Records: []Record{
				{
					ID: 0xffffffffffffffff, Offset: 0x44, Pos: 80,
					Locations: []Location{
						{Kind: Register, Size: 8, Reg: 3},
						{Kind: Direct, Size: 8, Reg: 6, Offset: -16},
						{Kind: Indirect, Size: 4, Reg: 7, Offset: 2147483647},
						{Kind: Constant, Size: 8, Offset: -1},
						{Kind: ConstantIndex, Size: 8, Offset: 1},
					},
					LiveOuts: []LiveOut{{Reg: 17, Size: 64}},
				},
				{ID: 7, Flags: 0x8000, Pos: 168},
			}},
			{Addr: 0x7f0000002000, StackSize: DynamicStack},
		},
	}, false},
	// Releases 3.5 to 3.9: the size is the byte after the kind. The record has 16 + 3*8 bytes, so it needs no padding.
	{"v1", 1, V1, func(w *raw) {
		w.u8(1, 0, 0, 0).u32(1, 1, 2)
		w.u64(0x401000, 40)
		w.u64(1 << 40)
		w.u64(11).u32(9).u16(0, 3)
		w.u8(1, 16).u16(17).u32(0)
		w.u8(3, 4).u16(6).u32(0xfffffff8)
		w.u8(5, 8).u16(0).u32(0)
		w.u16(0, 2).u16(7).u8(0, 8).u16(3).u8(0, 8).u32(0)
		w.u64(12).u32(30).u16(0, 0).u16(0, 0).u32(0)
	}, Blob{
		Constants: []uint64{1099511627776},
		Functions: []BlobFunction{{Addr: 0x401000, StackSize: 40, Records: []Record{
			{
				ID: 11, Offset: 9, Pos: 40,
				Locations: []Location{
					{Kind: Register, Size: 16, Reg: 17},
					{Kind: Indirect, Size: 4, Reg: 6, Offset: -8},
					{Kind: ConstantIndex, Size: 8},
				},
				LiveOuts: []LiveOut{{Reg: 7, Size: 8}, {Reg: 3, Size: 8}},
			},
			{ID: 12, Offset: 30, Pos: 96},
		}}},
	}, true},
	{"v1 of two functions", 1, V1, func(w *raw) {
		w.u8(1, 0, 0, 0).u32(2, 0, 1)
		w.u64(0x1000, 8, 0x2000, 16)
		w.u64(5).u32(4).u16(0, 1)
		w.u8(4, 8).u16(0).u32(0xffffffff)
		w.u16(0, 0).u32(0)
	}, Blob{
		Functions:    []BlobFunction{{Addr: 0x1000, StackSize: 8}, {Addr: 0x2000, StackSize: 16}},
		Unattributed: []Record{{ID: 5, Offset: 4, Pos: 48, Locations: []Location{{Kind: Constant, Size: 8, Offset: -1}}}},
	}, true},
	// Release 4: as v1, with a record count for each function.
	{"v2", 2, V2, func(w *raw) {
		w.u8(2, 0, 0, 0).u32(2, 0, 2)
		w.u64(0x1000, 8, 1, 0x2000, 16, 1)
		w.u64(5).u32(4).u16(0, 1)
		w.u8(2, 8).u16(6).u32(0xfffffff0)
		w.u16(0, 1).u16(17).u8(0, 16)
		w.u64(6).u32(8).u16(0, 2)
		w.u8(4, 8).u16(0).u32(3)
		w.u8(1, 8).u16(5).u32(0)
		w.u16(0, 0).u32(0)
	}, Blob{
		Functions: []BlobFunction{
			{Addr: 0x1000, StackSize: 8, Records: []Record{{
				ID: 5, Offset: 4, Pos: 64,
				Locations: []Location{{Kind: Direct, Size: 8, Reg: 6, Offset: -16}},
				LiveOuts:  []LiveOut{{Reg: 17, Size: 16}},
			}}},
			{Addr: 0x2000, StackSize: 16, Records: []Record{{
				ID: 6, Offset: 8, Pos: 96, Locations: []Location{{Kind: Constant, Size: 8, Offset: 3}, {Kind: Register, Size: 8, Reg: 5}},
			}}},
		},
	}, true},
	// llc -stackmap-version=1: only the version differs.
	{"v3 under version 1", 1, V3, func(w *raw) {
		w.u8(1, 0, 0, 0).u32(1, 0, 1)
		w.u64(0x1000, 8, 1)
		w.u64(5).u32(4).u16(0, 2)
		w.location(1, 8, 3, 0).location(3, 8, 7, 24)
		w.u16(0, 0).u32(0)
	}, Blob{
		Functions: []BlobFunction{{Addr: 0x1000, StackSize: 8, Records: []Record{{
			ID: 5, Offset: 4, Pos: 40, Locations: []Location{{Kind: Register, Size: 8, Reg: 3}, {Kind: Indirect, Size: 8, Reg: 7, Offset: 24}},
		}}}},
	}, true},
	// Three live variables of 1, 2 and no locations take 16 + 1 + 12 + 1 + 24 + 1 = 55 bytes, so one byte of padding follows.
	{"yk-old", 3, YkOld, func(w *raw) {
		w.u8(3, 0, 0, 0).u32(1, 0, 1)
		w.u64(0x1000, 8, 1)
		w.u64(5).u32(4).u16(0, 3)
		w.u8(1).location(1, 8, 3, 0)
		w.u8(2).location(3, 8, 6, -24).location(4, 8, 0, 9)
		w.u8(0)
		w.u8(0)
		w.u16(0, 1).u16(7).u8(0, 8)
	}, Blob{
		Functions: []BlobFunction{{Addr: 0x1000, StackSize: 8, Records: []Record{{
			ID: 5, Offset: 4, Pos: 40, Vars: []int{1, 2, 0},
			Locations: []Location{{Kind: Register, Size: 8, Reg: 3}, {Kind: Indirect, Size: 8, Reg: 6, Offset: -24}, {Kind: Constant, Size: 8, Offset: 9}},
			LiveOuts:  []LiveOut{{Reg: 7, Size: 8}},
		}}}},
	}, true},
	// The extra locations are before the offset. The record takes 16 + 1 + 8+2+4+4 + 1 + 8+2+4 = 50 bytes, so six bytes of padding follow. The second
	// function has no records. The prologues end the map, without padding.
	{"yk", 3, Yk, func(w *raw) {
		w.u8(3, 0, 0, 0).u32(2, 1, 1)
		w.u64(0x1000, 8, 1, 0x2000, 1<<64-1, 0)
		w.u64(1 << 33)
		w.u64(5).u32(4).u16(0, 2)
		w.u8(1).u8(1, 0).u16(8, 3, 0).u16(2, 12, 0xffe8).u32(0)
		w.u8(1).u8(5, 0).u16(8, 0, 0).u16(0).u32(0)
		w.u8(0, 0, 0, 0, 0, 0)
		w.u16(0, 0).u32(0)
		w.u8(1, 0).u32(2).u16(3, 0).u32(0xfffffffe).u16(14, 0).u32(1)
		w.u8(0, 0).u32(0)
	}, Blob{
		Constants: []uint64{8589934592},
		Functions: []BlobFunction{
			{Addr: 0x1000, StackSize: 8, Records: []Record{{
				ID: 5, Offset: 4, Pos: 72, Vars: []int{1, 1},
				Locations: []Location{{Kind: Register, Size: 8, Reg: 3}, {Kind: ConstantIndex, Size: 8}},
				Extra:     [][]int16{{12, -24}, nil},
			}}, Prologue: &Prologue{HasFramePointer: true, Saved: []SavedRegister{
				{Reg: machine.DWARFReg(3), Offset: -2}, {Reg: machine.DWARFReg(14), Offset: 1},
			}}},
			{Addr: 0x2000, StackSize: DynamicStack, Prologue: &Prologue{}},
		},
	}, true},
}

func init() {
	for i := range literals {
		l := &literals[i]
		l.want.Version, l.want.Dialect = l.version, l.dialect
	}
}
