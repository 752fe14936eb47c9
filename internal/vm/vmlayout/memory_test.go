package vmlayout

import (
	"bufio"
	"encoding/binary"
	"errors"
	"io"
	"math"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// immutable returns a target of memory and symbols.
func immutable(m memory, symbols map[string]uint64) *Target {
	return &Target{Memory: m, Order: binary.LittleEndian, Symbol: func(name string) (machine.Addr, bool) {
		at, ok := symbols[name]
		return machine.Addr(at), ok
	}}
}

const sideTable = `
EXIT = struct("u32 id, u8 count, u16 position, u8 kinds[3]")
def frames(site):
    for n in range(read(address_of("exits"), "u32")):
        e = EXIT.at(address_of("exits") + 4, n)
        if e.id == site.id:
            f = frame(read_string(address_of("name")), e.position)
            for n, v in enumerate(site.operands):
                if e.kinds[n]: f.local(n, v)
                else: skip(v, "dead")
            return f
`

// TestSideTable requires that frames(site) reads a table of C structs in memory, and that its result stays valid until that memory changes.
func TestSideTable(t *testing.T) {
	table := func(position string) string {
		return "\x02\x00\x00\x00" + "\x05\x00\x00\x00\x02\xcc" + position + "\x01\x00\x01\xcc" + "\x09\x00\x00\x00\x02\xcc\x22\x01\x00\x01\x01\xcc"
	}
	m := memory{0x1000: table("\x11\x00"), 0x2000: "Foo.bar\x00" + strings.Repeat(".", 32)}
	symbols := map[string]uint64{"exits": 0x1000, "name": 0x2000}
	at := immutable(m, symbols)
	l, err := Parse("a.star", []byte(sideTable))
	require.NoError(t, err)
	site := &Site{Function: "f", Record: 9, Operands: []Operand{value("i32", "%a"), value("i32", "%b")}, Target: at}
	r := First([]*Layout{l}, site)
	require.NoError(t, r.Err)
	require.Equal(t, uint64(0x122), r.Shape.Frames[0].Position.Const.Bits)
	require.Len(t, r.Shape.Frames[0].Locals, 1)
	require.EqualValues(t, 1, r.Shape.Frames[0].Locals[0].At)
	require.Equal(t, "Foo.bar", r.Shape.Frames[0].Method.Const.Text)
	require.True(t, r.Holds(at))
	m[0x1000] = table("\x12\x00")
	require.False(t, r.Holds(at), "the memory has changed")
	m[0x1000] = table("\x11\x00")
	require.True(t, r.Holds(at))
	delete(m, 0x1000)
	require.False(t, r.Holds(at), "the memory is unmapped")

	r = First([]*Layout{l}, site)
	require.EqualError(t, r.Err, "a.star:4:24: record 9 of @f: read: 4 bytes at 0x1000: not mapped")
	require.True(t, r.Unread())
	require.True(t, r.Holds(at), "the memory is still unmapped")
	m[0x1000] = table("\x11\x00")
	require.False(t, r.Holds(at), "the memory is mapped now")

	delete(symbols, "exits")
	r = First([]*Layout{l}, site)
	require.EqualError(t, r.Err, "a.star:4:35: record 9 of @f: address_of: the target has no symbol exits")
	require.True(t, r.Holds(at))
	symbols["exits"] = 0x1000
	require.False(t, r.Holds(at), "the symbol is defined now")

	r = First([]*Layout{l}, &Site{Function: "f", Record: 9})
	var wrong *Error
	require.ErrorAs(t, r.Err, &wrong)
	require.True(t, wrong.NeedsTarget)
	require.False(t, r.Unread())
}

// TestStreams decodes numbers of a stream, and requires an error for each number that does not fit or that is cut off.
func TestStreams(t *testing.T) {
	for _, c := range []struct {
		bytes, expression string
		want              any // a number, or an error
	}{
		{"\x00", "s.uleb()", 0},
		{"\x7f", "s.uleb()", 127},
		{"\x80\x01", "s.uleb()", 128},
		{"\xe5\x8e\x26", "s.uleb()", 624485},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "s.uleb()", int64(math.MaxInt64)},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x01", "s.uleb() - (1 << 63)", int64(math.MaxInt64)},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x02", "s.uleb()", "uleb: the number that ends at byte 10 of the stream has over 64 bits"},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "s.uleb()", "uleb: the number that ends at byte 11 of the stream has over 64 bits"},
		{"\x80", "s.uleb()", "uleb: the stream at 0x1000 ends after 1 bytes; expected 1 more after byte 1"},
		{"\x7f", "s.sleb()", -1},
		{"\x3f", "s.sleb()", 63},
		{"\x40", "s.sleb()", -64},
		{"\xc0\x00", "s.sleb()", 64},
		{"\xc0\xbb\x78", "s.sleb()", -123456},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x7f", "s.sleb()", int64(math.MinInt64)},
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x00", "s.sleb()", int64(math.MaxInt64)},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x02", "s.sleb()", "sleb: the number that ends at byte 10 of the stream has over 64 bits"},
		{"\x80\x80\x80\x80\x80\x80\x80\x80\x80\x01", "s.sleb()", "sleb: the number that ends at byte 10 of the stream has over 64 bits"}, // 1 << 63
		{"\xff\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "s.sleb()", -1},
		{"\xfe\xff", "s.next('i16')", -2},
		{"\xfe\xff", "s.next('u16')", 0xfffe},
		{"\xfe", "s.next()", 0xfe},
		{"\xfe", "s.next('u32')", "next: the stream at 0x1000 ends after 1 bytes; expected 4 more after byte 0"},
		{"ab\x05", "len(s.string(2)) + s.next() + s.at", 10},
		{"ab\x05", "s.skip(2) or s.next() + s.left", 5},
		{"ab", "s.skip(3)", "skip: 3 bytes of 2"},
		{"ab", "s.skip(-1)", "skip: -1 bytes of 2"},
		{"ab", "s.string(-1)", "string: the stream at 0x1000 ends after 2 bytes; expected -1 more after byte 0"},
	} {
		l, err := Parse("a.star", []byte("def frames(site):\n  s = stream(0x1000, "+strconv.Itoa(len(c.bytes))+")\n  return frame('m', "+c.expression+")\n"))
		require.NoError(t, err)
		shape, err := l.Frames(&Site{Function: "f", Target: immutable(memory{0x1000: c.bytes}, nil)})
		if text, wrong := c.want.(string); wrong {
			require.ErrorContains(t, err, text, "%q %s", c.bytes, c.expression)
			continue
		}
		require.NoError(t, err, "%q %s", c.bytes, c.expression)
		want := int64(0)
		switch w := c.want.(type) {
		case int:
			want = int64(w)
		case int64:
			want = w
		}
		require.Equal(t, want, int64(shape.Frames[0].Position.Const.Bits), "%q %s", c.bytes, c.expression)
	}
}

