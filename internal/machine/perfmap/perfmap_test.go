package perfmap

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestText uses lines of START SIZE NAME as in jit-interface.txt, lines as V8 and numba write them, and malformed lines.
func TestText(t *testing.T) {
	for _, c := range []struct {
		text string
		at   machine.Addr
		want string // name+offset of size, or ""
	}{
		{"400000 10 main\n", 0x400000, "main+0x0 of 0x10"},
		{"400000 10 main\n", 0x40000f, "main+0xf of 0x10"},
		{"400000 10 main\n", 0x400010, ""},
		{"400000 10 main\n", 0x3fffff, ""},
		{"7f95b40061c0 30c JS:*hotInner /tmp/nm/spin.js:1:18\n", 0x7f95b4006200, "JS:*hotInner /tmp/nm/spin.js:1:18+0x40 of 0x30c"},
		{"0x400000 0x10 zig\n", 0x400008, "zig+0x8 of 0x10"},
		{"400000 10 windows\r\n", 0x400008, "windows+0x8 of 0x10"},
		{"400000 10 _ZN1aIiE1fEv\n", 0x400008, "_ZN1aIiE1fEv+0x8 of 0x10"},
		{"  400000 10  indented\n", 0x400008, "indented+0x8 of 0x10"},
		{"# a comment\n400000 10 f\n\n", 0x400000, "f+0x0 of 0x10"},
		{"400000 10\n400000 f\n400000 10 \nx 10 f\n400000 y f\n-1 10 f\n", 0x400000, ""},
		{"400000 10 half", 0x400000, ""}, // an incomplete line
		{"400000 0 empty\n", 0x400000, ""},
		{"ffffffffffffff00 100 last\n", math.MaxUint64, ""}, // its end exceeds the address space
		{"ffffffffffffff00 ff last\n", math.MaxUint64 - 1, "last+0xfe of 0xff"},
		{"ffffffffffffff00 200 wrapped\n", 0x10, ""},
		{"10000000000000000 10 f\n400000 10000000000000000 g\n", 0x400000, ""}, // more than 64 bits
		// A later function removes all functions that it overlaps.
		{"400000 10 old\n400000 10 new\n", 0x400008, "new+0x8 of 0x10"},
		{"400000 10 old\n400008 10 new\n", 0x400009, "new+0x1 of 0x10"},
		{"400000 10 old\n400008 10 new\n", 0x400004, ""},
		{"400000 20 old\n400008 8 new\n", 0x400018, ""},
		{"400008 8 old\n400000 20 new\n", 0x400008, "new+0x8 of 0x20"},
		{"400000 10 a\n400010 10 b\n400020 10 c\n", 0x400010, "b+0x0 of 0x10"},
		{"400000 20 a\n400010 20 b\n400020 20 c\n", 0x400018, ""}, // b removed a, and c removed b
		{"400000 20 a\n400010 20 b\n400020 20 c\n", 0x400008, ""},
		{"400000 10 a\n400000 0 nothing\n", 0x400000, "a+0x0 of 0x10"},
	} {
		m := New(Text)
		require.NoError(t, m.Read(strings.NewReader(c.text), int64(len(c.text))))
		got := ""
		if f, ok := m.At(c.at); ok {
			got = fmt.Sprintf("%s+%#x of %#x", f.Name, uint64(c.at-f.Start), f.Size)
		}
		require.Equal(t, c.want, got, "%q at %v", c.text, c.at)
	}
}

// TestLaterWins compares the sweep with a direct check of each function: it exists if no later function overlaps it.
func TestLaterWins(t *testing.T) {
	random := rand.New(rand.NewPCG(15, 2))
	for range 2000 {
		m := New(Text)
		for i := range 1 + random.IntN(40) {
			require.NoError(t, m.add(Function{Name: fmt.Sprint(i), Start: machine.Addr(random.IntN(200)), Size: uint64(1 + random.IntN(1+random.IntN(60)))}))
		}
		m.fresh = false
		for at := range machine.Addr(280) {
			want := ""
			for i, f := range m.all {
				over := false
				for _, later := range m.all[i+1:] {
					over = over || later.Start < f.Start+machine.Addr(f.Size) && f.Start < later.Start+machine.Addr(later.Size)
				}
				if !over && f.Start <= at && at < f.Start+machine.Addr(f.Size) {
					want = f.Name
				}
			}
			got, _ := m.At(at)
			require.Equal(t, want, got.Name, "%v of %v", at, m.all)
		}
	}
}

