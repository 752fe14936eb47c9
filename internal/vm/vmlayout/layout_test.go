package vmlayout

import (
	"encoding/binary"
	"encoding/json"
	"math/big"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
)

// constant returns an operand that is a constant of a type.
func constant(t string, n int64) Operand {
	o := Operand{Constant: big.NewInt(n)}
	o.Type = plain[t]
	return o
}

// value returns an operand that is a value of a type.
func value(t, name string) Operand {
	if t == "" {
		return Operand{Name: name}
	}
	return Operand{Name: name, Type: plain[t]}
}

// tag returns a tag of the convention simple.
func tag(what, how, index int64) Operand { return constant("i64", what<<32|how<<24|index) }

// memory is a target's memory: bytes at addresses.
type memory map[uint64]string

func (m memory) ReadMemory(buf []byte, addr machine.Addr) error {
	for at, text := range m {
		if uint64(addr) >= at && uint64(addr)+uint64(len(buf)) <= at+uint64(len(text)) {
			copy(buf, text[uint64(addr)-at:])
			return nil
		}
	}
	return &machine.MemoryError{Addr: addr, Len: len(buf), Why: "not mapped"}
}

// slots returns the slots of operands; bits[k] is the value of operand k, and a constant has its own.
func slots(operands []Operand, bits map[int]uint64) (list []frame.Slot) {
	for k, o := range operands {
		s := frame.Slot{Index: k, Name: o.Name, Type: o.Type, Status: frame.OK}
		v, there := bits[k]
		if o.Constant != nil {
			v, there = uint64(o.Constant.Int64()), true
		}
		size := 8
		if o.Type.Bits != 0 {
			size = o.Type.Size()
		}
		raw := binary.LittleEndian.AppendUint64(nil, v)[:size]
		if !there {
			s.Status, s.Reason = frame.Missing, "not recorded"
		} else {
			s.Bytes, s.Hex, s.Value = raw, frame.HexBytes(raw, binary.LittleEndian), o.Type.Format(raw, binary.LittleEndian)
		}
		list = append(list, s)
	}
	return list
}

const names64 = 0x5000

// TestSimple reads two frames, one inlined into the other. They have an object that refers to itself, a dead slot, a value of each kind and an
// eliminated lock.
func TestSimple(t *testing.T) {
	operands := []Operand{
		tag(1, 0, 2), value("ref", "@main"), constant("i32", 9), // 0: frame main @ 9, in-call
		tag(2, 0, 0), value("i32", "%n"), // 3: local 0
		tag(2, 4, 1), constant("i64", 0), // 5: local 1 is dead
		tag(1, 0, 0), value("ref", "@bar"), constant("i32", 17), // 7: frame bar @ 17, reexecute
		tag(2, 1, 0), value("i64", "%boxed"), // 10: local 0, 3.5
		tag(2, 3, 1), constant("i32", 4), // 12: local 1 is object 4
		tag(3, 2, 0), value("ref", "%r"), // 14: stack 0
		tag(3, 1, 1), value("i64", "%lost"), // 16: stack 1
		tag(4, 3, 1), constant("i32", 4), // 18: a lock of object 4, eliminated
		tag(5, 0, 4), value("ref", "@Point"), constant("i32", 2), // 20: object 4
		tag(6, 1, 8), value("i64", "%x"), // 23: a field, boxed 7
		tag(6, 3, 16), constant("i32", 4), // 25: a field: itself
		tag(7, 0, 1), value("i64", "%fuel"), // 27
	}
	l, err := Read("simple")
	require.NoError(t, err)
	shape, err := l.Frames(&Site{Function: "f", Record: 3, Kind: "deoptimize", Operands: operands})
	require.NoError(t, err)
	vm := shape.Read(&Source{
		Slots: slots(operands, map[int]uint64{1: names64, 4: 0xffff_fffe, 8: names64 + 9, 11: 0x400c_0000_0000_0000 + 1<<48, 15: 0x7f00_1230, 21: names64 + 17, 24: 0xffff<<48 | 7, 28: 1000}),
		Order: binary.LittleEndian, Static: memory{names64: "Foo.main\x00Foo.bar\x00Point\x00" + string(make([]byte, 64))},
	})
	got, err := json.Marshal(vm)
	require.NoError(t, err)
	require.JSONEq(t, `{"layout":"simple","frames":[
	  {"method":"Foo.bar","position":17,"resume":"reexecute",
	   "locals":[{"index":0,"type":"f64","value":"3.5","hex":"0x400d000000000000","status":"ok","slot":11},{"index":1,"object":4}],
	   "stack":[{"index":0,"type":"ref","value":"0x7f001230","hex":"0x7f001230","status":"ok","slot":15},
	            {"index":1,"type":"i64","status":"unavailable","reason":"not recorded","slot":17}],
	   "monitors":[{"owner":{"object":4},"eliminated":true}],
	   "extra":{"fuel":{"type":"i64","value":"1000","hex":"0x3e8","status":"ok","slot":28}}},
	  {"method":"Foo.main","position":9,"resume":"in-call",
	   "locals":[{"index":0,"type":"i32","value":"-2","hex":"0xfffffffe","status":"ok","slot":4},{"index":1,"status":"dead"}]}],
	 "objects":[{"id":4,"class":"Point","fields":[
	   {"at":8,"type":"i32","value":"7","hex":"0xffff000000000007","status":"ok","slot":24},{"at":16,"object":4}]}]}`, string(got))
	require.Equal(t, "stack[1]: unavailable: not recorded", vm.Lacks())
}