// TestStreamAhead requires that a stream without a size reads no memory after the 64 bytes that hold its end, as that memory may be unmapped.
func TestStreamAhead(t *testing.T) {
	l, err := Parse("a.star", []byte("def frames(site):\n  s = stream(0x1039)\n  for _ in range(7): s.uleb()\n  return frame('m', s.at)\n"))
	require.NoError(t, err)
	target := immutable(memory{0x1000: strings.Repeat("\x01", 64)}, nil)
	shape, err := l.Frames(&Site{Target: target})
	require.NoError(t, err)
	require.EqualValues(t, 7, shape.Frames[0].Position.Const.Bits)
}

// TestStructs requires the offsets of C, and an error for malformed members.
func TestStructs(t *testing.T) {
	for _, c := range []struct {
		members string
		packed  bool
		size    int
		offset  map[string]int
	}{
		{"u8 a, u32 b, u8 c", false, 12, map[string]int{"a": 0, "b": 4, "c": 8}},
		{"u8 a; u32 b; u8 c;", true, 6, map[string]int{"a": 0, "b": 1, "c": 5}},
		{"u8 a, ref p, u16 t[3], f64 d, i1 flag", false, 40, map[string]int{"p": 8, "t": 16, "d": 24, "flag": 32}},
	} {
		s, err := structOf(c.members, c.packed)
		require.NoError(t, err)
		require.Equal(t, c.size, s.size, c.members)
		for _, m := range s.members {
			if at, there := c.offset[m.name]; there {
				require.Equal(t, at, m.at, m.name)
			}
		}
	}
	for members, says := range map[string]string{
		"u8":              `"u8": expected a type and a name, such as u32 count`,
		"u7 a":            `unknown type "u7"`,
		"u8 a, u16 a":     "two members a",
		"u8 a[0]":         "a[0]: expected an array of 1 to 1024 elements",
		"u8 a[1025]":      "a[1025]: expected an array of 1 to 1024 elements",
		"":                "a struct of 0 bytes",
		"u8 a[x]":         "a[x]: expected an array of 1 to 1024 elements",
		"u64 a, u8 b [2]": `"u8 b [2]": expected a type and a name, such as u32 count`,
	} {
		_, err := structOf(members, false)
		require.ErrorContains(t, err, says, members)
	}
}

