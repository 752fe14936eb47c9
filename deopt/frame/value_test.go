package frame

import (
	"encoding/binary"
	"encoding/hex"
	"encoding/json"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestFormat requires the text of values. The bits of a value are written with the most significant digit first. The expected texts are from IEEE
// 754, for x86_fp80 from the Intel SDM (vol. 1, 4.2.2 and 8.2.2), and for LDBL_MAX and similar constants from float.h.
func TestFormat(t *testing.T) {
	integer := func(bits int) Type { return Type{Kind: Int, Bits: bits, Source: "int"} }
	half, bfloat, single, double := Type{Kind: Float, Bits: 16, Source: "half"}, Type{Kind: BFloat, Bits: 16, Source: "bfloat"}, Type{Kind: Float, Bits: 32, Source: "float"}, Type{Kind: Float, Bits: 64, Source: "double"}
	x87, quad, pointer := Type{Kind: Float, Bits: 80, Source: "x86_fp80"}, Type{Kind: Float, Bits: 128, Source: "fp128"}, Type{Kind: Pointer, Bits: 64, Source: "ptr"}
	for _, c := range []struct {
		t    Type
		bits string
		want string
	}{
		{integer(1), "00", "false"}, {integer(1), "01", "true"}, {integer(1), "fe", "false"}, {integer(1), "ff", "true"},
		{integer(1), "ffffffffffffffff", "true"},
		{integer(2), "03", "-1"}, {integer(2), "02", "-2"}, {integer(2), "01", "1"},
		{integer(7), "7f", "-1"}, {integer(7), "bf", "63"}, {integer(7), "c0", "-64"}, {integer(7), "3f", "63"},
		{integer(8), "00", "0"}, {integer(8), "7f", "127"}, {integer(8), "80", "-128"}, {integer(8), "ff", "-1"},
		{integer(24), "800000", "-8388608"}, {integer(24), "ff7fffff", "8388607"},
		{integer(32), "78563412fffffffb", "-5"}, {integer(32), "80000000", "-2147483648"}, {integer(32), "7fffffff", "2147483647"},
		{integer(64), "ffffffffffffffff", "-1"}, {integer(64), "8000000000000000", "-9223372036854775808"},
		{integer(64), "0123456789abcdef", "81985529216486895"},
		{integer(65), "010000000000000000", "-18446744073709551616"}, {integer(65), "00ffffffffffffffff", "18446744073709551615"},
		{integer(128), "80000000000000000000000000000000", "-170141183460469231731687303715884105728"},
		{integer(128), "7fffffffffffffffffffffffffffffff", "170141183460469231731687303715884105727"},
		{integer(128), "00000000000000010000000000000000", "18446744073709551616"},

		{half, "3c00", "1.0"}, {half, "c000", "-2.0"}, {half, "3555", "0.33325195"}, {half, "7bff", "65504.0"},
		{half, "0001", "5.9604645e-08"}, {half, "03ff", "6.097555e-05"}, {half, "0400", "6.1035156e-05"},
		{half, "0000", "0.0"}, {half, "8000", "-0.0"}, {half, "7c00", "inf"}, {half, "fc00", "-inf"}, {half, "7e00", "nan"}, {half, "fc01", "nan"},
		{half, "12343c00", "1.0"},

		{bfloat, "3f80", "1.0"}, {bfloat, "c2f7", "-123.5"}, {bfloat, "0001", "9.1835e-41"}, {bfloat, "7f7f", "3.3895314e+38"},
		{bfloat, "0000", "0.0"}, {bfloat, "8000", "-0.0"}, {bfloat, "7f80", "inf"}, {bfloat, "ff80", "-inf"}, {bfloat, "7fc0", "nan"},

		{single, "3fc00000", "1.5"}, {single, "3dcccccd", "0.1"}, {single, "42c80000", "100.0"}, {single, "4b800000", "1.6777216e+07"},
		{single, "00000001", "1e-45"}, {single, "007fffff", "1.1754942e-38"}, {single, "7f7fffff", "3.4028235e+38"},
		{single, "00000000", "0.0"}, {single, "80000000", "-0.0"}, {single, "7f800000", "inf"}, {single, "ff800000", "-inf"}, {single, "7f800001", "nan"},
		{single, "deadbeefdeadbeefdeadbeef3fc00000", "1.5"}, // a float in an xmm register

		{double, "4004000000000000", "2.5"}, {double, "3fb999999999999a", "0.1"}, {double, "c008000000000000", "-3.0"},
		{double, "0000000000000001", "5e-324"}, {double, "000fffffffffffff", "2.225073858507201e-308"},
		{double, "7fefffffffffffff", "1.7976931348623157e+308"}, {double, "0000000000000000", "0.0"}, {double, "8000000000000000", "-0.0"},
		{double, "7ff0000000000000", "inf"}, {double, "fff0000000000000", "-inf"}, {double, "7ff8000000000000", "nan"}, {double, "fff0000000000001", "nan"},

		{x87, "3fff8000000000000000", "1.0"}, {x87, "c000a000000000000000", "-2.5"}, {x87, "3ffbcccccccccccccccd", "0.1"},
		{x87, "4000c90fdaa22168c235", "3.1415926535897932385"}, // fldpi
		{x87, "7ffeffffffffffffffff", "1.189731495357231765e+4932"}, {x87, "00018000000000000000", "3.3621031431120935063e-4932"},
		{x87, "00000000000000000001", "3.6451995318824746025e-4951"},
		{x87, "00008000000000000000", "3.3621031431120935063e-4932"}, // a pseudo-denormal, which is valid
		{x87, "00000000000000000000", "0.0"}, {x87, "80000000000000000000", "-0.0"},
		{x87, "7fff8000000000000000", "inf"}, {x87, "ffff8000000000000000", "-inf"}, {x87, "7fffc000000000000000", "nan"}, {x87, "7fff8000000000000001", "nan"},
		{x87, "7fff0000000000000000", "nan"}, // a pseudo-infinity
		{x87, "40004000000000000000", "nan"}, // an unnormal
		{x87, "5a5a5a5a5a5a3fff8000000000000000", "1.0"},

		{pointer, "00007ffd12345678", "0x7ffd12345678"}, {pointer, "0000000000000000", "0x0"}, {pointer, "ffffffffffffffff", "0xffffffffffffffff"},
		{Type{Kind: Pointer, Bits: 32, Source: "ptr"}, "ffffffff00000010", "0x10"},

		{Type{}, "0011", ""}, {Type{Kind: Opaque, Bits: 128, Source: "<4 x i32>"}, "00000000000000000000000000000001", ""},

		// binary128: 1, 2.5, the smallest and the largest number (IEEE 754-2019, table 3.5).
		{quad, "3fff0000000000000000000000000000", "1.0"}, {quad, "40004000000000000000000000000000", "2.5"}, {quad, "80000000000000000000000000000000", "-0.0"},
		{quad, "00000000000000000000000000000001", "6.475175119438025110924438958227647e-4966"}, {quad, "7ffeffffffffffffffffffffffffffff", "1.189731495357231765085759326628007e+4932"},
		{quad, "7fff0000000000000000000000000000", "inf"}, {quad, "ffff0000000000000000000000000000", "-inf"}, {quad, "7fff8000000000000000000000000000", "nan"},

		// A value with fewer bytes than its type has no text.
		{integer(64), "00000001", ""}, {double, "40040000", ""}, {integer(9), "01", ""}, {pointer, "", ""}, {x87, "3fff80000000000000", ""},
		{Type{Kind: Int, Bits: 0, Source: "i0"}, "00", ""}, {Type{Kind: Int, Bits: -1, Source: "?"}, "00", ""},
	} {
		raw, err := hex.DecodeString(c.bits)
		require.NoError(t, err)
		require.Equal(t, c.want, c.t.Format(raw, binary.BigEndian), "%s %d %s", c.t.Source, c.t.Bits, c.bits)
		before := slices.Clone(raw)
		slices.Reverse(raw)
		require.Equal(t, c.want, c.t.Format(raw, binary.LittleEndian), "%s %d %s", c.t.Source, c.t.Bits, c.bits)
		slices.Reverse(raw)
		require.Equal(t, before, raw, "the bytes were changed")
	}
}

// TestFormatParts requires the text of vectors, arrays and structs. Their bytes are in memory order. On a big-endian target the first element of a
// vector of bits is in the most significant bits of the vector's integer (LangRef, "Vector Type").
func TestFormatParts(t *testing.T) {
	i1, i4, i16, i24 := Type{Kind: Int, Bits: 1}, Type{Kind: Int, Bits: 4}, Type{Kind: Int, Bits: 16}, Type{Kind: Int, Bits: 24}
	vector := func(n int, elem Type) Type { return Type{Kind: Vector, Bits: n * elem.Bits, Elem: &elem, Len: n} }
	array := func(n, stride int, elem Type) Type {
		return Type{Kind: Array, Bits: 8 * n * stride, Elem: &elem, Len: n, Stride: stride}
	}
	pair := Type{Kind: Struct, Bits: 64, Fields: []Field{{i16, 0}, {Type{Kind: Float, Bits: 32}, 4}}}
	for _, c := range []struct {
		t           Type
		bytes       string
		little, big string
	}{
		{vector(2, i16), "01000200", "<1, 2>", "<256, 512>"},
		{vector(2, i16), "0100020099", "<1, 2>", "<2, 153>"}, // the register is wider than the vector
		{vector(4, i1), "05", "<true, false, true, false>", "<false, true, false, true>"},
		{vector(4, i1), "f5", "<true, false, true, false>", "<false, true, false, true>"}, // the upper bits are not part of the value
		{vector(3, i4), "2103", "<1, 2, 3>", "<1, 0, 3>"},
		{vector(2, i24), "010000020000", "<1, 2>", "<65536, 131072>"},
		{array(2, 4, i24), "0100009902000099", "[1, 2]", "[65536, 131072]"},
		{array(2, 8, pair), "0100999900002040" + "0200999900000000", "[{1, 2.5}, {2, 0.0}]", "[{256, 1.1569e-41}, {512, 0.0}]"},
		{vector(2, i16), "010002", "", ""},
		{array(1, 4, Type{Kind: Opaque, Bits: 32}), "01000000", "", ""},
		{array(2, 2, i24), "01000002", "", ""}, // an element extends past the end of the array
	} {
		raw, err := hex.DecodeString(c.bytes)
		require.NoError(t, err)
		require.Equal(t, c.little, c.t.Format(raw, binary.LittleEndian), c.bytes)
		require.Equal(t, c.big, c.t.Format(raw, binary.BigEndian), c.bytes)
	}
}

func TestHexBytes(t *testing.T) {
	for _, c := range []struct {
		raw    []byte
		little Hex
		big    Hex
	}{
		{[]byte{0}, "0x0", "0x0"},
		{[]byte{0x12, 0x34}, "0x3412", "0x1234"},
		{[]byte{1, 0, 0, 0, 0, 0, 0, 0}, "0x1", "0x100000000000000"},
		{[]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff}, "0xffffffffffffffffff", "0xffffffffffffffffff"},
	} {
		require.Equal(t, c.little, HexBytes(c.raw, binary.LittleEndian))
		require.Equal(t, c.big, HexBytes(c.raw, binary.BigEndian))
	}
	require.Equal(t, Hex("0xffffffffffffffff"), HexOf(uint64(1<<64-1)))
}

