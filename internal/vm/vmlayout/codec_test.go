package vmlayout

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/stretchr/testify/require"
	"go.starlark.net/starlark"
	"go.starlark.net/syntax"
)

// codecs is a layout with encodings of real virtual machines, and with one encoding that is defined by two functions.
const codecs = `
# WebKit, Source/JavaScriptCore/runtime/JSCJSValue.h: NumberTag, DoubleEncodeOffset, ValueNull …
jsc = nan_box(ints = 0xfffe, offset = 1 << 49, symbols = {0: "empty", 0x02: "null", 0x06: "false", 0x07: "true", 0x0a: "undefined"})

# OpenHarmony, ecmascript/js_tagged_value_internals.h
ark = nan_box(ints = 0xffff, offset = 1 << 48, extend = True, symbols = {0: "empty", 0x02: "undefined", 0x03: "null", 0x05: "hole", 0x06: "false", 0x07: "true"})

simple = nan_box()

# LuaJIT, src/lj_obj.h, LJ_GC64 and LJ_DUALNUM: 17 bits of type, 47 of payload
luajit = nan_tag(shift = 47, tags = {
    0x1fffb: "ref string", 0x1fff9: "ref thread", 0x1fff7: "ref function", 0x1fff5: "ref cdata", 0x1fff4: "ref table", 0x1fff3: "ref userdata",
    0x1fff2: "i32",
}, symbols = {0xffffffffffffffff: "nil", 0xffff7fffffffffff: "false", 0xfffeffffffffffff: "true"})

# SpiderMonkey, js/public/Value.h, JS_PUNBOX64: JSVAL_TAG_MAX_DOUBLE 0x1fff0 and a JSValueType above 47 bits
spidermonkey = nan_tag(shift = 47, tags = {
    0x1fff1: "i32", 0x1fff2: "i1", 0x1fff5: "magic", 0x1fff6: "ref string", 0x1fff7: "ref symbol", 0x1fff9: "ref bigint", 0x1fffc: "ref object",
}, symbols = {0xfff9800000000000: "undefined", 0xfffa000000000000: "null"})

# V8, include/v8-internal.h: kSmiTag 0, kHeapObjectTag 1; SmiTagging<8> has kSmiShiftSize 31, SmiTagging<4> 0
v8 = low_tag(shift = 32)
v8_compressed = low_tag(width = 32)

# OCaml, runtime/caml/mlvalues.h: Val_long(x) is (x << 1) + 1, a block is its address
ocaml = low_tag(ints = 1, refs = 0)

# HotSpot, oops/compressedOops.inline.hpp: base + (n << shift), 0 is null
narrow_oop = compressed(base = 0x0000000800000000, shift = 3)
zero_based = compressed(shift = 3)

colors = interned({0: "null", 1: "red", 2: "green", 0xffffffffffffffff: "blue"})

# Rationals of small numbers: two functions of a layout.
def decode(bits):
    if bits >> 63:
        return f64(bits & ~(1 << 63))
    return i32(bits) if bits < 1 << 32 else ref(bits)

def encode(v):
    if v.kind == "i32":
        return v.bits
    if v.kind == "ref":
        if v.bits < 1 << 32 or v.bits >> 63:
            fail("no such reference")
        return v.bits
    if v.kind == "f64" and not v.bits >> 63:
        return v.bits | 1 << 63
    fail("%s has no bits" % v.kind)
written = codec(decode, encode)
one_way = codec(decode)

def frames(site):
    return frame("m", 0)
`

// codecOfTest returns a codec of the text by its name.
func codecOfTest(t *testing.T, name string) Codec {
	t.Helper()
	l, err := Parse("codecs.star", []byte(codecs))
	require.NoError(t, err)
	v, err := starlark.ExecFileOptions(&syntax.FileOptions{}, l.thread(nil), "codecs.star", codecs, l.universe())
	require.NoError(t, err)
	return v[name].(codecValue).Codec
}

