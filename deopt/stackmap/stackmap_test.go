package stackmap

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"
)

var little = Options{Order: binary.LittleEndian}

// written encodes a blob, and returns the map that Parse reads from it.
func written(t testing.TB, blob *Blob) *Map {
	t.Helper()
	data, err := AppendBlob(nil, binary.LittleEndian, blob)
	require.NoError(t, err)
	m, n, err := ParseOne(data, Options{binary.LittleEndian, blob.Dialect})
	require.NoError(t, err)
	require.Equal(t, len(data), n)
	return m
}

// TestParse requires that Parse returns the contents of the handwritten sections. The expected values come from the descriptions of the layouts.
func TestParse(t *testing.T) {
	for _, l := range literals {
		for _, order := range orders {
			data := l.data(order)
			m, n, err := ParseOne(append(data, 0xee, 0xee), Options{order, l.dialect})
			require.NoError(t, err, l.name)
			require.Equal(t, len(data), n, "%s: what follows a map is not its own", l.name)
			require.Equal(t, int64(n), m.Size, l.name)
			require.Equal(t, &l.want, m.Blob(), l.name)
			for _, dialect := range []Dialect{"", l.dialect} {
				s, err := Parse(data, Options{order, dialect})
				require.NoError(t, err, l.name)
				require.Equal(t, &Section{Maps: s.Maps, Dialect: l.dialect}, s, l.name)
				require.Equal(t, []*Blob{&l.want}, blobs(s.Maps), l.name)
			}
		}
	}
}

// TestRecords requires that Records yields the records of each function, and that the numbers of records are right. Records decodes all of them into
// the same memory, so a caller that keeps one must clone it.
func TestRecords(t *testing.T) {
	for _, l := range literals {
		m, _, err := ParseOne(l.data(binary.BigEndian), Options{binary.BigEndian, l.dialect})
		require.NoError(t, err)
		total := 0
		for i := range m.Functions {
			f := &m.Functions[i]
			want := l.want.Functions[i].Records
			require.Equal(t, len(want), f.Len(), l.name)
			total += f.Len()
			k := 0
			for r := range m.Records(f) {
				require.Equal(t, &want[k], r, l.name)
				k++
			}
			require.Equal(t, len(want), k, l.name)
			for range m.Records(f) {
				break
			}
		}
		require.Equal(t, len(l.want.Unattributed), m.Unattributed(), l.name)
		require.Equal(t, total+m.Unattributed(), m.Len(), l.name)
		m.Functions = m.Functions[:0]
		require.Equal(t, m.Unattributed(), m.Len(), "the records of deleted functions are gone")
	}
	m := &Map{}
	require.Zero(t, m.Len())
	for range m.Records(&Function{}) {
		require.Fail(t, "a record of an empty map")
	}
	for range m.Records(nil) {
		require.Fail(t, "a record of an empty map")
	}
}

// TestDeletedFunction requires that the deletion of a function from Map.Functions does not change the records of the others.
func TestDeletedFunction(t *testing.T) {
	l := literals[3]
	require.Equal(t, V2, l.dialect)
	m, _, err := ParseOne(l.data(binary.LittleEndian), little)
	require.NoError(t, err)
	m.Functions = m.Functions[1:]
	require.Equal(t, 1, m.Len())
	require.Equal(t, 1, NewIndex(m).Len())
	require.Equal(t, l.want.Functions[1:], m.Blob().Functions)

	l = literals[len(literals)-1]
	require.Equal(t, Yk, l.dialect)
	m, _, err = ParseOne(l.data(binary.LittleEndian), Options{binary.LittleEndian, Yk})
	require.NoError(t, err)
	m.Functions = m.Functions[1:]
	require.Equal(t, l.want.Functions[1:], m.Blob().Functions, "and its prologue is its own")
}

func TestParseSmallest(t *testing.T) {
	for _, data := range [][]byte{nil, make([]byte, 100)} {
		s, err := Parse(data, little)
		require.NoError(t, err, "padding alone")
		require.Equal(t, &Section{}, s)
		s, err = Parse(data, Options{binary.LittleEndian, Yk})
		require.NoError(t, err, "padding alone")
		require.Equal(t, &Section{}, s)
	}
	for version, dialect := range []Dialect{1: V1, 2: V2, 3: V3} {
		if version == 0 {
			continue
		}
		s, err := Parse(append([]byte{byte(version)}, make([]byte, 15)...), little)
		require.NoError(t, err)
		require.Equal(t, &Section{Maps: s.Maps, Dialect: dialect}, s, "every layout reads the same")
		require.Equal(t, []*Blob{{Version: version, Dialect: dialect}}, blobs(s.Maps))
	}
	_, _, err := ParseOne(nil, little)
	require.ErrorIs(t, err, ErrTruncated)
}

