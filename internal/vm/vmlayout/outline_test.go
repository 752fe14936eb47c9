package vmlayout

import (
	"encoding/binary"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

const outlined = `
TABLE = {(7, 17): {"stack": 1, "line": 30}, (7, 4): {"stack in-call": 5}}
T = tagged({1: "i32"})
B = nan_box(ints = 0xffff, offset = 1 << 48)
def method_name(m): return read_string(m) if m > 100 else "m%d" % m
def class_name(c): return read_string(c)
def local_name(m, n): return "first" if n == 0 else None
def info(m, p): return TABLE.get((m, p))
def frames(site):
    ops = site.operands
    inner = frame(ops[0], ops[1])
    inner.local(0, ops[2])
    inner.local(1, ops[3].as_type("i32", extend = "sign"), name = "widened")
    inner.local(2, dead())
    inner.local(3, ops[4].pointee("i32", at = 8))
    inner.local(4, words(ops[5], ops[6] >> 4).decoded_by(T))
    inner.local(5, (ops[7] + 3) * 8)
    inner.local(6, ops[8].decoded_by(B))
    inner.local(7, i32(-5))
    inner.push(ops[9])
    inner.monitor(object_ref(1), eliminated = True)
    inner.monitor(ops[4].as_type("ref"))
    inner.extra("fuel", ops[10])
    outer = frame(ops[0], 4, "in-call")
    outer.push(row(ops[4].pointee("i64"), ops[10], 8))
    unknown = frame(ops[2], ops[2], "in-call")
    named = frame(200, 1, "in-call")
    o = virtual(1, ops[4])
    o.field(8, ops[11].as_type("f64"))
    o.element(0, o)
    return [inner, outer, unknown, named]
`

// summary returns an outline as text: a line for each frame, value, object and note. The line of a value has its name, type, value, source and operands.
func summary(o *Outline) string {
	var b strings.Builder
	list := func(what string, values []OutlineValue) {
		for _, v := range values {
			at := ""
			if v.Index != nil {
				at = fmt.Sprint(" ", *v.Index)
			}
			fmt.Fprintf(&b, "  %s%s|%s|%s|%s|%s %v", what, at, v.Name, v.Type, v.Value, v.From, v.Operands)
			if v.Object != nil {
				fmt.Fprintf(&b, " object=%d", *v.Object)
			}
			if v.Eliminated {
				b.WriteString(" eliminated")
			}
			b.WriteString("\n")
		}
	}
	for _, f := range o.Frames {
		at := f.PositionFrom
		if f.Position != nil {
			at = fmt.Sprint(*f.Position)
		}
		fmt.Fprintf(&b, "%s%s @ %s %s %v\n", f.Method, f.MethodFrom, at, f.Resume, f.Info)
		for _, note := range f.Notes {
			fmt.Fprintf(&b, "  ! %s\n", note)
		}
		list("local", f.Locals)
		list("stack", f.Stack)
		list("monitor", f.Monitors)
		list("extra", f.Extra)
	}
	for _, of := range o.Objects {
		fmt.Fprintf(&b, "object %d %s%s\n", of.ID, of.Class, of.ClassFrom)
		for _, note := range of.Notes {
			fmt.Fprintf(&b, "  ! %s\n", note)
		}
		list("field", of.Fields)
	}
	return b.String()
}

// zeros is a memory of zeros.
type zeros struct{}

func (zeros) ReadMemory(p []byte, _ machine.Addr) error { clear(p); return nil }

// TestOutline requires the source of each kind of value, without an exit, from a layout in this process and in another.
func TestOutline(t *testing.T) {
	const want = `m7 @ 17 reexecute map[line:30 stack:1]
  local 0|first|i32||operand 2 (%a) [2]
  local 1|widened|i32||operand 3 (%b) extended by sign [3]
  local 2||||dead []
  local 3||i32||memory at operand 4 (%p) + 8 [4]
  local 4||||words [operand 5 (%tag), (operand 6 (%payload) >> 4)], decoded [5 6]
  local 5||i64||(operand 7 (%n) + 3) * 8 [7]
  local 6||i32|7|operand 8, decoded [8]
  local 7||i32|-5|constant []
  stack 0||i64|-9|operand 9 [9]
  monitor||||object 1 [] object=1 eliminated
  monitor||ref||operand 4 (%p) [4]
  extra|fuel|i64||operand 10 (%fuel) [10]
m7 @ 4 in-call map[stack in-call:5]
  stack 0||i64||row from memory at operand 4 (%p), 8 bytes apart, their number is operand 10 (%fuel) [4 10]
operand 2 (%a) @ operand 2 (%a) in-call map[]
NAMED
object 1 operand 4 (%p)
  field 0||||object 1 [] object=1
  field 8||f64||operand 11 (%d) [11]
`
	operands := []Operand{constant("i64", 7), constant("i32", 17), value("i32", "%a"), value("i8", "%b"), value("ref", "%p"), value("i64", "%tag"), value("i64", "%payload"),
		value("i64", "%n"), constant("i64", -0x1000000000000|7), constant("i64", -9), value("i64", "%fuel"), value("f64", "%d")}
	here, err := Parse("a.star", []byte(outlined))
	require.NoError(t, err)
	for name, l := range map[string]*Layout{"here": here, "elsewhere": elsewhere(t, outlined)} {
		t.Run(name, func(t *testing.T) {
			site := &Site{Function: "f", Operands: operands, Moment: frame.Unknown}
			got := First([]*Layout{l}, site).Outline(site)
			require.Empty(t, got.Error)
			require.Equal(t, strings.Replace(want, "NAMED", "0xc8 @ 1 in-call map[]\n  ! the name of its method: the layout reads memory, which only a process or a core has", 1), summary(got))
			site.Target = &Target{Memory: zeros{}, Order: binary.LittleEndian}
			got = First([]*Layout{l}, site).Outline(site)
			require.Equal(t, strings.Replace(want, "NAMED", " @ 1 in-call map[]", 1), summary(got))
		})
	}
}

// TestOutlineFailures requires the reason for a record without frames, a bounded text for nested values, and notes for a frame that differs from info.
func TestOutlineFailures(t *testing.T) {
	outline := func(text string) *Outline {
		l, err := Parse("a.star", []byte(text))
		require.NoError(t, err)
		site := &Site{Function: "f", Record: 3, Operands: []Operand{value("i64", "%a")}}
		return First([]*Layout{l}, site).Outline(site)
	}
	require.Equal(t, &Outline{}, outline("def frames(site): pass"))
	require.Equal(t, &Outline{Layout: "a.star", Error: "the layout reads memory, which only a process or a core has", NeedsProcess: true},
		outline("def frames(site): return frame('m', read(8))"))
	require.Equal(t, &Outline{Layout: "a.star", Error: "a.star:1:30: record 3 of @f: fail: no"}, outline("def frames(site): return fail('no')"))
	differs := outline("def info(m, p): return {'stack': 2}\ndef frames(site):\n  f = frame(1, 2)\n  f.local(0, site.operands[0])\n  return f")
	require.Empty(t, differs.Error)
	require.Equal(t, []string{`0 on the operand stack, but in info "stack" is 2`}, differs.Frames[0].Notes)
	long := outline("def frames(site):\n  f, v = frame('m', 1), site.operands[0]\n  for _ in range(200): v = v.pointee('u64', at = 1)\n  f.local(0, v)\n  return f")
	require.Empty(t, long.Error)
	require.Len(t, long.Frames[0].Locals[0].From, maxOrigin+len("..."))
}
