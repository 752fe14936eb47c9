package protocol

import (
	"fmt"
	"iter"
	"maps"
	"slices"

	"example.com/reframe/internal/machine"
)

// Overlay is a target's memory with an interpreter's writes, which do not reach the target.
type Overlay struct {
	below      machine.Memory
	maps       []machine.Mapping // the mappings of the target, in ascending order
	pages      map[machine.Addr]*page
	room       machine.Range // range that the target does not use, for allocations
	next       machine.Addr  // address of the next allocation, in room
	blocks     []machine.Range
	writes     int
	unreadable bool
	observe    func(addr machine.Addr, data []byte)
}

// PageSize is the number of bytes of a [Stored].
const PageSize = 4096

// These bound one run.
const (
	maxPages     = 1 << 16 // 256 MiB
	maxAllocated = 256 << 20
)

type page struct {
	owner  *Overlay // the overlay that may change the page; others copy it
	data   [PageSize]byte
	was    *[PageSize]byte
	stored [PageSize / 8]byte // a bit for each byte that was stored to
}

// NewOverlay returns an overlay over a target's memory with the given mappings. pointer is the size of a pointer in bytes.
func NewOverlay(below machine.Memory, mappings []machine.Mapping, pointer int) *Overlay {
	o := &Overlay{below: below, maps: mappings, pages: map[machine.Addr]*page{}}
	o.room = unused(mappings, pointer)
	o.next = o.room.Start
	return o
}

// Fork returns another overlay with the same content. Later writes must go to the new overlay; the old one must not be written to any more.
func (o *Overlay) Fork() *Overlay {
	is := *o
	is.pages, is.blocks, is.observe = maps.Clone(o.pages), slices.Clip(o.blocks), nil
	return &is
}

// Observe calls f for each later write, before it is stored. A fork does not call it.
func (o *Overlay) Observe(f func(addr machine.Addr, data []byte)) { o.observe = f }

// WithoutWrites returns another overlay with the same allocations and without the writes.
func (o *Overlay) WithoutWrites() *Overlay {
	is := o.Fork()
	clear(is.pages)
	return is
}

// unused returns the middle of the widest unmapped range.
func unused(mappings []machine.Mapping, pointer int) machine.Range {
	end := machine.Addr(1) << 47 // end of the user address space on most 64-bit Linux systems; tagged pointers need the bits above
	if pointer == 4 {
		end = 1 << 32
	}
	widest, last := machine.Range{}, machine.Addr(1<<20) // exclude the addresses of a null pointer with an offset
	see := func(start machine.Addr) {
		if start > last && start-last > widest.End-widest.Start {
			widest = machine.Range{Start: last, End: start}
		}
	}
	for _, m := range mappings {
		if m.Start >= end {
			break
		}
		see(m.Start)
		last = max(last, m.End)
	}
	see(end)
	start := widest.Start + (widest.End-widest.Start)/4&^(1<<20-1)
	return machine.Range{Start: start, End: min(widest.End, start+maxAllocated)}
}

// ReadMemory implements [machine.Memory].
func (o *Overlay) ReadMemory(p []byte, addr machine.Addr) error {
	if o.unreadable {
		return fmt.Errorf("%v cannot be read", addr)
	}
	for len(p) > 0 {
		at := addr &^ (PageSize - 1)
		n := int(min(machine.Addr(len(p)), at+PageSize-addr))
		if end := addr + machine.Addr(n); o.room.Contains(addr) && end > o.next {
			return fmt.Errorf("%v was not allocated", max(addr, o.next))
		}
		if mine := o.pages[at]; mine != nil {
			copy(p[:n], mine.data[addr-at:])
		} else if o.room.Contains(addr) {
			clear(p[:n])
		} else if err := o.below.ReadMemory(p[:n], addr); err != nil {
			return err
		}
		p, addr = p[n:], addr+machine.Addr(n)
	}
	return nil
}

// Writable returns the reason why a range cannot be written to, or nil.
func (o *Overlay) Writable(r machine.Range) error {
	if r.End < r.Start {
		return fmt.Errorf("%v and %d bytes end outside of the address space", r.Start, uint64(r.End-r.Start))
	}
	if o.room.Contains(r.Start) && r.End <= o.next {
		return nil
	}
	for at := r.Start; at < r.End; {
		k, found := slices.BinarySearchFunc(o.maps, at, func(m machine.Mapping, at machine.Addr) int {
			switch {
			case m.End <= at:
				return -1
			case m.Start > at:
				return 1
			}
			return 0
		})
		switch {
		case !found:
			return fmt.Errorf("%v is not mapped", at)
		case !o.maps[k].Write:
			return fmt.Errorf("%v is not writable", at)
		}
		at = o.maps[k].End
	}
	return nil
}