func TestOptions(t *testing.T) {
	_, err := Parse(nil, Options{})
	require.EqualError(t, err, "stackmap: no byte order was given")
	_, _, err = ParseOne(nil, Options{})
	require.EqualError(t, err, "stackmap: no byte order was given")
	const unknown = `unknown layout "v4"; expected one of [v1 v2 v3 yk yk-old]`
	_, err = Parse(nil, Options{binary.LittleEndian, "v4"})
	require.EqualError(t, err, unknown)
	_, _, err = ParseOne(nil, Options{binary.LittleEndian, "v4"})
	require.EqualError(t, err, unknown)
	_, err = AppendBlob(nil, binary.LittleEndian, &Blob{Version: 3, Dialect: "v4"})
	require.EqualError(t, err, unknown)
	require.Equal(t, []Dialect{V1, V2, V3, Yk, YkOld}, Dialects())
}

func TestConstant(t *testing.T) {
	m := written(t, &Blob{Version: 3, Dialect: V3, Constants: []uint64{11, 1 << 63}})
	require.Equal(t, 2, m.NumConstants())
	require.Equal(t, uint64(11), m.ConstantAt(0))
	require.PanicsWithValue(t, "stackmap: constant index 2 is out of range; the table has 2 entries", func() { m.ConstantAt(2) })
	for _, c := range []struct {
		at   Location
		want uint64
		err  string
	}{
		{Location{Kind: Constant, Offset: 7}, 7, ""},
		{Location{Kind: Constant, Offset: -1}, 0xffffffffffffffff, ""},
		{Location{Kind: Constant, Offset: -1 << 31}, 0xffffffff80000000, ""},
		{Location{Kind: ConstantIndex, Offset: 1}, 0x8000000000000000, ""},
		{Location{Kind: ConstantIndex, Offset: 2}, 0, "constant index 2 is out of range; the table has 2 entries"},
		{Location{Kind: ConstantIndex, Offset: -1}, 0, "constant index -1 is out of range; the table has 2 entries"},
		{Location{Kind: Direct, Offset: 0}, 0, "Direct is not a constant"},
	} {
		v, err := m.Constant(c.at)
		if c.err != "" {
			require.EqualError(t, err, c.err)
			continue
		}
		require.NoError(t, err)
		require.Equal(t, c.want, v)
	}
	require.Equal(t, "Indirect", Indirect.String())
	require.Equal(t, "kind 0", Kind(0).String())
	require.Equal(t, "kind 6", Kind(6).String())
}

// broken is a literal section with some of its bytes changed.
type broken struct {
	name   string
	at     int
	bytes  []byte
	offset int64
	text   string
}

// TestParseErrors requires an error with its position for each field that can be wrong. Positions in sample: header 0, functions 16, constants 64,
// first record 80 (its locations 96, the head of its live-outs 160), second record 168.
func TestParseErrors(t *testing.T) {
	good := sample(binary.LittleEndian)
	require.Len(t, good, 192)
	for _, c := range []broken{
		{"version 4", 0, []byte{4}, 0, "version 4 is not supported; expected 1, 2 or 3"},
		{"version 0", 0, []byte{0}, 0, "version 0 is not supported"},
		{"reserved byte", 1, []byte{1}, 1, "reserved"},
		{"reserved half", 3, []byte{1}, 3, "reserved"},
		{"all functions there are", 4, []byte{255, 255, 255, 255}, 16, "4294967295 functions"},
		{"one function more", 4, []byte{8}, 16, "8 functions"},
		{"all constants there are", 8, []byte{255, 255, 255, 255}, 16, "4294967295 constants"},
		{"constants past the functions", 8, []byte{17}, 64, "17 constants"},
		{"all records there are", 12, []byte{255, 255, 255, 255}, 16, "4294967295 records"},
		{"one record too many", 12, []byte{3}, 12, "the functions claim 2 records, the header 3"},
		{"one record too few", 12, []byte{1}, 32, "function 0 claims 2 of 1 records"},
		{"records of a function wrap", 32, []byte{255, 255, 255, 255, 255, 255, 255, 255}, 32, "claims 18446744073709551615 of 2"},
		{"locations past the end", 94, []byte{9, 0}, 96, "9 locations"},
		{"most locations", 94, []byte{255, 255}, 96, "65535 locations"},
		{"location of kind 0", 96, []byte{0}, 96, "unknown location kind 0"},
		{"location of kind 6", 132, []byte{6}, 132, "unknown location kind 6"},
		{"most live-outs", 162, []byte{255, 255}, 164, "65535 live-outs"},
	} {
		wrong(t, good, V3, c)
	}
}

