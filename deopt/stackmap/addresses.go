package stackmap

import (
	"math"
	"math/bits"
	"sort"
)

// addresses is a sorted list of addresses that takes little memory and is fast to search. Each address is a 32-bit offset from the base of a region.
// Each region is divided into buckets of equal size, and a table holds the index of the first address of each bucket. Modules are far apart in
// memory, so each gets a region of its own.
type addresses struct {
	offsets []uint32
	regions []region
	table   []uint32 // index of the first address of each bucket; each region has one more entry, which marks its end
	last    uint64   // the address that was added last
}

type region struct {
	base       uint64 // first address
	first, end uint32 // range of indexes of its addresses in offsets
	table      uint32 // index of its first bucket in the table
	span       uint32 // offset of its last address
	shift      uint8  // shift that maps an offset to the number of its bucket
}

const (
	gap       = 1 << 24 // minimum distance to the previous address at which a new region may start
	fewest    = 16      // minimum number of addresses in a region that ends at a gap; it bounds the overhead of regions
	perBucket = 2       // minimum average of addresses per bucket; the maximum is twice that
	block     = 8       // number of addresses that run compares at once; few buckets have more
	few       = 32      // maximum number of regions for a linear search
)

// add appends an address. It returns false, and appends nothing, if the address is less than the last.
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

// ends reports whether addr must start a new region: the distance is too great, or the last region ends at a gap.
func (a *addresses) ends(addr uint64) bool {
	r := &a.regions[len(a.regions)-1]
	return addr-r.base > math.MaxUint32 || addr-a.last >= gap && r.end-r.first >= fewest
}

// fill builds the bucket table after all addresses are added.
func (a *addresses) fill() {
	a.table = make([]uint32, 0, len(a.offsets)/perBucket+2*len(a.regions))
	for i := range a.regions {
		r := &a.regions[i]
		limit := max(1, uint64(r.end-r.first)/perBucket)
		r.span = a.offsets[r.end-1]
		r.shift = uint8(bits.Len64(uint64(r.span) / limit)) // the smallest shift with at most limit buckets
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

// region returns the last region whose base is at or before addr, or the first region if there is none.
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

// search returns the index of the first address that is addr or greater.
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

// bucket returns the range of indexes in which an offset in r can be.
func (a *addresses) bucket(r *region, offset uint64) (first, end int) {
	at := uint64(r.table) + offset>>(r.shift&63) // the mask makes the compiler omit a check of the shift count
	return int(a.table[at]), int(a.table[at+1])
}

// run returns the range of indexes whose address is addr. It is a variant of search for many lookups: it does not branch on addresses, because the
// processor could not predict such branches. So the memory accesses of several calls overlap.
func (a *addresses) run(addr uint64) (first, end int) {
	if len(a.regions) == 0 {
		return 0, 0
	}
	r := a.region(addr)
	if addr-r.base > uint64(r.span) { // also true for an addr before the region, because the difference wraps around
		return 0, 0
	}
	offset := uint32(addr - r.base)
	first, _ = a.bucket(r, addr-r.base)
	if first+block <= int(r.end) {
		// The block may extend past the bucket. The offsets there are greater, so less counts 0 for them.
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

// less returns 1 if a < b, else 0, without a branch.
func less(a, b uint32) int { return int((uint64(a) - uint64(b)) >> 63) }

// at returns address number i of the list.
func (a *addresses) at(i int) uint64 {
	r := &a.regions[0]
	if len(a.regions) > 1 {
		r = &a.regions[sort.Search(len(a.regions), func(k int) bool { return int(a.regions[k].first) > i })-1]
	}
	return r.base + uint64(a.offsets[i])
}
