package stackmap

import (
	"cmp"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
)

// Entry is an undecoded record with its map and function. Addr is the address of its site: the function's address plus the record's offset.
type Entry struct {
	Addr     machine.Addr
	Map      *Map
	Function *Function

	record uint32 // offset in the blob, in units of 8 bytes
}

// Record decodes the record. The caller may keep it.
func (e Entry) Record() *Record {
	d := decoder{m: e.Map, at: int(e.record) * alignment}
	return d.next()
}

// Pos returns the position of the record in the section, without decoding it.
func (e Entry) Pos() int64 { return e.Map.Offset + int64(e.record)*alignment }

// Index finds records by address. Its zero value is empty.
type Index struct {
	addrs   addresses  // sorted; records with the same address are in the order of the section
	records []indexRow // record of each address
	maps    []indexed
}

// indexRow identifies a record.
type indexRow struct {
	function uint32 // number of the function, counted over all maps
	record   uint32 // offset in its blob, in units of 8 bytes
}

// indexed is a map in an index.
type indexed struct {
	m         *Map
	functions []Function // m.Functions when the index was made
	first     uint32     // number of its first function, counted over all maps
}

// NewIndex makes an index over the records of maps, except for unattributed ones. It uses the current addresses of the functions. The index refers to
// Map.Functions, which must not change while the index is in use.
func NewIndex(maps ...*Map) *Index {
	x := &Index{maps: make([]indexed, 0, len(maps))}
	total := 0
	function := uint32(0)
	for _, m := range maps {
		x.maps = append(x.maps, indexed{m, m.Functions, function})
		total += m.Len() - m.loose
		function += uint32(len(m.Functions))
	}
	x.records = make([]indexRow, 0, total)
	x.addrs.offsets = make([]uint32, 0, total)
	// Compilers and linkers emit records by address, so sorting is rarely needed.
	if !x.walk(x.add) {
		x.sort(total)
	}
	x.addrs.fill()
	return x
}

// add appends a record. It returns false if its address is less than the last.
func (x *Index) add(addr uint64, at indexRow) bool {
	x.records = append(x.records, at)
	return x.addrs.add(addr)
}

// walk calls visit for each record of all maps, in the order of the section, until visit returns false.
func (x *Index) walk(visit func(addr uint64, at indexRow) bool) bool {
	for _, in := range x.maps {
		for i := range in.functions {
			f := &in.functions[i]
			p, n := in.m.start(f)
			for range n {
				addr := uint64(f.Addr) + uint64(u32(in.m.data, p+8, in.m.big))
				if !visit(addr, indexRow{in.first + uint32(i), uint32(p / alignment)}) {
					return false
				}
				p = in.m.end(p)
			}
		}
	}
	return true
}

// sort rebuilds the index with its records sorted by address. Records with the same address keep the order of the section.
func (x *Index) sort(total int) {
	type located struct {
		addr uint64
		at   indexRow
	}
	list := make([]located, 0, total)
	x.walk(func(addr uint64, at indexRow) bool {
		list = append(list, located{addr, at})
		return true
	})
	slices.SortFunc(list, func(a, b located) int {
		if a.addr != b.addr {
			return cmp.Compare(a.addr, b.addr)
		}
		return cmp.Or(cmp.Compare(a.at.function, b.at.function), cmp.Compare(a.at.record, b.at.record))
	})
	x.addrs = addresses{offsets: x.addrs.offsets[:0]}
	x.records = x.records[:0]
	for _, l := range list {
		x.add(l.addr, l.at)
	}
}

// Len returns the number of records.
func (x *Index) Len() int { return len(x.records) }

// Span is a range of consecutive records of an index.
type Span struct {
	x          *Index
	first, end int
}

// Len returns the number of records.
func (s Span) Len() int { return s.end - s.first }

// Entry returns record i of the span. It panics if there is no such record.
func (s Span) Entry(i int) Entry {
	at := s.x.records[s.first:s.end][i]
	// The function belongs to the last map whose first function has the same number or a lower one. A map without functions has the same first as the
	// next map.
	k := sort.Search(len(s.x.maps), func(k int) bool { return s.x.maps[k].first > at.function }) - 1
	in := &s.x.maps[k]
	return Entry{machine.Addr(s.x.addrs.at(s.first + i)), in.m, &in.functions[at.function-in.first], at.record}
}

// At returns the records whose site is at addr, in the order of the section.
func (x *Index) At(addr machine.Addr) Span {
	first, end := x.addrs.run(uint64(addr))
	return Span{x, first, end}
}

// Range returns the records whose sites lie in [from, to), sorted by address.
func (x *Index) Range(from, to machine.Addr) Span {
	first := x.addrs.search(uint64(from))
	return Span{x, first, max(first, x.addrs.search(uint64(to)))}
}

// Nearest returns the record whose site is nearest to addr, or false if the index is empty. Of two records at the same distance it returns the
// one before addr.
func (x *Index) Nearest(addr machine.Addr) (Entry, bool) {
	n := x.Len()
	if n == 0 {
		return Entry{}, false
	}
	i := x.addrs.search(uint64(addr))
	if i == n || i > 0 && uint64(addr)-x.addrs.at(i-1) <= x.addrs.at(i)-uint64(addr) {
		i--
	}
	return Span{x, 0, n}.Entry(i), true
}
