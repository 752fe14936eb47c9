package stackmap

import (
	"encoding/binary"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/machine"
)

// The expectation is written from the layout in "Stack Map Format", not from what
// Parse returned.
func TestParse(t *testing.T) {
	want := &Map{
		Version:   3,
		Constants: []uint64{0x123456789abcdef0, 0x8000000000000000},
		Functions: []Function{
			{Addr: 0x7f0000001000, StackSize: 24, Records: []Record{
				{
					ID: 0xffffffffffffffff, Offset: 0x44,
					Locations: []Location{
						{Kind: Register, Size: 8, Reg: 3},
						{Kind: Direct, Size: 8, Reg: 6, Offset: -16},
						{Kind: Indirect, Size: 4, Reg: 7, Offset: 2147483647},
						{Kind: Constant, Size: 8, Offset: -1},
						{Kind: ConstantIndex, Size: 8, Offset: 1},
					},
					LiveOuts: []LiveOut{{Reg: 17, Size: 64}},
				},
				{ID: 7, Flags: 0x8000},
			}},
			{Addr: 0x7f0000002000, StackSize: DynamicStack, Records: []Record{}},
		},
	}
	for _, order := range []interface {
		binary.ByteOrder
		binary.AppendByteOrder
	}{binary.LittleEndian, binary.BigEndian} {
		data := sample(order)
		m, n, err := Parse(append(data, 0xee, 0xee), order)
		require.NoError(t, err)
		require.Equal(t, len(data), n, "what follows a map is not its own")
		require.Equal(t, want, m)
		require.Equal(t, 2, m.Records())
	}
}

func TestParseSmallest(t *testing.T) {
	maps, err := ParseAll(nil, binary.LittleEndian)
	require.NoError(t, err)
	require.Empty(t, maps)
	maps, err = ParseAll(make([]byte, 100), binary.LittleEndian)
	require.NoError(t, err, "padding alone")
	require.Empty(t, maps)
	maps, err = ParseAll(append([]byte{3}, make([]byte, 15)...), binary.LittleEndian)
	require.NoError(t, err)
	require.Equal(t, []*Map{{Version: 3, Functions: []Function{}, Constants: []uint64{}}}, maps)
}

