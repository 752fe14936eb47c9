package vmlayout

import (
	"encoding/binary"
	"math/big"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

// builtinLayout reads a builtin layout.
func builtinLayout(t testing.TB, name string) *Layout {
	t.Helper()
	l, err := Read(name)
	require.NoError(t, err)
	return l
}

// enc returns an operand of Jeandle's encoding.
func enc(index, kind, basic int64) Operand { return constant("i64", index<<32|kind<<16|basic) }

// i32s returns operands that are i32 constants.
func i32s(list ...int64) (all []Operand) {
	for _, n := range list {
		all = append(all, constant("i32", n))
	}
	return all
}

func joined(lists ...[]Operand) (all []Operand) {
	for _, l := range lists {
		all = append(all, l...)
	}
	return all
}

// TestWrongRecords requires that the error for a malformed record names the operand: each record has a mistake that a front end could make.
func TestWrongRecords(t *testing.T) {
	head := []Operand{constant("i64", 0), constant("i32", 9), constant("i32", 9)}
	x, o := value("i32", "%x"), value("ref", "%o")
	i64 := func(n int64) Operand { return constant("i64", n) }
	i32 := func(n int64) Operand { return constant("i32", n) }
	i16 := func(n int64) Operand { return constant("i16", n) }
	for _, c := range []struct {
		name, layout string
		site         Site
		says         string
	}{
		{"simple, another kind", "simple", Site{Operands: []Operand{tag(1, 0, 0), o, i32(1), tag(2, 9, 0), x}},
			"operand 4 (i32 %x) has the tag of a value that is encoded in the way 9, and there are 0 to 4"},
		{"simple, no frame", "simple", Site{Operands: []Operand{tag(2, 0, 0), x}}, "operand 0 is the tag of something in a frame, and no frame has begun"},
		{"simple, resumed in no way", "simple", Site{Operands: []Operand{tag(1, 0, 4), o, i32(1)}}, "operand 0 resumes a frame in the way 4, and there are 0 to 3"},
		{"jeandle, the position differs", "jeandle", Site{Operands: []Operand{i64(0), i32(9), i32(10)}}, "operand 2 is no second position: the record has 0, 9, 10 there"},
		{"jeandle, the flag left out", "jeandle", Site{Operands: []Operand{i32(9), i32(9), enc(0, 0, 10), x}}, "operand 2 is no second position: the record has 9, 9, 10 there"},
		{"jeandle, a place left out", "jeandle", Site{Operands: joined(head, []Operand{enc(0, 0, 10), x, enc(2, 0, 10), i32(1)})}, "operand 5 is the value of place 2, and the next is 1"},
		{"jeandle, half of a wide value", "jeandle", Site{Operands: joined(head, []Operand{enc(0, 0, 11), value("i64", "%w"), enc(1, 0, 10), x})}, "operand 5 is the value of place 1, and the next is 2"},
		{"jeandle, an id that differs", "jeandle", Site{Operands: joined(head, []Operand{enc(0, 4, 12), i64(4096), i32(0), enc(0, 8, 12), i32(1)})}, "operand 6 is an object with the id 1, and its encoding has 0"},
		{"jeandle, no object", "jeandle", Site{Operands: joined(head, []Operand{enc(3, 8, 12), i32(3)})}, "local[0] of frame 0 is object 3, which is not defined"},
		{"jeandle, an object twice", "jeandle", Site{Operands: joined(head, []Operand{enc(3, 4, 12), i64(4096), i32(0), enc(3, 4, 12), i64(4096), i32(0)})}, "object 3 is defined a second time, first in line 35:16"},
		{"jeandle, dead and alive", "jeandle", Site{Operands: joined(head, []Operand{enc(0, 0, 99), i32(1)})}, "operand 4 is 1, and a dead value has a 0"},
		{"jeandle, a type of none", "jeandle", Site{Operands: joined(head, []Operand{enc(0, 0, 14), x})}, "operand 3 has the basic type 14, which no value has"},
		{"jeandle, another kind", "jeandle", Site{Operands: joined(head, []Operand{enc(0, 2, 10), x})}, "operand 3 has the kind 2, which no encoding has"},
		{"jeandle, cut off", "jeandle", Site{Operands: joined(head, []Operand{enc(0, 3, 12), o})}, "skip: cannot read another operand: there are only 5"},
		{"jllvm, a local too many", "jllvm", Site{Operands: []Operand{i16(4), i16(1), x, x, i64(0)}}, "1 locals and 1 words of their mask are wanted, and 3 operands are left"},
		{"jllvm, no mask", "jllvm", Site{Operands: []Operand{i16(4), i16(1), x}}, "1 locals and 1 words of their mask are wanted, and 1 operands are left"},
		{"wanco, a type of none", "wanco", Site{Kind: "stackmap", Operands: []Operand{i32(1), i32(4), o}}, "operand 1 is no type: 4, and there are 0 to 3"},
		{"wanco, half a pair", "wanco", Site{Kind: "stackmap", Operands: []Operand{i32(0), i32(1)}}, "next: cannot read another operand: there are only 2"},
		{"ark, half a pair", "ark", Site{Operands: []Operand{i32(-1), i32(0), i32(-2)}}, "pairs: 3 operands do not form pairs"},
		{"ark, no depth", "ark", Site{Operands: []Operand{i32(-2), i32(5)}}, "neither the record nor the call says how deep the frames are inlined"},
		{"ark, a depth of none", "ark", Site{Operands: []Operand{i32(-1), i32(-2)}}, "frames that are inlined -2 deep, and there are 2 operands"}, // the layout once searched endlessly for this depth
		{"ark, deeper than there are operands", "ark", Site{Operands: []Operand{i32(-1), i64(1 << 40)}}, "frames that are inlined 1099511627776 deep, and there are 2 operands"},
		{"ark, too deep", "ark", Site{Operands: []Operand{i32(-1), i32(2), i32(-11), i32(5), i32(-10), i32(5)}}, "operand 2 is of depth 3, and the deepest is 2"},
		{"ark, a frame left out", "ark", Site{Operands: []Operand{i32(-1), i32(1), i32(-5), i32(5), i32(-7), value("ref", "%a")}}, "no operand is of depth 0"},
		{"ark, another key", "ark", Site{Operands: []Operand{i32(-1), i32(0), i32(-9), i32(5)}}, "operand 2 is no key: -9"},
		{"ark, a key twice", "ark", Site{Operands: []Operand{i32(-1), i32(0), i32(-3), value("ref", "%a"), i32(-3), value("ref", "%b")}}, "extra: acc is listed twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			_, err := builtinLayout(t, c.layout).Frames(&c.site)
			require.ErrorContains(t, err, c.says)
		})
	}
}