// dump writes a jitdump.
type dump struct {
	order binary.AppendByteOrder
	b     []byte
}

func newDump(order binary.AppendByteOrder) *dump {
	d := &dump{order: order}
	return d.words(0x4A695444, 1, 40, 62, 0xdeadbeef, 4711).longs(0x1122334455667788, 0)
}

func (d *dump) words(all ...uint32) *dump {
	for _, v := range all {
		d.b = d.order.AppendUint32(d.b, v)
	}
	return d
}

func (d *dump) longs(all ...uint64) *dump {
	for _, v := range all {
		d.b = d.order.AppendUint64(d.b, v)
	}
	return d
}

func (d *dump) text(s string) *dump {
	d.b = append(d.b, s...)
	return d
}

func (d *dump) load(index, at uint64, name, code string) *dump {
	return d.words(0, uint32(16+40+len(name)+1+len(code))).longs(5).words(4711, 4712).longs(0, at, uint64(len(code)), index).text(name + "\x00" + code)
}

func (d *dump) move(index, from, to, size uint64) *dump {
	return d.words(1, 16+48).longs(6).words(4711, 4712).longs(0, from, to, size, index)
}

// TestJitdump builds records field by field as the specification defines them (sections III to IX), in both byte orders.
func TestJitdump(t *testing.T) {
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		d := newDump(order).
			words(4, 16+24+20).longs(5, 20, 20, 0).text("unwinding data......"). // JIT_CODE_UNWINDING_INFO
			words(2, 16+16+16+4).longs(5, 0x1000, 1, 0x1000).words(7, 0).text("a.c\x00").
			load(1, 0x1000, "alpha", "0123456789abcdef").
			load(2, 0x2000, "a name (of C++) <int>", "01234567").
			load(3, 0x3000, "empty", "").
			load(4, 0x4000, "moved", "0123").
			move(4, 0x4000, 0x5000, 4).
			load(5, 0x6000, "replaced", "0123").
			move(99, 0x9000, 0x6002, 4). // an unknown function
			words(77, 20).longs(5).text("????").
			words(3, 16).longs(9) // JIT_CODE_CLOSE
		m := New(Jitdump)
		require.NoError(t, m.Read(strings.NewReader(string(d.b)), int64(len(d.b))))
		h, ok := m.Header()
		require.True(t, ok)
		require.Equal(t, []uint32{62, 4711}, []uint32{h.Machine, h.PID})
		for at, want := range map[machine.Addr]string{
			0x0fff: "", 0x1000: "alpha", 0x100f: "alpha", 0x1010: "", 0x2004: "a name (of C++) <int>", 0x3000: "",
			0x4000: "", 0x5000: "moved", 0x5003: "moved", 0x5004: "", 0x6000: "", 0x6002: "",
		} {
			f, ok := m.At(at)
			require.Equal(t, want, f.Name, "%v", at)
			require.Equal(t, want != "", ok)
		}
		f, _ := m.At(0x2000)
		require.Equal(t, "01234567", string(d.b[f.Code:f.Code+int64(f.Size)]))
		require.Equal(t, 3, m.Len())
	}
}

// TestGrows requires that reading a growing file in pieces gives the same result as reading it at once.
func TestGrows(t *testing.T) {
	d := newDump(binary.LittleEndian).load(1, 0x1000, "alpha", "0123456789abcdef").load(2, 0x2000, "beta", "01").move(2, 0x2000, 0x1008, 2)
	for format, text := range map[Format]string{Jitdump: string(d.b), Text: "1000 10 alpha\n2000 2 beta\n1008 2 beta\n"} {
		for cut := range len(text) {
			m := New(format)
			require.NoError(t, m.Read(strings.NewReader(text[:cut]), int64(cut)))
			if cut < len(text)-1 {
				f, _ := m.At(0x1008)
				require.NotEqual(t, "beta", f.Name)
			}
			require.NoError(t, m.Read(strings.NewReader(text), int64(len(text))))
			f, ok := m.At(0x1008)
			require.True(t, ok)
			require.Equal(t, "beta", f.Name)
			_, ok = m.At(0x1000)
			require.False(t, ok, "it was overlapped")
		}
	}
}