// TestReadBounds requires that the number and the size of a layout's reads are bounded.
func TestReadBounds(t *testing.T) {
	big := memory{0x100000: strings.Repeat("x", 2<<20)}
	for text, says := range map[string]string{
		"for n in range(100): struct('u8 a[1024], u8 b[1024]').at(0x100000, n * 8)\n  for n in range(100000): read(0x100000)": "a function of the layout reads over 1024 KiB, or over 16384 times",
		"for n in range(20): stream(0x100000 + n * 65536, 65536).string(1024)\n  for n in range(20): stream(0x100000, 70000)": "stream: a stream of 70000 bytes; the limit is 65536",
		"read_string(0x100000)":       "no string ends within 1024 bytes of 0x100000",
		"read_string(0x100000, 2000)": "a string of 2000 bytes; the limit is 1024",
	} {
		l, err := Parse("a.star", []byte("def frames(site):\n  "+text+"\n  return frame('m', 1)\n"))
		require.NoError(t, err)
		r := First([]*Layout{l}, &Site{Target: immutable(big, nil)})
		require.ErrorContains(t, r.Err, says, text)
	}
}

// TestReadElsewhere requires that a layout in its own process reads the same memory.
func TestReadElsewhere(t *testing.T) {
	m := memory{0x1000: "\x01\x00\x00\x00\x09\x00\x00\x00\x02\xcc\x22\x01\x00\x01\x01\xcc", 0x2000: "Foo.bar\x00" + strings.Repeat(".", 32)}
	at := immutable(m, map[string]uint64{"exits": 0x1000, "name": 0x2000})
	l := elsewhere(t, sideTable)
	site := &Site{Function: "f", Record: 9, Operands: []Operand{value("i32", "%a"), value("i32", "%b")}, Target: at}
	r := First([]*Layout{l}, site)
	require.NoError(t, r.Err)
	require.Equal(t, uint64(0x122), r.Shape.Frames[0].Position.Const.Bits)
	require.True(t, r.Holds(at))
	m[0x1000] = "\x00" + m[0x1000][1:]
	require.False(t, r.Holds(at))
	require.Nil(t, First([]*Layout{l}, site).Shape)
	delete(m, 0x1000)
	require.ErrorContains(t, First([]*Layout{l}, site).Err, "read: 4 bytes at 0x1000: not mapped")
	site.Target = nil
	var wrong *Error
	require.ErrorAs(t, First([]*Layout{l}, site).Err, &wrong)
	require.True(t, wrong.NeedsTarget)
}

// TestSymbolsElsewhere requires an error, and not the default, for a symbol that a layout in another process is not allowed to look up.
func TestSymbolsElsewhere(t *testing.T) {
	at := immutable(memory{}, nil)
	for text, says := range map[string]string{
		"address_of('x' * 2000, default = 5)":                     "address_of: a symbol of 2000 bytes; the limit is 1024",
		"[address_of('x', default = k) for k in range(20000)][0]": "address_of: over 16384 reads and symbols",
	} {
		l := elsewhere(t, "def frames(site):\n  return frame('m', "+text+")\n")
		_, err := l.Frames(&Site{Function: "f", Target: at})
		require.ErrorContains(t, err, says)
	}
	l := elsewhere(t, "def frames(site):\n  return frame('m', address_of('x', default = 5))\n")
	shape, err := l.Frames(&Site{Function: "f", Target: at})
	require.NoError(t, err)
	require.EqualValues(t, 5, shape.Frames[0].Position.Const.Bits)
}

// TestGroupRestarts requires that a layout whose process has ended is started again.
func TestGroupRestarts(t *testing.T) {
	l := elsewhere(t, "def frames(site):\n  return frame('m', 1)\n")
	l.child.fail = errors.New("its process has ended")
	g := &Group{Command: []string{"/nonexistent/program"}, layouts: map[string]*Layout{"text": l}}
	_, err := g.Start("again", []byte("text"))
	require.ErrorContains(t, err, "/nonexistent/program")
	l.child.fail = nil
	known, err := g.Start("again", []byte("text"))
	require.NoError(t, err)
	require.Same(t, l, known)
}

// elsewhere returns a layout that another goroutine serves, as its own process does.
func elsewhere(t *testing.T, text string) *Layout {
	requests, in := io.Pipe()
	out, answers := io.Pipe()
	go func() { _ = serve(requests, answers) }()
	c := &Child{in: in, out: bufio.NewReaderSize(out, 64<<10)}
	t.Cleanup(func() { _ = in.Close() })
	l, err := c.start("a.star", []byte(text))
	require.NoError(t, err)
	return l
}