// Write stores bytes. The caller must have checked that the range is writable.
func (o *Overlay) Write(data []byte, addr machine.Addr) error {
	o.writes++
	if o.observe != nil {
		o.observe(addr, data)
	}
	for len(data) > 0 {
		at := addr &^ (PageSize - 1)
		n := int(min(machine.Addr(len(data)), at+PageSize-addr))
		mine, err := o.page(at)
		if err != nil {
			return err
		}
		copy(mine.data[addr-at:], data[:n])
		for i := int(addr - at); i < int(addr-at)+n; i++ {
			mine.stored[i/8] |= 1 << (i % 8)
		}
		data, addr = data[n:], addr+machine.Addr(n)
	}
	return nil
}

// page returns the copy of a page, and makes it if needed.
func (o *Overlay) page(at machine.Addr) (*page, error) {
	mine := o.pages[at]
	if mine != nil && mine.owner == o {
		return mine, nil
	}
	if mine != nil {
		is := *mine
		is.owner = o
		o.pages[at] = &is
		return &is, nil
	}
	if len(o.pages) >= maxPages {
		return nil, fmt.Errorf("over %d MiB were written", maxPages*PageSize>>20)
	}
	mine = &page{owner: o}
	if !o.room.Contains(at) {
		if err := o.below.ReadMemory(mine.data[:], at); err != nil {
			return nil, err
		}
		was := mine.data
		mine.was = &was
	}
	o.pages[at] = mine
	return mine, nil
}

// Allocate returns the address of new memory, filled with zeros.
func (o *Overlay) Allocate(size uint64, align uint64) (machine.Addr, error) {
	if align == 0 {
		align = 16
	}
	if align&(align-1) != 0 || align > PageSize {
		return 0, fmt.Errorf("an alignment of %d: must be a power of two up to %d", align, PageSize)
	}
	at := (o.next + machine.Addr(align) - 1) &^ (machine.Addr(align) - 1)
	size = max(size, 1) // so that each allocation has its own address
	if at >= o.room.End || size > uint64(o.room.End-at) {
		return 0, fmt.Errorf("%d bytes: allocations together have at most %d MiB", size, maxAllocated>>20)
	}
	o.next = at + machine.Addr(size)
	o.blocks = append(o.blocks, machine.Range{Start: at, End: o.next})
	return at, nil
}

// AllocateFromSecondHalf makes the overlay allocate from the second half of its room. Its objects then have other addresses than those of an overlay
// of the same target that allocates only from the first half.
func (o *Overlay) AllocateFromSecondHalf() { o.next += maxAllocated / 2 }

// MakeUnreadable makes all memory unreadable from now on.
func (o *Overlay) MakeUnreadable() { o.unreadable = true }

// Full makes all further allocations fail.
func (o *Overlay) Full() { o.room.End = o.next }

// Made reports whether an address is in allocated memory.
func (o *Overlay) Made(addr uint64) bool { return o.room.Contains(machine.Addr(addr)) }

// Block returns the allocated range that contains an address.
func (o *Overlay) Block(addr machine.Addr) (machine.Range, bool) {
	k, _ := slices.BinarySearchFunc(o.blocks, addr, func(b machine.Range, at machine.Addr) int {
		if b.End <= at {
			return -1
		}
		return 1
	})
	if k < len(o.blocks) && o.blocks[k].Contains(addr) {
		return o.blocks[k], true
	}
	return machine.Range{}, false
}

// Allocated returns the number of allocated bytes.
func (o *Overlay) Allocated() uint64 { return uint64(o.next - o.room.Start) }

// Writes returns the number of written ranges.
func (o *Overlay) Writes() int { return o.writes }

// Stored is a page that was stored to.
type Stored struct {
	Addr machine.Addr
	Data []byte // the PageSize bytes of the page
	Was  []byte // the content in the target; nil for allocated memory
	Bits []byte // a bit for each byte of Data, from the first: set if the byte was stored to
}

// Stored yields the pages of the target that were stored to, in ascending order.
func (o *Overlay) Stored() iter.Seq[Stored] {
	return func(yield func(Stored) bool) {
		for _, at := range slices.Sorted(maps.Keys(o.pages)) {
			if !o.room.Contains(at) && !yield(o.stored(at)) {
				return
			}
		}
	}
}

// StoredAt returns the page that contains an address, if the page was stored to.
func (o *Overlay) StoredAt(addr machine.Addr) (Stored, bool) {
	at := addr &^ (PageSize - 1)
	if o.pages[at] == nil {
		return Stored{}, false
	}
	return o.stored(at), true
}

func (o *Overlay) stored(at machine.Addr) Stored {
	p := o.pages[at]
	s := Stored{Addr: at, Data: p.data[:], Bits: p.stored[:]}
	if p.was != nil {
		s.Was = p.was[:]
	}
	return s
}