// TestKnownEncodings requires the encodings of values that the sources of real virtual machines define.
func TestKnownEncodings(t *testing.T) {
	minusTwo := uint64(math.MaxUint64 - 1)
	for _, c := range []struct {
		codec string
		bits  uint64
		is    Typed
	}{
		{"jsc", 0xfffe_0000_0000_0000, Typed{Type: "i32"}},
		{"jsc", 0xfffe_0000_ffff_ffff, Typed{Type: "i32", Bits: math.MaxUint32}},
		{"jsc", 0x0002_0000_0000_0000, Typed{Type: "f64"}},
		{"jsc", 0x400e_0000_0000_0000, Typed{Type: "f64", Bits: math.Float64bits(3.5)}},
		{"jsc", 0x7ffa_0000_0000_0000, Typed{Type: "f64", Bits: 0x7ff8_0000_0000_0000}},
		{"jsc", 0xfffa_0000_0000_0000, Typed{Type: "f64", Bits: 0xfff8_0000_0000_0000}}, // the NaN that x86 arithmetic produces
		{"jsc", 0x0000_7f00_dead_bee0, Typed{Type: "ref", Bits: 0x7f00_dead_bee0}},
		{"jsc", 2, Typed{Type: "null"}},
		{"jsc", 10, Typed{Type: "symbol", Bits: 10, Text: "undefined"}},
		{"jsc", 7, Typed{Type: "symbol", Bits: 7, Text: "true"}},
		{"ark", 0xffff_0000_0000_0007, Typed{Type: "i32", Bits: 7}},
		{"ark", 0xffff_ffff_ffff_fffe, Typed{Type: "i32", Bits: 0xffff_fffe}},
		{"ark", 0x400d_0000_0000_0000, Typed{Type: "f64", Bits: math.Float64bits(3.5)}},
		{"ark", 3, Typed{Type: "null"}},
		{"luajit", math.Float64bits(3.5), Typed{Type: "f64", Bits: math.Float64bits(3.5)}},
		{"luajit", 0xfff8_0000_0000_0000, Typed{Type: "f64", Bits: 0xfff8_0000_0000_0000}},
		{"luajit", 0xffff_ffff_ffff_ffff, Typed{Type: "symbol", Bits: math.MaxUint64, Text: "nil"}},
		{"luajit", 0xfff9_0000_ffff_fffe, Typed{Type: "i32", Bits: 0xffff_fffe}},
		{"luajit", 0xfffa_7f00_1234_5670, Typed{Type: "ref", Bits: 0x7f00_1234_5670, Text: "table"}},
		{"luajit", 0xfffd_ff00_1234_5670, Typed{Type: "ref", Bits: 0x7f00_1234_5670, Text: "string"}},
		{"spidermonkey", 0xfff8_8000_0000_0007, Typed{Type: "i32", Bits: 7}},
		{"spidermonkey", 0xfff9_0000_0000_0001, Typed{Type: "i1", Bits: 1}},
		{"spidermonkey", 0xfff9_8000_0000_0000, Typed{Type: "symbol", Bits: 0xfff9_8000_0000_0000, Text: "undefined"}},
		{"spidermonkey", 0xfffa_0000_0000_0000, Typed{Type: "null"}},
		{"spidermonkey", 0xfffb_7f00_1234_5670, Typed{Type: "ref", Bits: 0x7f00_1234_5670, Text: "string"}},
		{"spidermonkey", 0xfffe_7f00_1234_5670, Typed{Type: "ref", Bits: 0x7f00_1234_5670, Text: "object"}},
		{"v8", 0x0000_0007_0000_0000, Typed{Type: "i64", Bits: 7}},
		{"v8", 0xffff_fffe_0000_0000, Typed{Type: "i64", Bits: minusTwo}},
		{"v8", 0x7f00_1234_5671, Typed{Type: "ref", Bits: 0x7f00_1234_5670}},
		{"v8_compressed", 14, Typed{Type: "i64", Bits: 7}},
		{"v8_compressed", 0xffff_fffc, Typed{Type: "i64", Bits: minusTwo}},
		{"v8_compressed", 0x0010_0001, Typed{Type: "ref", Bits: 0x0010_0000}},
		{"ocaml", 15, Typed{Type: "i64", Bits: 7}},
		{"ocaml", math.MaxUint64 - 2, Typed{Type: "i64", Bits: minusTwo}},
		{"ocaml", 0x7f00_1234_5670, Typed{Type: "ref", Bits: 0x7f00_1234_5670}},
		{"narrow_oop", 0x1000, Typed{Type: "ref", Bits: 0x8_0000_8000}},
		{"narrow_oop", 0xffff_ffff, Typed{Type: "ref", Bits: 0xf_ffff_fff8}},
		{"narrow_oop", 0, Typed{Type: "null"}},
		{"zero_based", 0xe000_0000, Typed{Type: "ref", Bits: 0x7_0000_0000}},
		{"colors", 2, Typed{Type: "symbol", Bits: 2, Text: "green"}},
		{"colors", 0, Typed{Type: "null"}},
	} {
		codec := codecOfTest(t, c.codec)
		is, err := codec.Decode(c.bits)
		require.NoError(t, err, "%s %#x", c.codec, c.bits)
		require.Equal(t, c.is, is, "%s %#x", c.codec, c.bits)
		bits, err := codec.Encode(c.is)
		require.NoError(t, err, "%s %#x", c.codec, c.bits)
		require.Equal(t, c.bits, bits, "%s %#x", c.codec, c.bits)
	}
}