// TestErrors requires that the error for a malformed record names the line of the layout, the record and the operand.
func TestErrors(t *testing.T) {
	site := func(operands ...Operand) *Site { return &Site{Function: "f", Record: 3, Operands: operands} }
	x, y := value("i64", "%x"), value("i64", "%y")
	for _, c := range []struct {
		name, text string
		site       *Site
		says       string
	}{
		{"syntax", "def frames(site:\n  pass\n", site(), "a.star:1:17: got ':', want ')'"},
		{"a name that there is not", "def frames(site):\n  return nothing\n", site(), "a.star:2:10: undefined: nothing"},
		{"no frames", "x = 1\n", site(), "a.star: it defines neither frames(site) nor object(addr)"},
		{"a number", "frames = 1\n", site(), "a.star: frames is a int; expected a function"},
		{"nothing returned of use", "def frames(site):\n  return 7\n", site(), "a.star: record 3 of @f: frames(site) returned a int; expected a list of frames, or None"},
		{"an operand is left over", "def frames(site):\n  f = frame('m', 1)\n  f.local(0, site.operands[0])\n  return [f]\n", site(x, y),
			"a.star:1:1: record 3 of @f: operand 1 (i64 %y) is neither used nor skipped: use skip(operand, why) if it is not part of a frame"},
		{"an operand is used twice", "def frames(site):\n  f = frame('m', 1)\n  f.local(0, site.operands[0])\n  f.local(1, site.operands[0])\n  return [f]\n", site(x),
			"a.star:4:10: record 3 of @f: local: operand 0 (i64 %x) is used a second time, first in line 3:10"},
		{"a value for a constant", "def frames(site):\n  return [frame('m', site.operands[0].constant)]\n", site(x), "a.star:2:38: record 3 of @f: operand 0 (i64 %x) is a value; expected a constant"},
		{"too few operands", "def frames(site):\n  r = site.operands.reader()\n  r.next()\n  r.constant('a position')\n", site(x), "a.star:4:13: record 3 of @f: constant: cannot read another operand: there are only 1: a position"},
		{"pairs", "def frames(site):\n  site.operands.pairs()\n", site(x), "a.star:2:22: record 3 of @f: pairs: 1 operands do not form pairs"},
		{"ids twice", "def frames(site):\n  virtual(1)\n  virtual(1)\n  return [frame('m', 1)]\n", site(), "a.star:3:10: record 3 of @f: object 1 is defined a second time, first in line 2:10"},
		{"no such id", "def frames(site):\n  f = frame('m', 1)\n  f.push(object_ref(3))\n  return [f]\n", site(), "a.star:3:9: record 3 of @f: stack[0] of frame 0 is object 3, which is not defined"},
		{"two in a place", "def frames(site):\n  f = frame('m', 1)\n  f.stack(2, dead())\n  f.stack(2, dead())\n  return [f]\n", site(), "a.star:4:10: record 3 of @f: two values for place 2, first in line 3:10"},
		{"two fields in a place", "def frames(site):\n  o = virtual(1)\n  o.field(8, dead())\n  o.field(8, dead())\n  return [frame('m', 1)]\n", site(), "a.star:4:10: record 3 of @f: object 1 has two fields at 8, first in line 3:10"},
		{"a caller that would reexecute", "def frames(site):\n  return [frame('m', 1), frame('n', 2)]\n", site(), `a.star:2:31: record 3 of @f: frame 1 is resumed by "reexecute": all frames but the innermost must be in a call ("in-call")`},
		{"a word for how", "def frames(site):\n  frame('m', 1, resume = 'again')\n", site(), `a.star:2:8: record 3 of @f: frame: resume = "again": expected one of "reexecute", "after", "in-call", "rethrow"`},
		{"an endless loop", "def frames(site):\n  while True:\n    pass\n", site(), "record 3 of @f: it did not end after 2000000 steps"},
		{"a type that there is not", "def frames(site):\n  site.operands[0].as_type('int')\n", site(x), `a.star:2:27: record 3 of @f: as_type: unknown type "int": expected i1, i8, i16, i32, i64, u8, u16, u32, u64, f32, f64 or ref`},
		{"memory where there is none", "def frames(site):\n  read(16)\n", site(), "a.star:2:7: record 3 of @f: read: no target is running, so there is no memory to read"},
		{"its own words", "def frames(site):\n  fail('operand 2 is odd')\n", site(), "a.star:2:7: record 3 of @f: fail: operand 2 is odd"},
		{"frames outside of it", "f = frame('m', 1)\ndef frames(site):\n  return f\n", site(), "a.star:1:10: frame: can be called only in frames(site) and interpreter_frames(native)"},
		{"the same frame twice", "def frames(site):\n  f = frame('m', 1)\n  return [f, f]\n", site(), "a.star: record 3 of @f: frame 1 is listed twice"},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Parse("a.star", []byte(c.text))
			if err == nil {
				_, err = l.Frames(c.site)
			}
			require.Error(t, err)
			if c.name == "an endless loop" {
				require.Contains(t, err.Error(), c.says)
				return
			}
			require.EqualError(t, err, c.says)
			require.IsType(t, &Error{}, err)
		})
	}
}

