package stackmap

import (
	"math/rand/v2"
	"slices"
	"sort"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
)

// at makes a record with nothing but an id and an offset.
func at(id RecordID, offset uint32) Record { return Record{ID: id, Offset: offset} }

func TestIndex(t *testing.T) {
	m := written(t, &Blob{Version: 3, Dialect: V3, Functions: []BlobFunction{
		{Addr: 0x2000, Records: []Record{at(1, 0x10), at(2, 0x20), at(3, 0x10)}},
		{Addr: 0x3000},
		{Addr: 0x1000, Records: []Record{at(4, 0)}},
	}})
	none := written(t, &Blob{Version: 3, Dialect: V3})
	top := written(t, &Blob{Version: 3, Dialect: V3, Functions: []BlobFunction{
		{Addr: 0x2000, Records: []Record{at(5, 0x10)}},
		{Addr: 1<<64 - 2, Records: []Record{at(6, 1)}},
	}})
	x := NewIndex(m, none, top, none)
	require.Equal(t, 6, x.Len())
	ids := func(s Span) []RecordID {
		list := []RecordID{}
		for i := range s.Len() {
			e := s.Entry(i)
			r := e.Record()
			list = append(list, r.ID)
			require.Equal(t, e.Addr, e.Function.Addr+machine.Addr(r.Offset))
			require.Equal(t, r.Pos, e.Pos())
			require.Contains(t, []*Map{m, top}, e.Map)
			require.True(t, slices.ContainsFunc(e.Map.Blob().Functions, func(f BlobFunction) bool {
				return f.Addr == e.Function.Addr && slices.ContainsFunc(f.Records, func(of Record) bool { return of.ID == r.ID })
			}))
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
		{0x2010, []RecordID{1, 3, 5}}, // in the order of the section and of the maps
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
		require.Equal(t, c.want, e.Record().ID, "%v", c.addr)
	}
	_, ok := NewIndex().Nearest(1)
	require.False(t, ok)
	require.Zero(t, new(Index).At(1).Len())
	require.Zero(t, new(Index).Range(0, 1<<64-1).Len())
	require.Panics(t, func() { x.At(0x1000).Entry(1) }, "outside of the span, though inside of the index")

	m.Functions[0].Addr = 0x9000
	m.Functions = slices.DeleteFunc(m.Functions, func(f Function) bool { return f.Addr == 0x1000 })
	x = NewIndex(m)
	require.Equal(t, 3, x.Len())
	require.Equal(t, []RecordID{1, 3}, ids(x.At(0x9010)), "at the address that the function was given")
	require.Equal(t, []RecordID{}, ids(x.At(0x1000)), "the function was deleted")
}

// TestIndexUnattributed requires that an index has no unattributed records, because their addresses are unknown.
func TestIndexUnattributed(t *testing.T) {
	m := written(t, &Blob{Version: 1, Dialect: V1, Functions: []BlobFunction{{Addr: 0x1000}, {Addr: 0x2000}}, Unattributed: []Record{at(1, 0)}})
	require.Equal(t, 1, m.Len())
	require.Zero(t, NewIndex(m).Len())
}

// TestIndexSearch compares the index with a linear search of a sorted list. The addresses are close together, far apart, all equal, or mixed.
func TestIndexSearch(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	shapes := map[string]func(i int) uint64{
		"dense":     func(i int) uint64 { return 0x401000 + uint64(i)*16 },
		"same":      func(int) uint64 { return 0x401000 },
		"anywhere":  func(int) uint64 { return r.Uint64() },
		"ends":      func(i int) uint64 { return uint64(i%2) * (1<<64 - 1) },
		"two":       func(i int) uint64 { return []uint64{0x401000, 0x7f0000000000}[i%2] + r.Uint64N(1<<16) },
		"stretches": func(i int) uint64 { return uint64(i%7)<<40 + r.Uint64N(1<<12) },
		"doubling":  func(i int) uint64 { return uint64(1) << (i % 64) },
		"lone":      func(i int) uint64 { return uint64(i) << 32 },
		"crowd":     func(i int) uint64 { return 0x1000 + r.Uint64N(4) + uint64(i/500)<<20 },
	}
	for name, shape := range shapes {
		for _, n := range []int{1, 2, 3, 15, 16, 17, 33, 1000} {
			blob := &Blob{Version: 3, Dialect: V3}
			var addrs []uint64
			for i := range n {
				addr := shape(i)
				addrs = append(addrs, addr)
				blob.Functions = append(blob.Functions, BlobFunction{Addr: machine.Addr(addr), Records: []Record{at(RecordID(i), 0)}})
			}
			x := NewIndex(written(t, blob))
			slices.Sort(addrs)
			first := func(a uint64) int { return sort.Search(n, func(i int) bool { return addrs[i] >= a }) }
			last := func(a uint64) int { return sort.Search(n, func(i int) bool { return addrs[i] > a }) }
			try := []uint64{0, 1, 1<<64 - 1, r.Uint64()}
			for _, a := range addrs {
				try = append(try, a-1, a, a+1)
			}
			for _, a := range try {
				s := x.At(machine.Addr(a))
				require.Equal(t, last(a)-first(a), s.Len(), "%s/%d %#x", name, n, a)
				require.Equal(t, first(a), x.Range(machine.Addr(a), 1<<64-1).first, "%s/%d %#x", name, n, a)
				for i := range s.Len() {
					require.Equal(t, machine.Addr(a), s.Entry(i).Addr)
				}
			}
		}
	}
}
