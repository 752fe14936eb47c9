package stackmap

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// Bounds on the bytes that Parse allocates: perByte for each byte of its input, plus perCall for an error.
const (
	perByte = 64
	perCall = 2048
)

// parse parses hostile bytes. It requires maps, or an error whose offset is within the bytes.
func parse(t testing.TB, data []byte, o Options) *Section {
	s, err := Parse(data, o)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			require.ErrorAs(t, err, &e)
		}
		if e.Offset < 0 || e.Offset > int64(len(data)) {
			require.Fail(t, "an error outside of the section", "%v of %#x", err, len(data))
		}
	}
	return s
}

// use decodes all records of hostile maps, and indexes them. It must not panic.
func use(t testing.TB, maps []*Map) {
	records := 0
	for _, m := range maps {
		for i := range len(m.Functions) + 1 {
			var f *Function
			if i < len(m.Functions) {
				f = &m.Functions[i]
				m.Prologue(i)
			}
			for rec := range m.Records(f) {
				records++
				rec.AsStatepoint()
				for _, l := range rec.Locations {
					_, _ = m.Constant(l)
				}
			}
			for range m.Reserved(f) {
			}
		}
		for i := range m.NumConstants() {
			m.ConstantAt(i)
		}
		records -= m.Len()
	}
	require.Zero(t, records, "Len and Records disagree")
	x := NewIndex(maps...)
	x.Nearest(0x1234)
	x.At(1<<64 - 1)
}

// seed is a section and its layout.
type seed struct {
	name    string
	data    []byte
	dialect Dialect
}

// seeds returns sections that llc wrote, and handwritten little-endian ones.
func seeds(t testing.TB) []seed {
	list := []seed{
		{"shapes.ll", section(t, object(t, 19, "testdata/shapes.ll")), V3},
		{"jit_sp.ll", section(t, object(t, 14, "jit_sp.ll")), V3},
		{"jit_pp.ll", section(t, object(t, 22, "jit_pp.ll")), V3},
		{"dup.ll", section(t, object(t, 16, "dup.ll")), V3},
	}
	for i := range literals {
		l := &literals[i]
		list = append(list, seed{l.name, l.data(binary.LittleEndian), l.dialect})
	}
	return list
}

// readings returns the options with which to parse mutated bytes of a section of layout d.
func readings(d Dialect) []Options {
	return []Options{little, {binary.LittleEndian, d}}
}

func TestEveryTruncation(t *testing.T) {
	for _, seed := range seeds(t) {
		for n := range seed.data {
			data := seed.data[:n:n]
			for _, o := range readings(seed.dialect) {
				s, err := Parse(data, o)
				if n > 0 && (o.Dialect == seed.dialect || seed.dialect == named(data[0]).dialect) {
					require.ErrorIs(t, err, ErrTruncated, "%d of %d bytes of %s", n, len(seed.data), seed.name)
					require.Empty(t, s.Maps)
				}
				require.LessOrEqual(t, livetest.Allocated(func() { parse(t, data, o) }), uint64(perByte*n+perCall))
				use(t, s.Maps)
			}
		}
	}
}

func TestEveryByteChanged(t *testing.T) {
	livetest.Slow(t)
	for _, seed := range seeds(t) {
		data := append([]byte(nil), seed.data...)
		for _, o := range readings(seed.dialect) {
			for at := livetest.First(7); at < len(data); at += livetest.Step(7) {
				maps := make([][]*Map, 256)
				spent := livetest.Allocated(func() {
					for v := range maps {
						data[at] = byte(v)
						maps[v] = parse(t, data, o).Maps
					}
				})
				require.LessOrEqual(t, spent, uint64(256*(perByte*len(data)+perCall)))
				for v := range maps {
					data[at] = byte(v)
					use(t, maps[v])
				}
				data[at] = seed.data[at]
			}
		}
	}
}

// TestAllocationIsBounded bounds the allocations of Parse for sections with the largest possible counts.
func TestAllocationIsBounded(t *testing.T) {
	livetest.Slow(t)
	const size = 1 << 18
	for _, c := range []struct {
		name string
		fill func(w *raw)
	}{
		{"functions", func(w *raw) { w.u32((size-16)/24, 0, 0) }},
		{"constants", func(w *raw) { w.u32(0, (size-16)/8, 0) }},
		{"records", func(w *raw) { w.u32(1, 0, (size-16)/20).u64(0, 0, (size-16)/20) }},
		{"all", func(w *raw) { w.u32((size-16)/24, (size-16)/8, (size-16)/20) }},
		{"records of one function", func(w *raw) { w.u32(1, 0, (size-40)/24).u64(0, 0, (size-40)/24) }},
		{"locations", func(w *raw) { w.u32(1, 0, 1).u64(0, 0, 1).u64(0).u32(0).u16(0, 65535) }},
		{"prologues", func(w *raw) { w.u32(size/30, 0, 0) }},
		{"empty maps", func(w *raw) {
			for w.u32(0, 0, 0); len(w.b) < size; {
				w.u8(3, 0, 0, 0).u32(0, 0, 0)
			}
		}},
		{"empty maps that end in an error", func(w *raw) {
			for w.u32(0, 0, 0); len(w.b) < size-8; {
				w.u8(3, 0, 0, 0).u32(0, 0, 0)
			}
			w.b = append(w.b[:size-8], "no map!!"...)
		}},
		{"empty maps of two layouts", func(w *raw) {
			for w.u32(0, 0, 0); len(w.b) < size; {
				w.u8(1+byte(len(w.b)/16%3), 0, 0, 0).u32(0, 0, 0)
			}
		}},
	} {
		for version := byte(1); version <= lastVersion; version++ {
			w := &raw{order: binary.LittleEndian}
			c.fill(w.u8(version, 0, 0, 0))
			data := append(w.b, make([]byte, max(0, size-len(w.b)))...)
			for _, d := range append(Dialects(), "") {
				spent := livetest.Allocated(func() { parse(t, data, Options{binary.LittleEndian, d}) })
				require.LessOrEqual(t, spent, uint64(perByte*size), "%s, version %d, layout %q", c.name, version, d)
			}
			use(t, parse(t, data, little).Maps)
		}
	}
}