// TestEmptyBundles requires that the layouts of Jeandle, JLLVM and Ark reject a site without operands: their own calls have empty bundles.
func TestEmptyBundles(t *testing.T) {
	for _, name := range []string{"jeandle", "jllvm", "ark"} {
		shape, err := builtinLayout(t, name).Frames(&Site{Kind: "statepoint"})
		require.NoError(t, err, name)
		require.Nil(t, shape, name)
	}
	shape, err := builtinLayout(t, "wanco").Frames(&Site{Kind: "statepoint", Operands: i32s(0)})
	require.NoError(t, err)
	require.Nil(t, shape, "wanco has stackmaps alone")
}

// TestJLLVMMask reads 66 locals of JLLVM, which have two words of mask. Without a module, a poison value is the constant that LLVM records for it.
func TestJLLVMMask(t *testing.T) {
	operands := []Operand{constant("i16", 17), constant("i16", 66)}
	for range 66 {
		operands = append(operands, value("", ""))
	}
	operands[2+5] = Operand{Constant: big.NewInt(0xfefefefe)}
	operands = append(operands, constant("i64", 1<<3|-1<<63), constant("i64", 1<<1))
	shape, err := builtinLayout(t, "jllvm").Frames(&Site{Function: "f", Operands: operands})
	require.NoError(t, err)
	locals := shape.Frames[0].Locals
	require.Len(t, locals, 66)
	for n, v := range locals {
		require.EqualValues(t, n, v.At)
		switch n {
		case 3, 63, 65:
			require.Equal(t, "ref", v.As, n)
		case 5:
			require.Equal(t, DeadValue, v.Kind)
		default:
			require.Equal(t, "", v.As, n)
			require.Equal(t, 2+n, v.Operand)
		}
	}
}

// TestJLLVMOwnTest has the bundle of JLLVM's own compiler test (tests/Compiler/locals-deopt-types.j): an int, a long in two words, a float and a
// double as integers, a reference.
func TestJLLVMOwnTest(t *testing.T) {
	poison := Operand{Undef: true, Type: plain["i8"]}
	shape, err := builtinLayout(t, "jllvm").Frames(&Site{Function: "Test.test:()V", Operands: []Operand{
		constant("i16", 22), constant("i16", 7), value("i32", "%i"), value("i64", "%l"), poison, value("i32", "%f"), value("ref", "%o"), value("i64", "%d"), poison,
		constant("i64", 16),
	}})
	require.NoError(t, err)
	type local struct {
		kind    ValueKind
		operand int
		as      string
	}
	var got []local
	for _, v := range shape.Frames[0].Locals {
		got = append(got, local{v.Kind, v.Operand, v.As})
	}
	require.Equal(t, []local{{operand: 2}, {operand: 3}, {kind: DeadValue}, {operand: 5}, {operand: 6, as: "ref"}, {operand: 7}, {kind: DeadValue}}, got)
}

