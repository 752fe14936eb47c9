package stackmap

import (
	"math"
	"math/bits"
	"sort"
)

// addresses is a sorted list of addresses that is small and fast to search: they are kept as 32-bit offsets from the base of a region, and each
// region is divided into buckets of equal size; a table holds the first address of each bucket. Code of several modules lies far apart, so each
// such stretch is a region of its own.
type addresses struct {
	offsets []uint32
	regions []region
	table   []uint32 // of each bucket: its first address; for each region one more, the end
	last    uint64   // the address that was added last
}

type region struct {
	base       uint64 // its first address
	first, end uint32 // its addresses
	table      uint32 // its part of the table
	span       uint32 // the offset of its last address
	shift      uint8  // of an offset, to its bucket
}

const (
	gap       = 1 << 24 // from an address to the next that begins a region
	fewest    = 16      // addresses of a region that ends at a gap, so that regions cost little beside them
	perBucket = 2       // addresses of a bucket, on average: from as many to twice as many
	block     = 8       // addresses that are looked at together: few buckets have more
	few       = 32      // regions that are looked at one by one
)

// add appends an address, and does not where it is less than the last.
func (a *addresses) add(addr uint64) bool {
	if addr < a.last {
		return false
	}
	n := uint32(len(a.offsets))
	if n == 0 || a.ends(addr) {
		a.regions = append(a.regions, region{base: addr, first: n})
	}
	r := &a.regions[len(a.regions)-1]
	a.offsets = append(a.offsets, uint32(addr-r.base))
	a.last, r.end = addr, n+1
	return true
}

// ends reports whether the last region ends before addr.
func (a *addresses) ends(addr uint64) bool {
	r := &a.regions[len(a.regions)-1]
	return addr-r.base > math.MaxUint32 || addr-a.last >= gap && r.end-r.first >= fewest
}

// fill makes the buckets, when all addresses are there.
func (a *addresses) fill() {
	a.table = make([]uint32, 0, len(a.offsets)/perBucket+2*len(a.regions))
	for i := range a.regions {
		r := &a.regions[i]
		limit := max(1, uint64(r.end-r.first)/perBucket)
		r.span = a.offsets[r.end-1]
		r.shift = uint8(bits.Len64(uint64(r.span) / limit)) // the least that makes no more than limit buckets
		r.table = uint32(len(a.table))
		next := uint32(0)
		for i := r.first; i < r.end; i++ {
			for own := a.offsets[i] >> r.shift; next <= own; next++ {
				a.table = append(a.table, i)
			}
		}
		a.table = append(a.table, r.end)
	}
}

// region returns the region that addr would be in. Before the first region it is the first.
func (a *addresses) region(addr uint64) *region {
	if len(a.regions) > few {
		return &a.regions[max(1, sort.Search(len(a.regions), func(i int) bool { return a.regions[i].base > addr }))-1]
	}
	n := 0
	for i := 1; i < len(a.regions); i++ {
		_, before := bits.Sub64(addr, a.regions[i].base, 0)
		n += 1 - int(before)
	}
	return &a.regions[n]
}

// search returns the first place at addr or after it.
func (a *addresses) search(addr uint64) int {
	if len(a.regions) == 0 {
		return 0
	}
	r := a.region(addr)
	switch {
	case addr < r.base:
		return 0
	case addr-r.base > uint64(r.span):
		return int(r.end)
	}
	first, end := a.bucket(r, addr-r.base)
	return first + sort.Search(end-first, func(i int) bool { return a.offsets[first+i] >= uint32(addr-r.base) })
}

// bucket returns the places that an offset in r may be at.
func (a *addresses) bucket(r *region, offset uint64) (first, end int) {
	at := uint64(r.table) + offset>>(r.shift&63) // the mask spares the compiler a check
	return int(a.table[at]), int(a.table[at+1])
}

// run returns the places of addr, which are all in one region. It is a variant of search for many lookups: it does not branch on the addresses,
// which branch prediction could not predict, so that the processor overlaps the memory accesses of several calls.
func (a *addresses) run(addr uint64) (first, end int) {
	if len(a.regions) == 0 {
		return 0, 0
	}
	r := a.region(addr)
	if addr-r.base > uint64(r.span) { // also where addr is before the region
		return 0, 0
	}
	offset := uint32(addr - r.base)
	first, _ = a.bucket(r, addr-r.base)
	if first+block <= int(r.end) {
		// The offsets past the bucket are greater.
		b := (*[block]uint32)(a.offsets[first:])
		first += less(b[0], offset) + less(b[1], offset) + less(b[2], offset) +
			less(b[3], offset) + less(b[4], offset) + less(b[5], offset) +
			less(b[6], offset) + less(b[7], offset)
	}
	if first < int(r.end) && a.offsets[first] < offset {
		first = a.search(addr)
	}
	for end = first; end < int(r.end) && a.offsets[end] == offset; {
		end++
	}
	return first, end
}

// less is 1 if a < b, else 0, without a branch.
func less(a, b uint32) int { return int((uint64(a) - uint64(b)) >> 63) }

// at returns the address at a place.
func (a *addresses) at(i int) uint64 {
	r := &a.regions[0]
	if len(a.regions) > 1 {
		r = &a.regions[sort.Search(len(a.regions), func(k int) bool { return int(a.regions[k].first) > i })-1]
	}
	return r.base + uint64(a.offsets[i])
}