// TestNoEncoding covers bits without a value, and values without bits.
func TestNoEncoding(t *testing.T) {
	for _, c := range []struct {
		codec string
		bits  uint64
		says  string
	}{
		{"jsc", 0xfffe_0001_0000_0000, "0xfffe000100000000: an integer has 32 bits"},
		{"jsc", 0x0001_0000_0000_0000, "0x1000000000000 is neither a number nor a reference"},
		{"jsc", 0xffff_0000_0000_0000, "0xffff000000000000 is neither a number nor a reference"},
		{"ark", 0xffff_0000_ffff_ffff, "0xffff0000ffffffff: an integer has 32 bits"},
		{"spidermonkey", 0xfff9_0000_0000_0002, "0xfff9000000000002: more bits than i1 has"},
		{"v8", 0x0000_0007_0000_0002, "0x700000002: an integer has no bits below bit 32"},
		{"colors", 3, "3 has no name"},
	} {
		_, err := codecOfTest(t, c.codec).Decode(c.bits)
		require.EqualError(t, err, c.says, "%s %#x", c.codec, c.bits)
	}
	for _, c := range []struct {
		codec string
		v     Typed
		says  string
	}{
		{"jsc", Typed{Type: "i64", Bits: 7}, "nan_box cannot encode i64 7"},
		{"jsc", Typed{Type: "ref", Bits: 1 << 48}, "nan_box cannot encode ref 0x1000000000000"},
		{"jsc", Typed{Type: "ref", Bits: 10}, "nan_box cannot encode ref 0xa"}, // 10 encodes undefined
		{"jsc", Typed{Type: "symbol", Text: "nil"}, "nan_box cannot encode symbol nil"},
		{"luajit", Typed{Type: "f64", Bits: 0xfffd_8000_0000_0000}, "nan_tag cannot encode f64 nan"},
		{"luajit", Typed{Type: "ref", Bits: 1 << 47, Text: "table"}, "nan_tag cannot encode ref 0x800000000000"},
		{"luajit", Typed{Type: "ref", Bits: 16, Text: "object"}, "nan_tag cannot encode ref 0x10"},
		{"luajit", Typed{Type: "ref", Bits: 16}, "nan_tag has 6 tags for ref 0x10: give its kind"},
		{"luajit", Typed{Type: "null"}, "nan_tag cannot encode null null"},
		{"v8", Typed{Type: "i64", Bits: 1 << 31}, "low_tag cannot encode i64 2147483648"},
		{"v8", Typed{Type: "ref", Bits: 17}, "low_tag cannot encode ref 0x11"},
		{"v8_compressed", Typed{Type: "i64", Bits: 1 << 30}, "low_tag cannot encode i64 1073741824"},
		{"v8_compressed", Typed{Type: "ref", Bits: 1 << 32}, "low_tag cannot encode ref 0x100000000"},
		{"v8", Typed{Type: "f64"}, "low_tag cannot encode f64 0.0"},
		{"narrow_oop", Typed{Type: "ref", Bits: 0x8_0000_8004}, "compressed cannot encode ref 0x800008004"},
		{"narrow_oop", Typed{Type: "ref", Bits: 0x10_0000_0000}, "compressed cannot encode ref 0x1000000000"},
		{"narrow_oop", Typed{Type: "ref", Bits: 0x8_0000_0000}, "compressed cannot encode ref 0x800000000"}, // its 32 encoded bits would be 0, which is null
		{"colors", Typed{Type: "symbol", Text: "yellow"}, "interned cannot encode symbol yellow"},
		{"colors", Typed{Type: "i32"}, "interned cannot encode i32 0"},
		{"written", Typed{Type: "i8"}, "codecs.star:49:9: fail: i8 has no bits"},
		{"one_way", Typed{Type: "i32"}, "codecs.star: codec(decode) has no encode: its values cannot be set"},
	} {
		_, err := codecOfTest(t, c.codec).Encode(c.v)
		require.EqualError(t, err, c.says, "%s %v", c.codec, c.v)
	}
}

