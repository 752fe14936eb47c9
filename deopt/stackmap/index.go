package stackmap

import (
	"cmp"
	"slices"
	"sort"

	"reframe/deopt/machine"
)

// Entry is a record with what it belongs to. Addr is where its site is: the
// function's address plus the record's offset.
type Entry struct {
	Addr     machine.Addr
	Map      *Map
	Function *Function
	Record   *Record
}

// Index finds records by address. Its zero value is empty.
type Index struct {
	entries []Entry // by Addr; at one address in the order of the section
}

// NewIndex makes an index over all records of maps.
func NewIndex(maps ...*Map) *Index {
	total := 0
	for _, m := range maps {
		total += m.Records()
	}
	x := &Index{entries: make([]Entry, 0, total)}
	for _, m := range maps {
		for i := range m.Functions {
			f := &m.Functions[i]
			for j := range f.Records {
				rec := &f.Records[j]
				x.entries = append(x.entries, Entry{f.Addr + machine.Addr(rec.Offset), m, f, rec})
			}
		}
	}
	slices.SortStableFunc(x.entries, func(a, b Entry) int { return cmp.Compare(a.Addr, b.Addr) })
	return x
}

// Len counts the records.
func (x *Index) Len() int { return len(x.entries) }

// At returns the records whose site is at addr, in the order of the section.
func (x *Index) At(addr machine.Addr) []Entry {
	first := x.search(addr)
	last := first
	for last < len(x.entries) && x.entries[last].Addr == addr {
		last++
	}
	return x.entries[first:last]
}

// Range returns the records whose sites lie in [from, to), by address.
func (x *Index) Range(from, to machine.Addr) []Entry {
	first := x.search(from)
	last := first + sort.Search(len(x.entries)-first, func(i int) bool { return x.entries[first+i].Addr >= to })
	return x.entries[first:last]
}

// Nearest returns the record whose site is nearest to addr, and false in an
// empty index. Of two that are equally near it is the one before addr.
func (x *Index) Nearest(addr machine.Addr) (Entry, bool) {
	if len(x.entries) == 0 {
		return Entry{}, false
	}
	i := x.search(addr)
	switch {
	case i == len(x.entries):
		return x.entries[i-1], true
	case i > 0 && addr-x.entries[i-1].Addr <= x.entries[i].Addr-addr:
		return x.entries[i-1], true
	}
	return x.entries[i], true
}

func (x *Index) search(addr machine.Addr) int {
	return sort.Search(len(x.entries), func(i int) bool { return x.entries[i].Addr >= addr })
}