// TestNoneOfItsOwn requires that a layout may reject a site, and may skip operands that are not part of a frame.
func TestNoneOfItsOwn(t *testing.T) {
	l, err := Parse("a.star", []byte("def frames(site):\n  if site.kind != 'statepoint':\n    return None\n  skip(site.operands, 'for the collector')\n  return frame('m', 5, 'after')\n"))
	require.NoError(t, err)
	shape, err := l.Frames(&Site{Kind: "stackmap", Operands: []Operand{value("i64", "%x")}})
	require.NoError(t, err)
	require.Nil(t, shape)
	shape, err = l.Frames(&Site{Kind: "statepoint", Operands: []Operand{value("i64", "%x")}})
	require.NoError(t, err)
	require.Len(t, shape.Frames, 1)
	require.Equal(t, frame.Completed, shape.Frames[0].Resume)
}

// TestInfoIsHeldAgainst requires that info is compared with the frame at its position: at an exit with the values read from memory, and before the
// program runs if info is in a table of the layout itself.
func TestInfoIsHeldAgainst(t *testing.T) {
	const frames = `
HOW = ["reexecute", "after", "in-call"]
def frames(site):
    r, all = site.operands.reader(), []
    while r.more:
        f = frame(r.next(), r.next(), HOW[r.constant("how")])
        for _ in range(r.constant("operands")): f.push(r.next())
        for _ in range(r.constant("locks")): f.monitor(r.next())
        all.append(f)
    return all[::-1]
`
	const table = frames + `
CODE = {(7, 4): {"stack in-call": 1}, (7, 17): {"stack": 2, "stack after": 1, "locks": 1, "line": 3}}
def info(method, position): return CODE.get((method, position))
`
	const inMemory = frames + `
def info(method, position): return {"stack": read(method + position, "u8")}
`
	n := func(v int64) Operand { return constant("i32", v) }
	a, b, lock := value("i32", "%a"), value("i32", "%b"), value("ref", "%lock")
	method := constant("i64", 7)
	caller := []Operand{method, n(4), n(2), n(1), a, n(0)}
	for _, c := range []struct {
		name   string
		text   string
		inner  []Operand
		before []string // mismatches that are found before the program runs
		exit   string
	}{
		{"as it should be", table, []Operand{method, n(17), n(0), n(2), a, b, n(1), lock}, nil, ""},
		{"an operand left out", table, []Operand{method, n(17), n(0), n(1), a, n(1), lock}, []string{`frame 0, at position 17: 1 on the operand stack, but in info "stack" is 2`}, `1 on the operand stack, but in info "stack" is 2`},
		{"before for behind", table, []Operand{method, n(17), n(1), n(2), a, b, n(1), lock}, []string{`frame 0, at position 17: 2 on the operand stack, but in info "stack after" is 1`}, `2 on the operand stack, but in info "stack after" is 1`},
		{"a lock left out", table, []Operand{method, n(17), n(0), n(2), a, b, n(0)}, []string{`frame 0, at position 17: 0 locks, but in info "locks" is 1`}, `0 locks, but in info "locks" is 1`},
		{"a position of which nothing is said", table, []Operand{method, n(18), n(0), n(0), n(0)}, nil, ""},
		{"a method that only the target knows", table, []Operand{value("i64", "%m"), n(17), n(0), n(0), n(0)}, nil, `0 on the operand stack, but in info "stack" is 2; 0 locks, but in info "locks" is 1`},
		{"bytecode in memory", inMemory, []Operand{constant("i64", names64), n(1), n(0), n(1), a, n(0)}, nil, `1 on the operand stack, but in info "stack" is 2`},
	} {
		t.Run(c.name, func(t *testing.T) {
			l, err := Parse("a.star", []byte(c.text))
			require.NoError(t, err)
			operands := append(append([]Operand{}, caller...), c.inner...)
			if c.text == inMemory {
				operands = c.inner
			}
			site := &Site{Kind: "statepoint", Operands: operands}
			shape, err := l.Frames(site)
			require.NoError(t, err)
			require.Equal(t, c.before, texts(shape.Misfits(site)))
			bits := map[int]uint64{}
			for k, o := range operands {
				if o.Constant == nil {
					bits[k] = 7
				}
			}
			vm := shape.Read(&Source{Slots: slots(operands, bits), Static: memory{names64: "\x01\x02"}, Order: binary.LittleEndian})
			require.Equal(t, c.exit, vm.Frames[0].Reason)
			require.Equal(t, c.exit, vm.Frames[0].Mismatch)
			if c.exit != "" {
				require.Contains(t, vm.Mismatches(), " has "+c.exit)
			}
			if len(vm.Frames) > 1 {
				require.Empty(t, vm.Frames[1].Reason)
			}
			require.Equal(t, c.exit, vm.Lacks())
		})
	}
}