// TestArkDepthOfTheCall covers older releases of Ark, which have the depth in the call and not in the record.
func TestArkDepthOfTheCall(t *testing.T) {
	site := Site{Kind: "deoptimize", Operands: []Operand{constant("i32", -5), constant("i32", 17), constant("i32", -4), constant("i32", 9)},
		Args: []Operand{value("i64", "%glue"), constant("i32", 3), constant("i64", 1)}}
	shape, err := builtinLayout(t, "ark").Frames(&site)
	require.NoError(t, err)
	require.Len(t, shape.Frames, 2)
	require.Equal(t, frame.Reexecute, shape.Frames[0].Resume)
	require.Equal(t, 1, shape.Frames[0].Position.Operand)
	require.Equal(t, frame.Calling, shape.Frames[1].Resume)
	require.Equal(t, 3, shape.Frames[1].Position.Operand)
}

// TestRows requires that rows, masks and strings are read up to the end of the memory, and that the reason names the missing data.
func TestRows(t *testing.T) {
	const text = `
def frames(site):
    p, q = site.operands
    f = frame(q, 1)
    f.stack(0, row(p.pointee("i64", at = 16), p.pointee("u16"), 8, refs = p.pointee("u64", at = 8)))
    return f

def method_name(m):
    return read_string(m, 3)
`
	var change func(list []frame.Slot) // if not nil, changes the slots
	read := func(count uint16, from uint64) *frame.VM {
		l, err := Parse("a.star", []byte(text))
		require.NoError(t, err)
		operands := []Operand{value("ref", "%p"), value("ref", "%q")}
		shape, err := l.Frames(&Site{Operands: operands})
		require.NoError(t, err)
		block := make([]byte, 16+2*8)
		block[0], block[1], block[8], block[16], block[24] = byte(count), byte(count>>8), 2, 7, 9
		m := memory{0x1000: string(block), 0x2000: "abcdef"}
		list := slots(operands, map[int]uint64{0: from, 1: 0x2000})
		if change != nil {
			change(list)
		}
		return shape.Read(&Source{Slots: list, Memory: m, Static: m, Order: binary.LittleEndian})
	}
	vm := read(2, 0x1000)
	require.Equal(t, "abc", vm.Frames[0].Method)
	require.Len(t, vm.Frames[0].Stack, 2)
	require.Equal(t, []string{"i64", "7", "ref", "0x9"}, []string{vm.Frames[0].Stack[0].Type, vm.Frames[0].Stack[0].Value, vm.Frames[0].Stack[1].Type, vm.Frames[0].Stack[1].Value})
	vm = read(3, 0x1000)
	require.Len(t, vm.Frames[0].Stack, 3)
	require.Equal(t, frame.Missing, vm.Frames[0].Stack[2].Status)
	require.Equal(t, frame.MemoryUnreadable, vm.Frames[0].Stack[2].Code)
	require.Equal(t, "i64 at 0x1020: 8 bytes at 0x1020: not mapped", vm.Frames[0].Stack[2].Reason)
	vm = read(0, 0x1000)
	require.Empty(t, vm.Frames[0].Stack)
	vm = read(2, 0x3000)
	require.Equal(t, frame.MemoryUnreadable, vm.Frames[0].Stack[0].Code)
	require.Equal(t, "their number: u16 at 0x3000: 2 bytes at 0x3000: not mapped", vm.Frames[0].Stack[0].Reason)
	change = func(list []frame.Slot) { list[0].Clear(frame.Missing, frame.Because(frame.CallerSaved, "rdx", 3)) }
	vm = read(2, 0x1000)
	require.Equal(t, frame.CallerSaved, vm.Frames[0].Stack[0].Code)
	require.Equal(t, "their number: its address: rdx is caller-saved and frame #3 does not preserve it", vm.Frames[0].Stack[0].Reason)
	change = nil
	vm = read(5000, 0x1000)
	require.Equal(t, frame.LayoutUnread, vm.Frames[0].Stack[0].Code)
}
