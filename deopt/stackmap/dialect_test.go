package stackmap

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// kinds returns the layouts of a section's maps.
func kinds(s *Section) []Dialect {
	var list []Dialect
	for _, m := range s.Maps {
		list = append(list, m.Dialect)
	}
	return list
}

// join concatenates sections, as a linker does.
func join(sections ...[]byte) []byte {
	var b []byte
	for _, s := range sections {
		b = append(append(b, make([]byte, align(len(b))-len(b))...), s...)
	}
	return b
}

// TestDialectOfSeveral requires that Parse reads two copies of each handwritten section in the section's own layout, and that no other layout fits.
func TestDialectOfSeveral(t *testing.T) {
	for _, l := range literals {
		for _, order := range orders {
			data := join(l.data(order), l.data(order), make([]byte, 16))
			s, err := Parse(data, Options{Order: order})
			require.NoError(t, err, l.name)
			require.Equal(t, &Section{Maps: s.Maps, Dialect: l.dialect}, s, l.name)
			require.Equal(t, l.want.Functions, s.Maps[0].Blob().Functions, l.name)
			require.Len(t, s.Maps, 2)
		}
	}
}

// TestMixed requires that Parse determines the layout of each map if a section has maps of different compilers. No tested section fits another choice
// of layouts.
func TestMixed(t *testing.T) {
	for i, a := range literals {
		for j, b := range literals {
			data := join(a.data(binary.LittleEndian), b.data(binary.LittleEndian), a.data(binary.LittleEndian))
			s, err := Parse(data, little)
			require.NoError(t, err, "%s, %s", a.name, b.name)
			require.Equal(t, []Dialect{a.dialect, b.dialect, a.dialect}, kinds(s), "%s, %s", a.name, b.name)
			if i == j {
				continue
			}
			want := Dialect("")
			if a.dialect == b.dialect {
				want = a.dialect
			}
			require.Equal(t, want, s.Dialect)
			require.Empty(t, s.Also)
			one, two := a.want, b.want
			require.Equal(t, unplaced([]*Blob{&one, &two, &one}), unplaced(blobs(s.Maps)))
		}
	}
}

// TestAmbiguous requires the chosen layout, and the list of other layouts, for handwritten sections that fit several layouts.
func TestAmbiguous(t *testing.T) {
	head := func(w *raw, functions, records uint32) *raw { return w.u8(3, 0, 0, 0).u32(functions, 0, records) }
	for _, c := range []struct {
		name    string
		bytes   func(w *raw)
		dialect Dialect
		also    []Dialect
	}{
		// One live variable with one location takes 13 bytes in YkOld, and one location takes 12 bytes in V3; padding makes both 16. V3 reads the count as
		// the location's kind, and the kind as a reserved byte, which is then not zero.
		{"a live variable", func(w *raw) {
			head(w, 1, 1).u64(0x1000, 8, 1)
			w.u64(5).u32(4).u16(0, 1).u8(1).location(1, 8, 3, 0).u8(0, 0, 0)
			w.u16(0, 0).u32(0)
		}, YkOld, []Dialect{V3}},
		// The same record in layout Yk. The function saves no frame pointer and no registers, so its prologue consists of zeros, which could also be
		// padding.
		{"a live variable and a prologue of zeros", func(w *raw) {
			head(w, 1, 1).u64(0x1000, 8, 1)
			w.u64(5).u32(4).u16(0, 1).u8(1).u8(1, 0).u16(8, 3, 0).u16(0).u32(0).u8(0)
			w.u16(0, 0).u32(0)
			w.u8(0, 0).u32(0)
		}, Yk, []Dialect{V3, YkOld}},
		// V3 and YkOld are equal for records without locations.
		{"no locations", func(w *raw) {
			head(w, 1, 1).u64(0x1000, 8, 1)
			w.u64(5).u32(4).u16(0, 0)
			w.u16(0, 1).u16(7).u8(0, 8)
		}, V3, nil},
		// Zeros after a map without locations may be padding or a prologue.
		{"no locations, and zeros", func(w *raw) {
			head(w, 1, 1).u64(0x1000, 8, 1)
			w.u64(5).u32(4).u16(0, 0)
			w.u16(0, 0).u32(0, 0, 0)
		}, V3, []Dialect{Yk}},
		{"no functions, and zeros", func(w *raw) { head(w, 0, 0).u64(0) }, V3, nil},
	} {
		for _, order := range orders {
			w := &raw{order: order}
			c.bytes(w)
			s, err := Parse(w.b, Options{Order: order})
			require.NoError(t, err, c.name)
			require.Equal(t, &Section{Maps: s.Maps, Dialect: c.dialect, Also: c.also}, s, c.name)
			// [Options].Dialect selects each of these layouts.
			for _, d := range append(c.also, c.dialect) {
				s, err := Parse(w.b, Options{order, d})
				require.NoError(t, err, c.name)
				require.Equal(t, d, s.Dialect)
				require.NotContains(t, s.Also, d)
				require.Equal(t, len(c.also) > 0, len(s.Also) > 0, c.name)
			}
		}
	}
}

