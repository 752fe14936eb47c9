package stackmap

import (
	"encoding/binary"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// What a parse may allocate: a small multiple of what it was given, and an error.
const (
	perByte = 64
	perCall = 2048
)

// parse parses hostile bytes: they are maps, or an error that lies within them.
func parse(t testing.TB, data []byte) {
	maps, err := ParseAll(data, binary.LittleEndian)
	if err != nil {
		var e *Error
		if !errors.As(err, &e) {
			require.ErrorAs(t, err, &e)
		}
		if e.Offset < 0 || e.Offset > int64(len(data)) {
			require.Fail(t, "an error outside of the section", "%v of %#x", err, len(data))
		}
	}
	for _, m := range maps {
		for i := range m.Functions {
			for j := range m.Functions[i].Records {
				rec := &m.Functions[i].Records[j]
				m.AsStatepoint(rec)
				for _, l := range rec.Locations {
					_, _ = m.Constant(l)
				}
			}
		}
	}
	x := NewIndex(maps...)
	x.Nearest(0x1234)
	x.At(1<<64 - 1)
}

// seeds are sections that llc wrote, and the one written by hand.
func seeds(t testing.TB) [][]byte {
	return [][]byte{
		sample(binary.LittleEndian),
		section(t, object(t, 19, "testdata/shapes.ll")),
		section(t, object(t, 14, "jit_sp.ll")),
		section(t, object(t, 22, "jit_pp.ll")),
		section(t, object(t, 16, "dup.ll")),
	}
}

func TestEveryTruncation(t *testing.T) {
	for _, seed := range seeds(t) {
		for n := range seed {
			data := seed[:n:n]
			maps, err := ParseAll(data, binary.LittleEndian)
			if n > 0 {
				require.ErrorIs(t, err, ErrTruncated, "%d of %d bytes", n, len(seed))
			}
			require.Empty(t, maps)
			require.LessOrEqual(t, livetest.Allocated(func() { parse(t, data) }), uint64(perByte*n+perCall))
		}
	}
}

func TestEveryByteChanged(t *testing.T) {
	for _, seed := range seeds(t) {
		data := append([]byte(nil), seed...)
		for at := range data {
			spent := livetest.Allocated(func() {
				for v := range 256 {
					data[at] = byte(v)
					parse(t, data)
				}
			})
			data[at] = seed[at]
			require.LessOrEqual(t, spent, uint64(256*(perByte*len(data)+perCall)))
		}
	}
}

// Counts that are as large as the bytes behind them allow, and no larger.
func TestAllocationIsBounded(t *testing.T) {
	const size = 1 << 20
	for _, c := range []struct {
		name string
		fill func(w *writer)
	}{
		{"functions", func(w *writer) { w.u32((size-16)/24, 0, 0) }},
		{"constants", func(w *writer) { w.u32(0, (size-16)/8, 0) }},
		{"records", func(w *writer) { w.u32(1, 0, (size-16)/20).u64(0, 0, (size-16)/20) }},
		{"all", func(w *writer) { w.u32((size-16)/24, (size-16)/8, (size-16)/20) }},
		{"records of one function", func(w *writer) { w.u32(1, 0, (size-40)/24).u64(0, 0, (size-40)/24) }},
		{"locations", func(w *writer) { w.u32(1, 0, 1).u64(0, 0, 1).u64(0).u32(0).u16(0, 65535) }},
	} {
		w := &writer{order: binary.LittleEndian}
		c.fill(w.u8(3, 0, 0, 0))
		data := append(w.b, make([]byte, size-len(w.b))...)
		spent := livetest.Allocated(func() { parse(t, data) })
		require.LessOrEqual(t, spent, uint64(perByte*size), c.name)
	}
}

func FuzzParse(f *testing.F) {
	for _, seed := range seeds(f) {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		parse(t, data)
		m, n, err := Parse(data, binary.BigEndian)
		require.Equal(t, err == nil, m != nil)
		require.LessOrEqual(t, n, len(data))
	})
}