// TestExtend requires that an integer of the record is widened as the layout requests, and that no other value is widened.
func TestExtend(t *testing.T) {
	const text = `
def frames(site):
    f = frame("m", 1)
    for n, (o, how) in enumerate(zip(site.operands, ["sign", "zero", "sign", "sign", "zero", "sign"])):
        f.local(n, o.as_type("i64", extend = how))
    return f
`
	l, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	odd := Operand{Name: "%odd", Type: frame.Type{Kind: frame.Int, Bits: 7, Source: "i7"}}
	operands := []Operand{value("i32", "%a"), value("i32", "%b"), value("i64", "%c"), value("f64", "%d"), value("", "%e"), odd}
	site := &Site{Operands: operands}
	shape, err := l.Frames(site)
	require.NoError(t, err)
	require.Equal(t, []string{"local[3] of frame 0, operand 3 (%d): it is f64, but the layout widens it to i64: only integers are widened"}, texts(shape.Misfits(site)))
	read := slots(operands, map[int]uint64{0: 0xffff_fffe, 1: 0xffff_fffe, 2: 7, 3: 1, 4: 1, 5: 0xc1}) // bit 7 is above the i7
	var got []string
	for _, v := range shape.Read(&Source{Slots: read, Order: binary.LittleEndian}).Frames[0].Locals {
		got = append(got, v.Type+" "+v.Value+v.Reason)
	}
	require.Equal(t, []string{"i64 -2", "i64 4294967294", "i64 7", "i64 it is f64, but the layout widens it to i64: only integers are widened",
		"i64 the layout widens it to i64, and no module gives its type", "i64 -63"}, got)

	from := &Source{Slots: read, Order: binary.LittleEndian}
	changes, err := shape.Encode(from, "local[0]", Typed{Type: "i64", Bits: 0xffff_ffff_ffff_fff0})
	require.NoError(t, err)
	require.Len(t, changes, 1)
	require.Equal(t, 0, changes[0].Operand)
	require.Equal(t, uint32(0xffff_fff0), uint32(changes[0].Bits.Uint64()))
	for _, name := range []string{"local[0]", "local[1]"} {
		_, err = shape.Encode(from, name, Typed{Type: "i64", Bits: 1 << 32})
		require.ErrorContains(t, err, "is i32, which cannot represent it")
	}
	for as, says := range map[string]string{
		`"i64", extend = "signed"`: `as_type: extend = "signed": expected "sign" or "zero"`,
		`"f64", extend = "sign"`:   `as_type: extend = "sign": only integers are widened, and "f64" is not an integer`,
	} {
		l, err := Parse("a.star", []byte("def frames(site):\n  site.operands[0].as_type("+as+")\n"))
		require.NoError(t, err)
		_, err = l.Frames(site)
		require.ErrorContains(t, err, says)
	}
	narrow, err := Parse("a.star", []byte("def frames(site):\n  f = frame('m', 1)\n  f.local(0, site.operands[0].as_type('i16', extend = 'zero'))\n  return f\n"))
	require.NoError(t, err)
	one := &Site{Operands: operands[:1]}
	shape, err = narrow.Frames(one)
	require.NoError(t, err)
	require.Equal(t, []string{"local[0] of frame 0, operand 0 (%a): it is i32, but the layout widens it to i16, which is narrower"}, texts(shape.Misfits(one)))
}