// wrong parses a section with some bytes changed, in its own layout, and requires the error.
func wrong(t *testing.T, good []byte, dialect Dialect, c broken) {
	t.Helper()
	bad := append([]byte(nil), good...)
	copy(bad[c.at:], c.bytes)
	m, _, err := ParseOne(bad, Options{binary.LittleEndian, dialect})
	require.Nil(t, m, c.name)
	var e *Error
	require.ErrorAs(t, err, &e, c.name)
	require.Equal(t, c.offset, e.Offset, c.name)
	require.ErrorContains(t, err, c.text, c.name)
}

// TestYkErrors is TestParseErrors for layout Yk. Positions in its section: functions 16, constants 64, record 72 (its live variables 88 and 107,
// extra locations of the first 97), live-outs 128, prologues 136 (the second at 158).
func TestYkErrors(t *testing.T) {
	good := literals[len(literals)-1].data(binary.LittleEndian)
	require.Len(t, good, 164)
	for _, c := range []broken{
		{"live variables past the end", 86, []byte{255, 255}, 137, "unknown location kind 0"},
		{"kind of a location", 89, []byte{6}, 89, "unknown location kind 6"},
		{"locations of a live variable", 107, []byte{2}, 122, "unknown location kind 0"},
		{"extra locations past the end", 97, []byte{255, 255}, 99, "65535 extra locations"},
		{"frame pointer", 136, []byte{2}, 136, "has 2 as its frame pointer flag"},
		{"saved registers past the end", 138, []byte{4}, 142, "4 saved registers"},
		{"all saved registers there are", 138, []byte{255, 255, 255, 255}, 142, "4294967295 saved registers"},
	} {
		wrong(t, good, Yk, c)
	}
}

// TestParseAll reads several maps as a linker writes them, with padding between them and after the last one.
func TestParseAll(t *testing.T) {
	one := sample(binary.LittleEndian)
	two := append(append(append([]byte{}, one...), make([]byte, 24)...), one...)
	two = append(two, 0, 0, 0)
	s, err := Parse(two, little)
	require.NoError(t, err)
	require.Len(t, s.Maps, 2)
	require.Equal(t, []int64{0, 192, 192 + 24, 192}, []int64{s.Maps[0].Offset, s.Maps[0].Size, s.Maps[1].Offset, s.Maps[1].Size})
	require.Equal(t, int64(192+24+80), s.Maps[1].Blob().Functions[0].Records[0].Pos)
	both := unplaced(blobs(s.Maps))
	require.Equal(t, both[0], both[1])

	for _, c := range []struct {
		name   string
		data   []byte
		maps   int
		offset int64
		text   string
	}{
		{"not aligned", append(make([]byte, 4), one...), 0, 4, "not aligned"},
		{"text after it", append(append([]byte{}, one...), "not a map"...), 1, 192, "version 110 is not supported"},
		{"a byte after it, not aligned", append(append([]byte{}, one...), 0, 0, 3), 1, 194, "not aligned"},
		{"the second is cut", two[:192+24+100], 1, 192 + 24 + 16 + 0, "ends inside a map"},
	} {
		for _, dialect := range []Dialect{"", V3} {
			s, err := Parse(c.data, Options{binary.LittleEndian, dialect})
			require.Len(t, s.Maps, c.maps, c.name)
			var e *Error
			require.ErrorAs(t, err, &e, c.name)
			require.ErrorContains(t, err, c.text, c.name)
			require.GreaterOrEqual(t, e.Offset, c.offset, c.name)
		}
	}
}
