package vmlayout

import (
	"encoding/binary"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
)

const describing = `
LOCALS = {"Foo.bar": ["this", "n"], 0x5000: ["sum"]}

def frames(site):
    o = virtual(1, 0x7000)
    o.field(8, i32(3))
    o.element(2, site.operands[1].as_type("ref"))
    f, g = frame("Foo.bar", 4), frame(0x5000, 9, "in-call")
    f.local(0, site.operands[0].as_type("ref"))
    f.local(1, i32(7))
    f.local(2, i32(8), name = "given")
    g.local(0, o)
    return [f, g]

def local_name(method, i): return LOCALS[method][i]
def field_name(cls, offset): return {(0x7000, 8): "price"}.get((cls, offset))
def text(v):
    n = read(v.bits, "u32")
    return '"%s"' % read_string(v.bits + 4, n) if n < 300 else "over " + "9" * n
`

// TestShortened requires that a long text is cut between characters.
func TestShortened(t *testing.T) {
	whole := strings.Repeat("x", maxTextSize)
	require.Equal(t, whole, shortened(whole))
	for n := range 4 {
		text := shortened(strings.Repeat("x", n) + strings.Repeat("é", maxTextSize))
		require.True(t, utf8.ValidString(text), text)
		require.True(t, strings.HasSuffix(text, "é…"))
		require.LessOrEqual(t, len(text), maxTextSize)
		require.Greater(t, len(text), maxTextSize-3)
	}
}

// TestDescribeNumbers requires that local_name gets the method 0 as a number, and is not called for a method that could not be read.
func TestDescribeNumbers(t *testing.T) {
	const text = `
def frames(site):
    list = []
    for m in site.operands:
        f = frame(m, 1, "in-call" if list else "reexecute")
        f.local(0, i32(7))
        list.append(f)
    return list

def local_name(method, i): return type(method) + str(method)
`
	l, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	operands := []Operand{value("i32", "%p"), value("i32", "%q"), value("i32", "%r")}
	shape, err := l.Frames(&Site{Operands: operands})
	require.NoError(t, err)
	vm := shape.Read(&Source{Slots: slots(operands, map[int]uint64{0: 0, 1: 3}), Order: binary.LittleEndian})
	require.Equal(t, "int0", vm.Frames[0].Locals[0].Name)
	require.Equal(t, "int3", vm.Frames[1].Locals[0].Name)
	require.Empty(t, vm.Frames[2].Locals[0].Name, "the method is unknown")
	require.Equal(t, "its method: not recorded", vm.Frames[2].Reason)
}

// TestDescribe requires the names of locals and fields by method and class, and the texts of objects. Both are read again if their memory changes.
func TestDescribe(t *testing.T) {
	here, err := Parse("a.star", []byte(describing))
	require.NoError(t, err)
	for name, l := range map[string]*Layout{"here": here, "elsewhere": elsewhere(t, describing)} {
		t.Run(name, func(t *testing.T) {
			operands := []Operand{value("ref", "%p"), value("ref", "%q")}
			shape, err := l.Frames(&Site{Operands: operands})
			require.NoError(t, err)
			m := memory{0x1000: "\x05\x00\x00\x00hello", 0x2000: "\xff\x01\x00\x00"}
			from := &Source{Slots: slots(operands, map[int]uint64{0: 0x1000, 1: 0x2000}), Memory: m, Static: m, Order: binary.LittleEndian}
			vm := shape.Read(from)
			locals := vm.Frames[0].Locals
			require.Equal(t, []string{"this", "n", "given"}, []string{locals[0].Name, locals[1].Name, locals[2].Name})
			require.Equal(t, "sum", vm.Frames[1].Locals[0].Name)
			require.Equal(t, `"hello"`, locals[0].Text)
			fields := vm.Objects[0].Fields
			require.Equal(t, []string{"", "price"}, []string{fields[0].Name, fields[1].Name})
			require.Equal(t, []bool{true, false}, []bool{fields[0].Element, fields[1].Element})
			require.Equal(t, "over "+strings.Repeat("9", maxTextSize-len("over …"))+"…", fields[0].Text)
			require.Empty(t, vm.Frames[0].Notes)

			m[0x1000] = "\x04\x00\x00\x00good."
			require.Equal(t, `"good"`, shape.Read(from).Frames[0].Locals[0].Text)
			m[0x1000] = "\x04"
			vm = shape.Read(from)
			require.Empty(t, vm.Frames[0].Locals[0].Text)
			require.Equal(t, "a.star:18:13: read: 4 bytes at 0x1000: not mapped", vm.Frames[0].Locals[0].TextReason)
			require.Equal(t, frame.LayoutUnread, vm.Frames[0].Locals[0].TextCode)
			require.Equal(t, frame.OK, vm.Frames[0].Locals[0].Status)
		})
	}
}