// TestDecoration requires that method 0 reaches method_name, and that an error in info, which only decorates a frame, does not make the frame
// incomplete. If method_name fails for 0, the number must be the name: in many encodings 0 does not denote a method.
func TestDecoration(t *testing.T) {
	const frames = "def frames(site): return frame(site.operands[0], 3)\n"
	read := func(text string, method int64) *frame.VM {
		l, err := Parse("a.star", []byte(text))
		require.NoError(t, err)
		operands := []Operand{constant("i64", method)}
		shape, err := l.Frames(&Site{Kind: "statepoint", Operands: operands})
		require.NoError(t, err)
		return shape.Read(&Source{Slots: slots(operands, nil), Static: memory{}, Order: binary.LittleEndian})
	}
	for _, method := range []int64{0, 1} {
		vm := read(frames+"NAMES = [\"main\", \"other\"]\ndef method_name(m): return NAMES[m]\n", method)
		require.Equal(t, []string{"main", "other"}[method], vm.Frames[0].Method)
		require.Empty(t, vm.Lacks())
	}
	require.Equal(t, "0x0", read(frames+"def method_name(m): return read_string(m)\n", 0).Frames[0].Method)
	vm := read(frames+"def info(m, p): return {}[p]\n", 1)
	require.Empty(t, vm.Lacks())
	require.Equal(t, []string{"info of its position: a.star:2:26: key 3 not in dict"}, vm.Frames[0].Notes)
	require.Empty(t, vm.Mismatches())
}

