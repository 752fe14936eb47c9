package vmlayout

import (
	"encoding/binary"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

const tagAndPayload = `
T = tagged({0: "null", 1: "i32", 2: "f64", 3: "ref string", 4: "ref table", 5: "true", 6: "false"}, mask = 0xff)

def three(tag, payload, shape):
    return i32(payload + shape) if tag == 1 else ref(read(payload, "u64"))

def back(v, tag, payload, shape):
    if v.kind != "i32": fail("only integers")
    return (None, v.number - shape, None)

W = codec(three, back, reads = True)

def frames(site):
    tag, payload, p, tags, count = site.operands[:5]
    f = frame("m", 1)
    f.local(0, words(tag, payload).decoded_by(T))
    f.local(1, words(p.pointee("u64", at = 8), p.pointee("u64")).decoded_by(T), name = "next to each other")
    f.stack(0, row(words(p.pointee("u64", at = 24), p.pointee("u64", at = 16)).decoded_by(T), count, 16))
    f.local(2, words(tags & 15, tags >> 4).decoded_by(T))
    f.local(3, words(1, site.operands[5], 5).decoded_by(W))
    f.local(4, words(2, site.operands[6], 5).decoded_by(W))
    o = virtual(1, "Pair")
    o.field(8, words(3, site.operands[7]).decoded_by(T))
    f.local(5, o)
    return f
`

// word returns the bytes of 64-bit words.
func word(list ...uint64) string {
	var b []byte
	for _, n := range list {
		b = binary.LittleEndian.AppendUint64(b, n)
	}
	return string(b)
}

// TestWords requires that values of 16 and 24 bytes can be read and set. They are in operands and in memory, as locals, rows and fields; the layout
// runs in this process and in another.
func TestWords(t *testing.T) {
	here, err := Parse("a.star", []byte(tagAndPayload))
	require.NoError(t, err)
	for name, l := range map[string]*Layout{"here": here, "elsewhere": elsewhere(t, tagAndPayload)} {
		t.Run(name, func(t *testing.T) {
			operands := []Operand{value("i8", "%tag"), value("i64", "%payload"), value("ref", "%p"), value("i64", "%tags"), value("i32", "%count"), value("i64", "%x"), value("i64", "%y"), value("ref", "%s")}
			site := &Site{Operands: operands}
			shape, err := l.Frames(site)
			require.NoError(t, err)
			require.Empty(t, shape.Misfits(site))
			require.True(t, shape.Follows())
			m := memory{0x1000: word(0x4008000000000000, 2, 0xdead_0000_0007, 0x7701, 0, 6, 0x5000, 4), 0x3000: word(0x4242)}
			bits := map[int]uint64{0: 0x01, 1: 0xffff_0000_0000_002a, 2: 0x1000, 3: 0x50003, 4: 3, 5: 37, 6: 0x3000, 7: 0x6000}
			from := &Source{Slots: slots(operands, bits), Memory: m, Static: m, Order: binary.LittleEndian}
			vm := shape.Read(from)
			var got []string
			for _, v := range append(append([]frame.VMValue{}, vm.Frames[0].Locals...), vm.Frames[0].Stack...) {
				got = append(got, strings.TrimSpace(v.Type+" "+v.Value+v.Reason))
			}
			require.Equal(t, []string{"i32 42", "f64 3.0", "ref string 0x5000", "i32 42", "ref 0x4242", "", "i32 7", "symbol false", "ref table 0x5000"}, got)
			require.Equal(t, "ref string 0x6000", vm.Objects[0].Fields[0].Type+" "+vm.Objects[0].Fields[0].Value)
			require.Equal(t, []frame.Hex{"0x1", "0xffff00000000002a"}, vm.Frames[0].Locals[0].Words)
			require.Equal(t, 0, *vm.Frames[0].Locals[0].Slot)

			set := func(name string, is Typed) any {
				all, err := shape.Encode(from, name, is)
				if err != nil {
					return err.Error()
				}
				changed := map[int]uint64{}
				for _, c := range all {
					changed[c.Operand] = c.Bits.Uint64()
				}
				return changed
			}
			require.Equal(t, map[int]uint64{1: 7}, set("local[0]", Typed{Type: "i32", Bits: 7}))
			require.Equal(t, map[int]uint64{0: 2, 1: 0x4000000000000000}, set("local[0]", Typed{Type: "f64", Bits: 0x4000000000000000}))
			require.Equal(t, map[int]uint64{0: 4, 1: 0x7000}, set("local[0]", Typed{Type: "ref", Text: "table", Bits: 0x7000}))
			require.Equal(t, map[int]uint64{0: 6}, set("local[0]", Typed{Type: "symbol", Text: "false"}))
			require.Equal(t, "tagged has 2 tags for ref 0x7000: give its kind", set("local[0]", Typed{Type: "ref", Bits: 0x7000}))
			require.Equal(t, "tagged cannot encode i64 7", set("local[0]", Typed{Type: "i64", Bits: 7}))
			require.Equal(t, "no location of the record contains it", set("local[1]", Typed{Type: "f64", Bits: 7}))
			require.Contains(t, set("local[2]", Typed{Type: "ref", Text: "string", Bits: 7}), "live value 3, which is also part of another value")
			require.Equal(t, map[int]uint64{5: 95}, set("local[3]", Typed{Type: "i32", Bits: 100}))
			require.Equal(t, map[int]uint64{7: 0x7000}, set("object[1].8", Typed{Type: "ref", Bits: 0x7000}))

			bits[0] = 9
			delete(bits, 7)
			delete(m, 0x1000)
			vm = shape.Read(&Source{Slots: slots(operands, bits), Memory: m, Static: m, Order: binary.LittleEndian})
			require.Equal(t, "its words 0x9, 0xffff00000000002a: unknown tag 9", vm.Frames[0].Locals[0].Reason)
			require.Equal(t, "its word 0: u64 at 0x1008: 8 bytes at 0x1008: not mapped", vm.Frames[0].Locals[1].Reason)
			require.Equal(t, "its word 1: not recorded", vm.Objects[0].Fields[0].Reason)
		})
	}
}

// TestCodecBounds requires that the codecs of an exit share a bound for what they read, and that the next exit starts with the full bound.
func TestCodecBounds(t *testing.T) {
	const text = `
S = struct("u64 first, u8 rest[1000]")

def decode(bits): return i32(S.at(bits).first)

C = codec(decode, reads = True)

def frames(site):
    f = frame("m", 1)
    f.stack(0, row(site.operands[0].pointee("u64").decoded_by(C), 4000, 0))
    for n in range(1, 6): f.stack(4000 * n, row(site.operands[0].pointee("u64").decoded_by(C), 4000, 0))
    return f
`
	here, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	operands := []Operand{value("ref", "%p")}
	shape, err := here.Frames(&Site{Operands: operands})
	require.NoError(t, err)
	m := memory{0x1000: word(0x1000) + strings.Repeat(".", 2000)}
	from := &Source{Slots: slots(operands, map[int]uint64{0: 0x1000}), Memory: m, Static: m, Order: binary.LittleEndian}
	for range 2 {
		list := shape.Read(from).Frames[0].Stack
		require.Len(t, list, 24000)
		require.Equal(t, "4096", list[0].Value)
		last := list[len(list)-1]
		require.Equal(t, frame.Missing, last.Status)
		require.Equal(t, "its bits 0x1000: the codecs of this exit read over 16 MiB, or over 65536 times", last.Reason)
	}
}

// TestCodecTime requires that a codec ends when the codecs of an exit have no time left, and that it sets and gets values before.
func TestCodecTime(t *testing.T) {
	const text = `
def decode(bits):
    for n in range(2000): bits += n & 0
    return i32(bits)

def encode(v):
    for n in range(2000): v.bits + n
    return v.bits

def frames(site):
    f = frame("m", 1)
    f.local(0, site.operands[0].decoded_by(codec(decode, encode)))
    return f
`
	here, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	for name, l := range map[string]*Layout{"here": here, "elsewhere": elsewhere(t, text)} {
		t.Run(name, func(t *testing.T) {
			shape, err := l.Frames(&Site{Operands: []Operand{value("i64", "%a")}})
			require.NoError(t, err)
			c, from := shape.Frames[0].Locals[0].Codec, &Source{codecs: &spent{}}
			got, err := decode(c, from, []uint64{7})
			require.NoError(t, err)
			require.Equal(t, Typed{Type: "i32", Bits: 7}, got)
			words, err := encode(c, from, got, []uint64{0})
			require.NoError(t, err)
			require.Equal(t, []uint64{7}, words)

			from.codecs.time = maxCodecTime
			_, err = decode(c, from, []uint64{7})
			require.ErrorContains(t, err, ": the codecs of this exit take over 10s")
			from.codecs.time = maxCodecTime
			_, err = encode(c, from, got, []uint64{0})
			require.ErrorContains(t, err, ": the codecs of this exit take over 10s")
		})
	}
}

// TestCodecsElsewhere requires that the process of a layout keeps equal codecs once, even if frames runs several times.
func TestCodecsElsewhere(t *testing.T) {
	l := elsewhere(t, `
def decode(bits): return i32(bits)
def frames(site):
    f = frame("m", 1)
    f.local(0, site.operands[0].decoded_by(decode))
    f.local(1, site.operands[1].decoded_by(low_tag(bits = 2, refs = 2)))
    f.local(2, site.operands[2].decoded_by(low_tag()))
    return f
`)
	for range 3 {
		shape, err := l.Frames(&Site{Operands: []Operand{value("i64", "%a"), value("i64", "%b"), value("i64", "%c")}})
		require.NoError(t, err)
		for n := range 3 {
			require.Equal(t, n+1, shape.Frames[0].Locals[n].CodecNumber)
		}
	}
}

// TestComputedSigns requires that constants and operands of any width keep their signs in computed values, positions and indices.
func TestComputedSigns(t *testing.T) {
	const text = `
def frames(site):
    a, b, c, base = site.operands
    f = frame("m", b)
    f.local(0, a + i32(-1))
    f.local(1, a + u32(0xffffffff))
    f.local(2, a * i8(-2))
    f.local(3, a + i1(1))
    f.local(4, u64(1 << 63) >> a)
    f.local(5, b + 1)
    f.local(6, c + 1)
    f.local(7, base.pointee("i32", at = 4, index = b, scale = 4))
    f.local(8, b.as_type("u8") + 0)
    return f
`
	l, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	operands := []Operand{value("i32", "%a"), {Name: "%b", Type: frame.Type{Kind: frame.Int, Bits: 24, Source: "i24"}},
		{Name: "%c", Type: frame.Type{Kind: frame.Int, Bits: 20, Source: "i20"}}, value("ref", "%base")}
	shape, err := l.Frames(&Site{Operands: operands})
	require.NoError(t, err)
	m := memory{0x1000: word(7)}
	from := &Source{Slots: slots(operands, map[int]uint64{0: 2, 1: 0xff_ffff, 2: 0xaf_fffe, 3: 0x1000}), Memory: m, Order: binary.LittleEndian}
	vm := shape.Read(from)
	var got []string
	for _, v := range vm.Frames[0].Locals {
		got = append(got, strings.TrimSpace(v.Type+" "+v.Value+v.Reason))
	}
	require.Equal(t, []string{"i64 1", "i64 4294967297", "i64 -4", "i64 3", "i64 2305843009213693952", "i64 0", "i64 -1", "i32 7", "i64 255"}, got)
	require.EqualValues(t, -1, *vm.Frames[0].Position)
}

// TestComputed requires values that are computed from two operands, and their inverse.
func TestComputed(t *testing.T) {
	const text = `
def frames(site):
    a, b, c, base, index, n = site.operands
    f = frame("m", 1)
    f.local(0, a + b)
    f.local(1, (c >> n).as_type("i32"))
    f.local(2, (base + index * 16 + 8).as_type("ref"))
    f.local(3, (base + index * 16).pointee("i32"))
    f.local(4, 100 - n)
    f.local(5, (n & 3).decoded_by(low_tag(ints = 1, refs = 0)))
    return f
`
	l, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	operands := []Operand{value("i32", "%a"), value("i64", "%b"), value("i64", "%c"), value("ref", "%base"), value("i32", "%index"), value("i8", "%n")}
	site := &Site{Operands: operands}
	shape, err := l.Frames(site)
	require.NoError(t, err)
	m := memory{0x1000: word(7, 0, 9)}
	bits := map[int]uint64{0: 0xffff_fffe, 1: 44, 2: 0x150, 3: 0x1020, 4: 0xffff_ffff, 5: 3}
	from := &Source{Slots: slots(operands, bits), Memory: m, Static: m, Order: binary.LittleEndian}
	var got []string
	for _, v := range shape.Read(from).Frames[0].Locals {
		got = append(got, strings.TrimSpace(v.Type+" "+v.Value+v.Reason))
	}
	require.Equal(t, []string{"i64 42", "i32 42", "ref 0x1018", "i32 9", "i64 97", "i64 1"}, got) // 3 has the tag of integers
	set := func(name string, is Typed) any {
		all, err := shape.Encode(from, name, is)
		if err != nil {
			return err.Error()
		}
		return map[int]int64{all[0].Operand: int64(all[0].Bits.Uint64())}
	}
	require.Equal(t, map[int]int64{0: -4}, set("local[0]", Typed{Type: "i64", Bits: 40}))
	require.Equal(t, map[int]int64{1: 1<<40 + 2}, set("local[0]", Typed{Type: "i64", Bits: 1 << 40}), "the first operand has 32 bits")
	require.Equal(t, map[int]int64{2: 17 << 3}, set("local[1]", Typed{Type: "i32", Bits: 17}))
	require.Equal(t, "it is computed from live value 4, which is also part of another value", set("local[2]", Typed{Type: "ref", Bits: 0x2018}))
	require.Equal(t, "no location of the record contains it", set("local[3]", Typed{Type: "i32", Bits: 17}))
	require.Contains(t, set("local[4]", Typed{Type: "i64", Bits: 17}), "live value 5, which is also part of another value")

	bits[5] = 64
	require.Equal(t, "it is computed: a shift by 64 bits", shape.Read(&Source{Slots: slots(operands, bits), Memory: m, Order: binary.LittleEndian}).Frames[0].Locals[1].Reason)
	delete(bits, 1)
	require.Equal(t, "it is computed: not recorded", shape.Read(&Source{Slots: slots(operands, bits), Memory: m, Order: binary.LittleEndian}).Frames[0].Locals[0].Reason)

	for text, says := range map[string]string{
		"a = a + 1\n  for _ in range(40): a = a + a": "a value that is computed from over 32 others",
		"a + 'x'":                 "+: expected a number, got a text",
		"a + None":                "+: expected an operand, a pointee or a number, got a NoneType",
		"a / 2":                   "unknown binary op: operand / int",
		"words(a)":                "words: expected 2 to 8 words",
		"f.local(0, words(a, 1))": "a value of several words requires a codec: use decoded_by",
		"f.local(0, a.decoded_by(low_tag()) + 1)": "+: expected bits, got a decoded value",
	} {
		l, err := Parse("a.star", []byte("def frames(site):\n  f, a = frame('m', 1), site.operands[0]\n  "+text+"\n  skip(a)\n  return f\n"))
		require.NoError(t, err)
		_, err = l.Frames(&Site{Operands: operands[:1]})
		require.ErrorContains(t, err, says, text)
	}
}