// TestBroken requires that a file that contradicts its format has no functions, because later records may have replaced them.
func TestBroken(t *testing.T) {
	good := newDump(binary.LittleEndian).load(1, 0x1000, "alpha", "0123456789abcdef")
	after := func(f func(*dump) *dump) string {
		d := *good
		d.b = append([]byte(nil), good.b...)
		return string(f(&d).b)
	}
	for want, text := range map[string]string{
		"at 0x0: not a jitdump: it does not begin with the magic number": strings.Repeat("x", 100),
		"at 0x4: format version 2; expected 1":                           strings.Replace(string(good.b), "\x01", "\x02", 1),
		"at 0x8: a header of 39 bytes; expected at least 40":             strings.Replace(string(good.b), "\x28", "\x27", 1),
		"at 0x76: a record of 15 bytes":                                  after(func(d *dump) *dump { return d.words(3, 15).longs(0) }),
		"at 0x76: a JIT_CODE_LOAD record of 56 bytes":                    after(func(d *dump) *dump { return d.words(0, 56).longs(0).text(strings.Repeat("x", 40)) }),
		"at 0x76: a JIT_CODE_MOVE record of 63 bytes":                    after(func(d *dump) *dump { return d.words(1, 63).longs(0).text(strings.Repeat("x", 47)) }),
		"at 0xae: a name without an end":                                 after(func(d *dump) *dump { return d.words(0, 60).longs(0).text(strings.Repeat("x", 44)) }),
	} {
		m := New(Jitdump)
		err := m.Read(strings.NewReader(text), int64(len(text)))
		require.ErrorContains(t, err, want)
		_, ok := m.At(0x1000)
		require.False(t, ok)
		require.Equal(t, err, m.Read(strings.NewReader(text), int64(len(text))), "and it stays so")
	}
	m := New(Text)
	require.ErrorIs(t, m.Read(strings.NewReader(""), maxText+1), ErrTooLarge)
	require.ErrorContains(t, New(Text).Read(strings.NewReader("1 1 f\n"), 10), "at 0x6: EOF")
}

// FuzzRead requires that any file is read within the limits, and in pieces with the same result as at once.
func FuzzRead(f *testing.F) {
	f.Add(false, uint16(9), []byte("1000 10 alpha\n2000 2 beta\n1008 2 beta\n"))
	for _, order := range []binary.AppendByteOrder{binary.LittleEndian, binary.BigEndian} {
		f.Add(true, uint16(60), newDump(order).load(1, 0x1000, "alpha", "0123456789abcdef").move(1, 0x1000, 0x1008, 2).words(3, 16).longs(0).b)
	}
	f.Fuzz(func(t *testing.T, binary bool, cut uint16, data []byte) {
		format := Text
		if binary {
			format = Jitdump
		}
		whole, parts := New(format), New(format)
		text := string(data)
		err := whole.Read(strings.NewReader(text), int64(len(text)))
		_ = parts.Read(strings.NewReader(text[:min(int(cut), len(text))]), int64(min(int(cut), len(text))))
		again := parts.Read(strings.NewReader(text), int64(len(text)))
		require.Equal(t, err == nil, again == nil, "%v %v", err, again)
		if err != nil || again != nil {
			return
		}
		require.LessOrEqual(t, len(whole.all), len(text)/4)
		require.Equal(t, whole.Len(), parts.Len())
		for _, g := range whole.all {
			one, ok := whole.At(g.Start)
			other, same := parts.At(g.Start)
			require.Equal(t, one, other)
			require.Equal(t, ok, same)
		}
	})
}
