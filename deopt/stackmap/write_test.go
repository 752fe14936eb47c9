package stackmap

import (
	"encoding/binary"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// TestAppendBlob requires that AppendBlob encodes the contents of the handwritten sections to their bytes.
func TestAppendBlob(t *testing.T) {
	for _, l := range literals {
		for _, order := range orders {
			data, err := AppendBlob(nil, order, &l.want)
			require.NoError(t, err, l.name)
			want := l.data(order)
			if !l.exact {
				clear(want[160:162]) // the padding of sample
			}
			require.Equal(t, want, data, l.name)

			before := []byte{1, 2, 3}
			data, err = AppendBlob(before, order, &l.want)
			require.NoError(t, err)
			require.Equal(t, append([]byte{1, 2, 3, 0, 0, 0, 0, 0}, want...), data, "aligned in the section")
		}
	}
}

func TestAppendBlobErrors(t *testing.T) {
	one := func(d Dialect, version int, r Record) *Blob {
		b := &Blob{Version: version, Dialect: d, Functions: []BlobFunction{{Records: []Record{{}, r}}}}
		if d == Yk {
			b.Functions[0].Prologue = &Prologue{}
		}
		return b
	}
	wide := Location{Kind: Register, Size: 256}
	ok := Location{Kind: Register, Size: 8}
	for _, c := range []struct {
		blob *Blob
		text string
	}{
		{&Blob{Version: 2, Dialect: V1}, "layout v1 has no version 2"},
		{&Blob{Version: 0, Dialect: V3}, "layout v3 has no version 0"},
		{&Blob{Version: 4, Dialect: V3}, "layout v3 has no version 4"},
		{one(V1, 1, Record{Locations: []Location{wide}}), "function 0: record 1: location 0: a size of 256 bytes does not fit into 8 bits"},
		{one(V2, 2, Record{Locations: []Location{ok, wide}}), "function 0: record 1: location 1: a size of 256 bytes does not fit into 8 bits"},
		{one(V3, 3, Record{Locations: []Location{{}}}), "function 0: record 1: location 0 has the unknown kind 0"},
		{one(V3, 3, Record{Locations: make([]Location, 65536)}), "function 0: record 1: 65536 locations do not fit into a count of 16 bits"},
		{one(V3, 3, Record{LiveOuts: make([]LiveOut, 65536)}), "function 0: record 1: 65536 live-outs do not fit into a count of 16 bits"},
		{one(V3, 3, Record{Vars: []int{}}), "function 0: record 1: layout v3 has no live variables"},
		{one(V3, 3, Record{Extra: [][]int16{}}), "function 0: record 1: extra locations are given for 0 of 0 locations in layout v3"},
		{one(YkOld, 3, Record{Locations: []Location{ok}}), "function 0: record 1: the live variables have 0 locations, and the record has 1"},
		{one(YkOld, 3, Record{Locations: []Location{ok}, Vars: []int{2, -1}}), "function 0: record 1: -1 locations of a live variable do not fit into a count of 8 bits"},
		{one(YkOld, 3, Record{Vars: []int{256}}), "function 0: record 1: 256 locations of a live variable do not fit into a count of 8 bits"},
		{one(YkOld, 3, Record{Vars: make([]int, 65536)}), "function 0: record 1: 65536 live variables do not fit into a count of 16 bits"},
		{one(YkOld, 3, Record{Vars: []int{}, Extra: [][]int16{}}), "function 0: record 1: extra locations are given for 0 of 0 locations in layout yk-old"},
		{one(Yk, 3, Record{Locations: []Location{ok}, Vars: []int{1}, Extra: [][]int16{{}, {}}}), "function 0: record 1: extra locations are given for 2 of 1 locations in layout yk"},
		{one(Yk, 3, Record{Locations: []Location{ok}, Vars: []int{1}, Extra: [][]int16{make([]int16, 65536)}}), "function 0: record 1: 65536 extra locations do not fit into a count of 16 bits"},
		{&Blob{Version: 3, Dialect: Yk, Functions: []BlobFunction{{}}}, "function 0: layout yk requires a prologue"},
		{&Blob{Version: 3, Dialect: V3, Functions: []BlobFunction{{Prologue: &Prologue{}}}}, "function 0: layout v3 has no prologues"},
		{&Blob{Version: 3, Dialect: V3, Unattributed: []Record{{}}}, "1 unattributed records; a map of layout v3 with 0 functions cannot have any"},
		{&Blob{Version: 1, Dialect: V1, Functions: []BlobFunction{{}}, Unattributed: []Record{{}}}, "1 unattributed records; a map of layout v1 with 1 functions cannot have any"},
	} {
		b, err := AppendBlob([]byte{7}, binary.LittleEndian, c.blob)
		require.EqualError(t, err, c.text)
		require.Equal(t, []byte{7}, b, c.text)
	}
}

// anything makes a blob of layout l with random values that the fields of the layout can hold.
func anything(r *rand.Rand, l *layout) *Blob {
	b := &Blob{Version: l.first + r.IntN(l.last-l.first+1), Dialect: l.dialect}
	for range r.IntN(4) {
		b.Constants = append(b.Constants, r.Uint64())
	}
	for range r.IntN(4) {
		f := BlobFunction{Addr: machine.Addr(r.Uint64()), StackSize: r.Uint64()}
		if l.extended {
			f.Prologue = &Prologue{HasFramePointer: r.IntN(2) == 0}
			for range r.IntN(3) {
				f.Prologue.Saved = append(f.Prologue.Saved, SavedRegister{machine.DWARFReg(r.Uint32()), int32(r.Uint32())})
			}
		}
		for range r.IntN(4) {
			f.Records = append(f.Records, someRecord(r, l))
		}
		b.Functions = append(b.Functions, f)
	}
	if !l.counted && len(b.Functions) != 1 {
		for i := range b.Functions { // in layout V1, a blob with several functions cannot store the functions of records
			b.Functions[i].Records = nil
		}
		for range r.IntN(4) {
			b.Unattributed = append(b.Unattributed, someRecord(r, l))
		}
	}
	return b
}

func someRecord(r *rand.Rand, l *layout) Record {
	rec := Record{ID: RecordID(r.Uint64()), Offset: r.Uint32(), Flags: uint16(r.Uint32())}
	if l.variables {
		rec.Vars = []int{}
	}
	if l.extended {
		rec.Extra = [][]int16{}
	}
	for range r.IntN(5) {
		n := 1
		if l.variables {
			n = r.IntN(3)
			rec.Vars = append(rec.Vars, n)
		}
		for range n {
			at := Location{Kind(1 + r.IntN(5)), uint16(r.Uint32()), machine.DWARFReg(r.Uint32()), int32(r.Uint32())}
			if l.locationSize == 8 {
				at.Size &= 0xff
			}
			rec.Locations = append(rec.Locations, at)
			if l.extended {
				var extra []int16
				for range r.IntN(3) {
					extra = append(extra, int16(r.Uint32()))
				}
				rec.Extra = append(rec.Extra, extra)
			}
		}
	}
	for range r.IntN(4) {
		rec.LiveOuts = append(rec.LiveOuts, LiveOut{machine.DWARFReg(r.Uint32()), uint8(r.Uint32())})
	}
	return rec
}

// roundTrip writes one or several blobs and reads them again. Parsed with layout l, they must be unchanged. If Parse without a layout detects another
// one, the values must be the same, or [Section].Also must list l.
func roundTrip(t testing.TB, r *rand.Rand, l *layout, order byteOrder) {
	var data []byte
	var want []*Blob
	for range 1 + r.IntN(3) {
		b := anything(r, l)
		var err error
		data, err = AppendBlob(data, order, b)
		require.NoError(t, err)
		want = append(want, b)
	}
	s, err := Parse(data, Options{order, l.dialect})
	require.NoError(t, err)
	require.Equal(t, want, unplaced(blobs(s.Maps)))
	for i, m := range s.Maps {
		for j := range m.Functions {
			for range m.Reserved(&m.Functions[j]) {
				require.Fail(t, "the writer wrote a reserved field", "map %d", i)
			}
		}
	}
	s, err = Parse(data, Options{Order: order})
	require.NoError(t, err)
	if s.Dialect == l.dialect {
		require.Equal(t, want, unplaced(blobs(s.Maps)))
	} else if s.Dialect != "" {
		same := slices.EqualFunc(want, blobs(s.Maps), func(a, b *Blob) bool { return a.sameValues(b) })
		require.True(t, same || slices.Contains(s.Also, l.dialect), "%s was read as %s, also %v", l.dialect, s.Dialect, s.Also)
	}
}

// sameValues reports whether two blobs have the same values. It ignores the layout, and fields that only one of the two layouts has.
func (blob *Blob) sameValues(o *Blob) bool {
	return blob.Version == o.Version && slices.Equal(blob.Constants, o.Constants) &&
		slices.EqualFunc(blob.Functions, o.Functions, func(a, b BlobFunction) bool {
			return a.Addr == b.Addr && a.StackSize == b.StackSize && a.Prologue == b.Prologue &&
				slices.EqualFunc(a.Records, b.Records, func(a, b Record) bool {
					return a.ID == b.ID && a.Offset == b.Offset && a.Flags == b.Flags &&
						slices.Equal(a.Locations, b.Locations) && slices.Equal(a.LiveOuts, b.LiveOuts)
				})
		})
}

func TestRoundTrip(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 4))
	for i := range layouts {
		for range 2000 {
			for _, order := range orders {
				roundTrip(t, r, &layouts[i], order)
			}
		}
	}
}