// TestForcedDialect requires an error if the layout in [Options].Dialect does not fit.
func TestForcedDialect(t *testing.T) {
	text := map[string]string{}
	for _, l := range literals {
		for _, d := range Dialects() {
			if d == l.dialect {
				continue
			}
			_, err := Parse(l.data(binary.LittleEndian), Options{binary.LittleEndian, d})
			var e *Error
			require.ErrorAs(t, err, &e, "%s as %s", l.name, d)
			require.ErrorContains(t, err, fmt.Sprintf("as layout %s: ", d))
			require.ErrorContains(t, err, fmt.Sprintf("; layout %s fits", l.dialect))
			text[l.name+" as "+string(d)] = err.Error()
		}
	}
	require.Equal(t, ".llvm_stackmaps+0x0: as layout v1: layout v1 has no version 3; layout v3 fits", text["v3 as v1"])
	require.Equal(t, ".llvm_stackmaps+0x44: as layout v3: unknown location kind 0; layout yk-old fits",
		text["yk-old as v3"], "the second location of V3 would begin with the last byte of the first variable's")
	require.Equal(t, ".llvm_stackmaps+0x61: as layout yk: unknown location kind 0; layout v3 fits", text["v3 as yk"])

	_, err := Parse([]byte("nonsense"), Options{binary.LittleEndian, Yk})
	require.EqualError(t, err, ".llvm_stackmaps+0x0: as layout yk: version 110 is not supported; expected 1, 2 or 3")
}

// TestNoDialectFits requires that, if no layout fits, the error is that of the layout that the version names, and that the maps before the error are
// returned.
func TestNoDialectFits(t *testing.T) {
	yk, v3, v1 := literals[len(literals)-1].data(binary.LittleEndian), sample(binary.LittleEndian), literals[1].data(binary.LittleEndian)
	for _, c := range []struct {
		name string
		data []byte
		maps []Dialect
		text string
	}{
		{"a cut map of V3", v3[:100], nil, ".llvm_stackmaps+0x60: 5 locations in 4 bytes: the section ends inside a map"},
		{"a cut map of V1", v1[:70], nil, ".llvm_stackmaps+0x38: 3 locations in 14 bytes: the section ends inside a map"},
		{"after two layouts", join(yk, v3, []byte("nonsense")), []Dialect{Yk, V3}, ".llvm_stackmaps+0x168: version 110 is not supported; expected 1, 2 or 3"},
		{"a wrong order of bytes", literals[3].data(binary.BigEndian), nil, ".llvm_stackmaps+0x10: 33554432 functions in 120 bytes: the section ends inside a map"},
	} {
		s, err := Parse(c.data, little)
		require.EqualError(t, err, c.text, c.name)
		require.Equal(t, c.maps, kinds(s), c.name)
	}
}

// TestDetectionTime requires that twice the bytes take about twice the time. It tests sections that several layouts fit at many offsets, and that no
// layout fits to the end.
func TestDetectionTime(t *testing.T) {
	livetest.Slow(t)
	empty := append([]byte{3, 0, 0, 0}, make([]byte, 12)...)
	function := &raw{order: binary.LittleEndian} // one function, one record with one live variable of one location
	function.u8(3, 0, 0, 0).u32(1, 0, 1).u64(0x1000, 8, 1)
	function.u64(5).u32(4).u16(0, 1).u8(1).location(1, 8, 3, 0).u8(0, 0, 0).u16(0, 0).u32(0)
	yk := literals[len(literals)-1].data(binary.LittleEndian)
	// long returns maps whose ends are ambiguous: their record counts are also valid if the following maps are read as records.
	long := func(n int) []byte {
		w := &raw{order: binary.LittleEndian}
		for i := range n / 64 {
			rest := min(uint32(n-i*64)/32, 65535) // a larger count would read the next header as the locations of a record
			w.u8(3, 0, 0, 0).u32(1, 0, rest).u64(0x1000, 8, uint64(rest))
			w.u64(5).u32(4).u16(0, 0).u16(0, 0).u32(0)
		}
		return w.b
	}
	for _, c := range []struct {
		name string
		make func(n int) []byte
	}{
		{"empty maps", func(n int) []byte { return append(bytes.Repeat(empty, n/16), 9) }},
		{"ambiguous maps", func(n int) []byte { return append(bytes.Repeat(function.b, n/len(function.b)), 9) }},
		{"two layouts", func(n int) []byte {
			return append(bytes.Repeat(join(function.b, yk, nil), n/(len(function.b)+len(yk))), 9)
		}},
		{"records of each map to the end", long},
		{"functions of each map to the end", func(n int) []byte {
			w := &raw{order: binary.LittleEndian}
			for i := range n / 16 {
				w.u8(3, 0, 0, 0).u32(uint32(n-i*16)/24-8, 0, 1)
			}
			return w.b
		}},
	} {
		elapsed := func(n int) time.Duration {
			data := c.make(n)
			best := time.Hour
			for range 3 {
				start := time.Now()
				_, _ = Parse(data, little)
				best = min(best, time.Since(start))
			}
			return best
		}
		const n = 1 << 20
		// A quadratic algorithm would take 64 times as long in each try. Other load on the machine disturbs only some tries.
		for tries := 0; ; tries++ {
			small, large := elapsed(n), elapsed(8*n)
			t.Logf("%s: %v, eight times as long: %v", c.name, small, large)
			if large < 32*max(small, time.Millisecond) {
				break
			}
			require.Less(t, tries, 20, c.name)
		}
	}
}