// TestCodecParameters requires an error if a codec is made with unsupported parameters.
func TestCodecParameters(t *testing.T) {
	for text, says := range map[string]string{
		"nan_box(ints = 0)":                      "nan_box: ints must be from 1 to 0xffff, and offset from 1 << 48 to the largest number for which no sum has more than 64 bits",
		"nan_box(ints = 0x7000)":                 "nan_box: the codes of integers overlap those of doubles",
		"nan_box(symbols = {'a': 1})":            `nan_box: "a": 1: expected a number and a name`,
		"nan_tag({}, shift = 20)":                "nan_tag: a tag must begin at bit 32 to 52",
		"low_tag(bits = 9)":                      "low_tag: expected 1 to 8 bits, and two tags of that width",
		"low_tag(ints = 1)":                      "low_tag: expected 1 to 8 bits, and two tags of that width",
		"low_tag(width = 16)":                    "low_tag: the width must be 32 or 64 bits, and integers must be shifted by at least the bits of the tag",
		"low_tag(bits = 3, shift = 2, refs = 1)": "low_tag: the width must be 32 or 64 bits, and integers must be shifted by at least the bits of the tag",
		"compressed(shift = 17)":                 "compressed: the shift must be at most 16 bits",
		"interned({1: 2})":                       "interned: 1: 2: expected a number and a name",
	} {
		_, err := Parse("a.star", []byte("c = "+text+"\n"))
		require.ErrorContains(t, err, says, text)
	}
}

// interesting returns random bits, which often have a meaning in an encoding.
func interesting(r *rand.Rand, c Codec) uint64 {
	bits := r.Uint64()
	switch r.IntN(6) {
	case 0:
		bits &= 0x0000_ffff_ffff_fff8
	case 1:
		bits |= 0xfff8 << 48
	case 2:
		bits = uint64(int64(int32(bits)))
	case 3:
		bits = bits&math.MaxUint32 | 0xfffe_0000_0000_0000
	case 4:
		bits = math.Float64bits(r.NormFloat64() * 1e6)
	}
	switch c := c.(type) {
	case *nanTag:
		if n := r.IntN(2 * len(c.tags)); n < len(c.tags) {
			for tag := range c.tags {
				if n == 0 {
					bits = tag<<c.shift | bits&(1<<c.shift-1)>>(16*(r.Uint32()&1))
				}
				n--
			}
		}
	case *lowTag:
		if c.shift > c.bits && r.IntN(2) == 0 {
			bits = bits << c.shift
		}
		bits = bits << (64 - c.width) >> (64 - c.width)
	case *compressed:
		bits &= math.MaxUint32
	case *interned:
		bits = []uint64{0, 1, 2, math.MaxUint64}[r.IntN(4)]
	}
	return bits
}

// TestInverse requires that decoding and then encoding returns the original bits, for 10,000 values.
func TestInverse(t *testing.T) {
	for _, name := range []string{"jsc", "ark", "simple", "luajit", "spidermonkey", "v8", "v8_compressed", "ocaml", "narrow_oop", "zero_based", "colors", "written"} {
		t.Run(name, func(t *testing.T) {
			codec := codecOfTest(t, name)
			r := rand.New(rand.NewPCG(1, 2))
			values := 0
			for values < 10_000 {
				bits := interesting(r, codec)
				v, err := codec.Decode(bits)
				if err != nil {
					continue
				}
				values++
				got, err := codec.Encode(v)
				require.NoError(t, err, "%#x is %s %s", bits, v.Type, v)
				require.Equal(t, fmt.Sprintf("%#x", bits), fmt.Sprintf("%#x", got), "%s %s", v.Type, v)
			}
		})
	}
}