// TestReserved requires that Reserved yields each kind of reserved field, in handwritten sections.
func TestReserved(t *testing.T) {
	all := func(data []byte, o Options) []Reserved {
		m, _, err := ParseOne(data, o)
		require.NoError(t, err)
		var list []Reserved
		for i := range m.Functions {
			for r := range m.Reserved(&m.Functions[i]) {
				list = append(list, r)
			}
		}
		for r := range m.Reserved(nil) {
			list = append(list, r)
		}
		return list
	}
	require.Equal(t, []Reserved{{160, "the half-word before the number of live-outs", 0xffff, 80}}, all(sample(binary.LittleEndian), little))
	for _, order := range orders {
		v3 := sample(order)
		copy(v3[96+12+1:], []byte{9})
		copy(v3[96+24+6:], []byte{1, 2})
		copy(v3[156:160], []byte{1, 0, 0, 2})
		copy(v3[160:162], []byte{0, 0})
		v3[166] = 7
		v3[188] = 3
		half, padding, tail := uint64(0x0201), uint64(0x02000001), uint64(3)
		if order == byteOrder(binary.BigEndian) {
			half, padding, tail = 0x0102, 0x01000002, 0x03000000
		}
		require.Equal(t, []Reserved{
			{109, "the byte after a location's kind", 9, 80},
			{126, "the half-word after a location's register", half, 80},
			{156, "the padding after the locations", padding, 80},
			{166, "the byte after a live-out's register", 7, 80},
			{188, "the padding after the live-outs", tail, 168},
		}, all(v3, Options{Order: order}))

		yk := literals[len(literals)-1].data(order)
		require.Empty(t, all(yk, Options{order, Yk}))
		yk[90], yk[127], yk[137], yk[145] = 1, 1, 1, 0x10
		half, padding = 0x1000, 1<<40
		if order == byteOrder(binary.BigEndian) {
			half, padding = 0x10, 1
		}
		require.Equal(t, []Reserved{
			{90, "the byte after a location's kind", 1, 72},
			{122, "the padding after the locations", padding, 72},
			{137, "the byte after a prologue's frame pointer", 1, -1},
			{144, "the half-word after a saved register", half, -1},
		}, all(yk, Options{order, Yk}))
	}
	v1 := literals[2].data(binary.LittleEndian)
	v1[72] = 5
	require.Equal(t, []Reserved{{72, "the half-word before the number of live-outs", 5, 48}}, all(v1, little), "of an unattributed record")
	for range written(t, &literals[1].want).Reserved(nil) {
		require.Fail(t, "nothing is reserved in a location of V1")
	}
}