// TestNamesAreThoseOfTheExit requires that a name is read again if its memory may have changed, and is not read again from memory that cannot change.
func TestNamesAreThoseOfTheExit(t *testing.T) {
	l, err := Parse("a.star", []byte("def frames(site): return frame(site.operands[0], 3)\ndef method_name(m): return read_string(read(m))\ndef info(m, p): return {\"line\": str(read(read(m), \"u8\"))}\n"))
	require.NoError(t, err)
	operands := []Operand{constant("i64", 0x1000)}
	shape, err := l.Frames(&Site{Kind: "statepoint", Operands: operands})
	require.NoError(t, err)
	reads := 0
	changing := &counted{memory{0x1000: "\x00\x20\x00\x00\x00\x00\x00\x00", 0x2000: "first" + strings.Repeat("\x00", 32), 0x3000: "other" + strings.Repeat("\x00", 32)}, &reads}
	from := &Source{Slots: slots(operands, nil), Static: changing, Order: binary.LittleEndian}
	name := func() (string, string) {
		from.Names = &NamesRead{}
		f := shape.Read(from).Frames[0]
		return f.Method, f.Info["line"]
	}
	for range 2 {
		method, line := name()
		require.Equal(t, []string{"first", "102"}, []string{method, line})
		require.True(t, from.Names.Varying)
	}
	changing.memory[0x1000] = "\x00\x30\x00\x00\x00\x00\x00\x00"
	method, line := name()
	require.Equal(t, []string{"other", "111"}, []string{method, line})

	from = &Source{Slots: slots(operands, nil), Static: changing, Order: binary.LittleEndian, Fixed: func(machine.Addr, int) bool { return true }}
	name()
	require.False(t, from.Names.Varying)
	reads = 0
	method, _ = name()
	require.Equal(t, "other", method)
	require.Zero(t, reads)
	from.Forget()
	clear(changing.memory)
	method, _ = name()
	require.Equal(t, "0x1000", method)
	require.True(t, from.Names.Failed)
}

// counted is memory that counts reads.
type counted struct {
	memory
	reads *int
}

func (c *counted) ReadMemory(p []byte, addr machine.Addr) error {
	*c.reads++
	return c.memory.ReadMemory(p, addr)
}

// texts returns the texts of mismatches.
func texts(list []Misfit) (texts []string) {
	for _, m := range list {
		texts = append(texts, m.Text)
	}
	return texts
}

// TestReasonsKeepAddresses requires that the reasons of values that cannot be read can be written without their addresses, so that equal reasons count as
// one.
func TestReasonsKeepAddresses(t *testing.T) {
	hidden := func(uint64) string { return "0x…" }
	from := &Source{Memory: memory{}, Order: binary.LittleEndian}
	number := Value{Kind: ConstValue, Const: Typed{Type: "u64", Bits: 0x1000}}
	load := Value{Kind: LoadValue, As: "u64", Base: &number}
	base := Value{Kind: LoadValue, As: "u64", Base: &load}
	index := Value{Kind: LoadValue, As: "u64", Base: &number, Index: &load, Scale: 8}
	sum := Value{Kind: ComputedValue, As: "u64", Op: "+", Parts: []Value{load, number}}
	for _, c := range []struct {
		of   *Value
		want string
	}{{&load, "u64 at 0x…: "}, {&base, "its address: u64 at 0x…: "}, {&index, "its address: u64 at 0x…: "}, {&sum, "it is computed: u64 at 0x…: "}} {
		why := from.raw(c.of).why
		require.Equal(t, c.want+"8 bytes at 0x…: not mapped", frame.TextWith(why, hidden))
		require.Contains(t, why.Error(), "u64 at 0x1000: ")
	}
}

// TestCancelled requires that the text of a layout's error is not taken for the reason of a call that was cancelled.
func TestCancelled(t *testing.T) {
	for _, text := range []string{"too much time", "too many steps"} {
		text = "def frames(site):\n  fail('" + text + "')\n"
		here, err := Parse("a.star", []byte(text))
		require.NoError(t, err)
		for _, l := range []*Layout{here, elsewhere(t, text)} {
			_, err := l.Frames(&Site{Function: "f", Record: 3})
			require.ErrorContains(t, err, "a.star:2:7: record 3 of @f: fail: too m")
		}
	}
}

// TestPositionOf requires that two mistakes which the same function of a layout finds have different positions.
func TestPositionOf(t *testing.T) {
	const text = "def bad(m):\n  fail(m)\ndef frames(site):\n  if len(site.operands) == 1:\n    bad('odd')\n  bad('even')\n"
	here, err := Parse("a.star", []byte(text))
	require.NoError(t, err)
	for _, l := range []*Layout{here, elsewhere(t, text)} {
		for operands, want := range map[int]string{1: "2:7 5:8", 2: "2:7 6:6"} {
			_, err := l.Frames(&Site{Function: "f", Record: 3, Operands: make([]Operand, operands)})
			require.ErrorContains(t, err, "a.star:2:7: record ")
			require.Equal(t, want, PositionOf(err))
		}
	}
}