func TestConstant(t *testing.T) {
	m := &Map{Constants: []uint64{11, 1 << 63}}
	for _, c := range []struct {
		at   Location
		want uint64
		err  string
	}{
		{Location{Kind: Constant, Offset: 7}, 7, ""},
		{Location{Kind: Constant, Offset: -1}, 0xffffffffffffffff, ""},
		{Location{Kind: Constant, Offset: -1 << 31}, 0xffffffff80000000, ""},
		{Location{Kind: ConstantIndex, Offset: 1}, 0x8000000000000000, ""},
		{Location{Kind: ConstantIndex, Offset: 2}, 0, "constant 2 of a table of 2"},
		{Location{Kind: ConstantIndex, Offset: -1}, 0, "constant -1 of a table of 2"},
		{Location{Kind: Direct, Offset: 0}, 0, "Direct is no constant"},
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

// Offsets in sample: header 0, functions 16, constants 64, first record 80 (its
// locations 96, its live-outs' head 160), second record 168.
func TestParseErrors(t *testing.T) {
	good := sample(binary.LittleEndian)
	require.Len(t, good, 192)
	for _, c := range []struct {
		name   string
		at     int
		bytes  []byte
		offset int64
		text   string
	}{
		{"version 2", 0, []byte{2}, 0, "version 2 is not known"},
		{"version 4", 0, []byte{4}, 0, "version 4 is not known"},
		{"reserved byte", 1, []byte{1}, 4, "reserved"},
		{"reserved half", 3, []byte{1}, 4, "reserved"},
		{"all functions there are", 4, []byte{255, 255, 255, 255}, 16, "4294967295 functions"},
		{"one function more", 4, []byte{8}, 16, "8 functions"},
		{"all constants there are", 8, []byte{255, 255, 255, 255}, 16, "4294967295 constants"},
		{"all records there are", 12, []byte{255, 255, 255, 255}, 16, "4294967295 records"},
		{"one record too many", 12, []byte{3}, 64, "the functions claim 2 records, the header 3"},
		{"one record too few", 12, []byte{1}, 40, "function 0 claims 2 of 1 records"},
		{"records of a function wrap", 32, []byte{255, 255, 255, 255, 255, 255, 255, 255}, 40, "claims 18446744073709551615 of 2"},
		{"locations past the end", 94, []byte{9, 0}, 96, "9 locations"},
		{"most locations", 94, []byte{255, 255}, 96, "65535 locations"},
		{"location of kind 0", 96, []byte{0}, 97, "unknown kind 0"},
		{"location of kind 6", 96, []byte{6}, 97, "unknown kind 6"},
		{"most live-outs", 162, []byte{255, 255}, 164, "65535 live-outs"},
	} {
		bad := append([]byte(nil), good...)
		copy(bad[c.at:], c.bytes)
		m, _, err := Parse(bad, binary.LittleEndian)
		require.Nil(t, m, c.name)
		var e *Error
		require.ErrorAs(t, err, &e, c.name)
		require.Equal(t, c.offset, e.Offset, c.name)
		require.ErrorContains(t, err, c.text, c.name)
	}
}

// Several maps, as a linker lays them: padding between them, and after the last.
func TestParseAll(t *testing.T) {
	one := sample(binary.LittleEndian)
	two := append(append(append([]byte{}, one...), make([]byte, 24)...), one...)
	two = append(two, 0, 0, 0)
	maps, err := ParseAll(two, binary.LittleEndian)
	require.NoError(t, err)
	require.Len(t, maps, 2)
	require.Equal(t, maps[0], maps[1])

	for _, c := range []struct {
		name   string
		data   []byte
		maps   int
		offset int64
		text   string
	}{
		{"not aligned", append(make([]byte, 4), one...), 0, 4, "not aligned"},
		{"text after it", append(append([]byte{}, one...), "not a map"...), 1, 192, "version 110 is not known"},
		{"the second is cut", two[:192+24+100], 1, 192 + 24 + 16 + 0, "ends inside a map"},
	} {
		maps, err := ParseAll(c.data, binary.LittleEndian)
		require.Len(t, maps, c.maps, c.name)
		var e *Error
		require.ErrorAs(t, err, &e, c.name)
		require.ErrorContains(t, err, c.text, c.name)
		require.GreaterOrEqual(t, e.Offset, c.offset, c.name)
	}
}

func TestIndex(t *testing.T) {
	m := &Map{Functions: []Function{
		{Addr: 0x2000, Records: []Record{{ID: 1, Offset: 0x10}, {ID: 2, Offset: 0x20}, {ID: 3, Offset: 0x10}}},
		{Addr: 0x1000, Records: []Record{{ID: 4, Offset: 0}}},
	}}
	top := &Map{Functions: []Function{
		{Addr: 0x2000, Records: []Record{{ID: 5, Offset: 0x10}}},
		{Addr: 1<<64 - 2, Records: []Record{{ID: 6, Offset: 1}}},
	}}
	x := NewIndex(m, top)
	require.Equal(t, 6, x.Len())
	ids := func(entries []Entry) []RecordID {
		list := []RecordID{}
		for _, e := range entries {
			list = append(list, e.Record.ID)
			require.Equal(t, e.Addr, e.Function.Addr+machine.Addr(e.Record.Offset))
		}
		return list
	}
	for _, c := range []struct {
		addr machine.Addr
		want []RecordID
	}{
		{0, []RecordID{}},
		{0xfff, []RecordID{}},
		{0x1000, []RecordID{4}},
		{0x1001, []RecordID{}},
		{0x2010, []RecordID{1, 3, 5}}, // in the order of the section, and of the maps
		{0x2020, []RecordID{2}},
		{1<<64 - 1, []RecordID{6}},
	} {
		require.Equal(t, c.want, ids(x.At(c.addr)), "%v", c.addr)
	}
	for _, c := range []struct {
		from, to machine.Addr
		want     []RecordID
	}{
		{0, 0x1000, []RecordID{}},
		{0, 0x1001, []RecordID{4}},
		{0x1000, 0x2020, []RecordID{4, 1, 3, 5}},
		{0x2011, 0x2021, []RecordID{2}},
		{0x2021, 0x1000, []RecordID{}},
		{0x1000, 0x1000, []RecordID{}},
	} {
		require.Equal(t, c.want, ids(x.Range(c.from, c.to)), "%v-%v", c.from, c.to)
	}
	for _, c := range []struct {
		addr machine.Addr
		want RecordID
	}{
		{0, 4}, {0x1000, 4}, {0x1800, 4}, {0x1808, 4}, {0x1809, 1}, {0x2010, 1}, {0x2018, 5}, {0x2019, 2}, {0x3000, 2}, {1<<64 - 1, 6},
	} {
		e, ok := x.Nearest(c.addr)
		require.True(t, ok)
		require.Equal(t, c.want, e.Record.ID, "%v", c.addr)
	}
	_, ok := NewIndex().Nearest(1)
	require.False(t, ok)
	require.Empty(t, new(Index).At(1))
}