func TestTypeSize(t *testing.T) {
	for bits, want := range map[int]int{1: 1, 7: 1, 8: 1, 9: 2, 32: 4, 64: 8, 65: 9, 80: 10, 128: 16} {
		require.Equal(t, want, Type{Kind: Int, Bits: bits}.Size())
	}
}

// TestJSON requires the exact JSON of an example frame, because other programs read it.
func TestJSON(t *testing.T) {
	offset, rsp := uint64(68), uint16(7)
	r := Report{Schema: Schema,
		Target: Target{Kind: "process", PID: 41822, Arch: "amd64", PauseUS: new(int64(85))},
		Threads: []Thread{{TID: 41822, Name: "lli", Frames: []Frame{{
			Index: 2, Kind: JIT, PC: HexOf(uint64(0x7f184e5d308b)), Function: "sum_opt", Offset: &offset, Rule: "cfi",
			Record: &Record{ID: 2882400000, Site: "statepoint", Offset: 68, Moment: InCall},
			Resume: &Resume{Function: "sum", Block: "loop"},
			Slots: []Slot{
				{Index: 1, Name: "%i", Type: Type{Kind: Int, Bits: 64, Source: "i64"}, Value: "25", Hex: "0x19", Status: OK, Bytes: []byte{25},
					Location: &Location{Kind: "Indirect", Register: "rsp", DWARF: &rsp, Offset: 16, Size: 8}},
				{Index: 4, Status: Missing, Reason: "why"},
			},
		}}}}}
	got, err := json.Marshal(r)
	require.NoError(t, err)
	require.JSONEq(t, `{"schema":"reframe.frames/v1",
		"target":{"kind":"process","pid":41822,"arch":"amd64","pause_us":85},
		"threads":[{"tid":41822,"name":"lli","frames":[
		  {"index":2,"kind":"jit","pc":"0x7f184e5d308b","function":"sum_opt","offset":68,"rule":"cfi",
		   "record":{"id":2882400000,"site":"statepoint","offset":68,"moment":"in-call"},
		   "resume":{"function":"sum","block":"loop"},
		   "slots":[{"index":1,"name":"%i","type":"i64","value":"25","hex":"0x19","status":"ok",
		             "location":{"kind":"Indirect","register":"rsp","dwarf":7,"offset":16,"size":8}},
		            {"index":4,"status":"unavailable","reason":"why"}]}]}]}`, string(got))
}
