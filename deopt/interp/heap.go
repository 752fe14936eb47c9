package interp

import (
	"bytes"
	"errors"
	"fmt"
	"maps"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
)

// ranges holds the start of each address range of the interpreter; each range ends at the next. See the package comment.
type ranges struct{ heap, stack, globals, fixed, unknown, text, end machine.Addr }

// wideRanges holds the ranges of modules whose pointers have 64 bits.
var wideRanges = ranges{
	heap: 0x4000_0000_0000_0000, stack: 0x4800_0000_0000_0000, globals: 0x5000_0000_0000_0000, fixed: 0x5400_0000_0000_0000,
	unknown: 0x5800_0000_0000_0000, text: 0x6000_0000_0000_0000, end: 0x8000_0000_0000_0000,
}

// narrowRanges holds the ranges for modules whose pointers have 32 bits. They lie below 2 GiB, so that no sum of two addresses carries, and the
// first pages of each use different entries of [view].recent.
var narrowRanges = ranges{
	heap: 0x0800_0000, stack: 0x500c_0000, globals: 0x6018_0000, fixed: 0x6c24_0000,
	unknown: 0x7830_0000, text: 0x7c3c_0000, end: 0x7fe0_0000,
}

// own reports whether addr lies in the interpreter's address ranges.
func (r *ranges) own(addr machine.Addr) bool { return addr-r.heap < r.end-r.heap }

// gap separates neighbouring allocations, so that an access just past one fails.
const gap = 16

// area is a range that is allocated from its start upwards.
type area struct {
	v         *view
	next, end machine.Addr
}

// take makes size bytes accessible at the next aligned address, either zero or undefined. align is a power of two.
func (a *area) take(size uint64, align int, zero bool) (machine.Addr, error) {
	if size > a.v.limit { // prevents overflow of the sums below
		return 0, a.v.charge(size)
	}
	addr := alignUp(a.next, align)
	if addr < a.next || addr >= a.end || machine.Addr(size)+gap > a.end-addr {
		return 0, errUsedUp
	}
	if err := a.v.charge(pageSize * a.v.absent(addr, size)); err != nil {
		return 0, err
	}
	a.next = addr + machine.Addr(size) + gap
	a.v.open(addr, size, zero)
	return addr, nil
}

var errUsedUp = troublef(KindMemory, "the interpreter has no free addresses left")

// entryCost is the number of bytes charged for the record of an allocation.
const entryCost = 32

// allot is take for memory that is released individually: it also charges for the record of the allocation.
func (a *area) allot(size uint64, align int, zero bool) (machine.Addr, error) {
	if err := a.v.charge(entryCost); err != nil {
		return 0, err
	}
	addr, err := a.take(size, max(align, 16), zero)
	if err != nil {
		a.v.release(entryCost)
	}
	return addr, err
}

// absent counts the pages of the range that the view does not have yet. Memory is charged by the page, because a block that is alone on a page keeps
// the whole page allocated.
func (v *view) absent(addr machine.Addr, size uint64) (n uint64) {
	if size == 0 {
		return 0
	}
	for at := uint64(addr) >> pageBits; at <= (uint64(addr)+size-1)>>pageBits; at++ {
		if v.lookup(machine.Addr(at<<pageBits)) == nil {
			n++
		}
	}
	return n
}

func alignUp(addr machine.Addr, align int) machine.Addr {
	m := machine.Addr(max(align, 1) - 1)
	return (addr + m) &^ m
}

// open makes bytes of the interpreter's own memory accessible, as zeros or undefined. The caller has already charged for them.
func (v *view) open(addr machine.Addr, size uint64, zero bool) {
	for size > 0 {
		off := int(addr % pageSize)
		n := int(min(size, pageSize-uint64(off)))
		p := v.lookup(addr)
		if p == nil {
			p = &page{shadow: allUndefined}
			if addr >= v.ranges.fixed && addr < v.ranges.unknown {
				p.kind = fixedPage
			}
			v.pages[uint64(addr)>>pageBits] = p
			if addr >= v.ranges.stack && addr < v.ranges.globals {
				v.kept = append(v.kept, uint64(addr)>>pageBits)
			}
		}
		p.setValid(off, n, true)
		clear(p.data[off : off+n])
		if zero {
			clear(p.shadow[off : off+n])
		} else {
			copy(p.shadow[off:off+n], allUndefined[:])
		}
		addr, size = addr+machine.Addr(n), size-uint64(n)
	}
}

// allUndefined is the shadow of allocated memory that was never written.
var allUndefined = [pageSize]byte(bytes.Repeat([]byte{0xff}, pageSize))

// shut makes bytes of the interpreter's own memory inaccessible again. It drops a page without accessible bytes, unless keep is set. The stack sets
// keep because it soon needs its pages again.
func (v *view) shut(addr machine.Addr, size uint64, keep bool) {
	for size > 0 {
		off := int(addr % pageSize)
		n := int(min(size, pageSize-uint64(off)))
		if p := v.lookup(addr); p != nil {
			p.setValid(off, n, false)
			copy(p.shadow[off:off+n], allUndefined[:])
			if !keep && p.valid == [pageSize / 64]uint64{} {
				v.drop(uint64(addr) >> pageBits)
				v.release(pageSize)
			}
		}
		addr, size = addr+machine.Addr(n), size-uint64(n)
	}
}

// trim drops the stack's pages above the page of an address, except for the first keep of them.
func (v *view) trim(from machine.Addr, keep int) {
	last := uint64(from) >> pageBits
	for n := len(v.kept); n > keep && v.kept[n-1-keep] > last && v.kept[n-1] > last; n-- {
		v.drop(v.kept[n-1])
		v.release(pageSize)
		v.kept = v.kept[:n-1]
	}
}

// heap allocates memory for malloc and related functions. It reuses no address until it has used the whole range once, so that accesses through
// pointers to freed memory fail. Reuse is needed for 32-bit pointers, because a program can exhaust their range.
type heap struct {
	area
	whole area // the whole address range of the heap
	sizes map[machine.Addr]uint64
	work  func(bytes uint64) error
}

func (h *heap) alloc(size uint64, align int, zero bool) (machine.Addr, error) {
	addr, err := h.allot(size, align, zero)
	if errors.Is(err, errUsedUp) {
		if err = h.again(); err == nil {
			addr, err = h.allot(size, align, zero)
		}
	}
	if err == nil {
		h.sizes[addr] = size
	}
	return addr, err
}

// again restarts allocation in the largest gap between the existing blocks.
func (h *heap) again() error {
	if err := h.work(64 * uint64(len(h.sizes))); err != nil {
		return err
	}
	end := h.whole.next // end of the blocks visited so far
	h.next, h.end = end, end
	widen := func(to machine.Addr) {
		if to > end && to-end > h.end-h.next {
			h.next, h.end = end, to
		}
	}
	for _, a := range slices.Sorted(maps.Keys(h.sizes)) {
		widen(a)
		end = a + machine.Addr(h.sizes[a]) + gap
	}
	widen(h.whole.end)
	return nil
}

// free releases a block that alloc returned. For a block of the target's heap it does nothing, because only the target's allocator knows the size of
// the block.
func (h *heap) free(addr machine.Addr) error {
	if addr == 0 || !h.v.ranges.own(addr) {
		return nil
	}
	size, ok := h.sizes[addr]
	if !ok {
		return troublef(KindFault, "free of %v, which malloc did not return, or which was freed before", addr)
	}
	delete(h.sizes, addr)
	h.v.shut(addr, size, false)
	h.v.release(entryCost)
	return nil
}

// stack allocates memory for alloca.
type stack struct {
	area
	live []span
	top  machine.Addr // the highest end of an allocation so far
}

type span struct {
	addr  machine.Addr
	size  uint64
	kept  bool // released when its frame is popped, but not by a stackrestore
	fixed bool // an alloca in the entry block, with a constant size
}

func (s *stack) alloc(size uint64, align int) (machine.Addr, error) {
	addr, err := s.allot(size, align, false)
	if err == nil {
		s.live = append(s.live, span{addr: addr, size: size})
		s.top = max(s.top, s.next)
	}
	return addr, err
}

// holding returns the allocation that contains an address.
func (s *stack) holding(addr machine.Addr) (span, bool) {
	n := sort.Search(len(s.live), func(k int) bool { return s.live[k].addr > addr })
	if n == 0 || uint64(addr-s.live[n-1].addr) >= s.live[n-1].size {
		return span{}, false
	}
	return s.live[n-1], true
}

// unwind releases all allocations from index n on.
func (s *stack) unwind(n int) {
	for len(s.live) > n {
		last := s.live[len(s.live)-1]
		s.v.shut(last.addr, last.size, true)
		s.v.release(entryCost)
		s.next = last.addr
		s.live = s.live[:len(s.live)-1]
	}
	s.v.trim(s.next, keptPages)
}

// keptPages is the number of unused pages that the stack keeps for later calls.
const keptPages = 64

// unknown allocates addresses for globals whose value is unknown. Every access to them fails.
type unknown struct {
	next, end machine.Addr
	spans     []unknownSpan
}

type unknownSpan struct {
	span
	why string
}

func (u *unknown) reserve(size uint64, why string) (machine.Addr, error) {
	addr := u.next
	next := alignUp(addr+machine.Addr(min(size, 1<<40))+gap, pageSize)
	if next > u.end {
		return 0, errUsedUp
	}
	u.next = next
	u.spans = append(u.spans, unknownSpan{span{addr: addr, size: size}, why})
	return addr, nil
}

// explain returns why an access to an address fails.
func (in *Interp) explain(addr machine.Addr) string {
	r := in.view.ranges
	switch {
	case addr < pageSize:
		return "a null pointer, or an address near null"
	case !r.own(addr):
		return "there is no target, and the address is not in the interpreter's own memory"
	case addr >= r.text:
		return "the address of code cannot be read or written"
	case addr >= r.unknown:
		s := in.unknown.spans
		if i := sort.Search(len(s), func(i int) bool { return s[i].addr > addr }); i > 0 {
			return s[i-1].why
		}
		return "outside of every external global"
	case addr >= r.globals:
		return "outside of every global"
	case addr >= r.stack:
		return "outside of every alloca of the running functions"
	}
	keys := make([]machine.Addr, 0, len(in.heap.sizes))
	for a := range in.heap.sizes {
		if a <= addr {
			keys = append(keys, a)
		}
	}
	if len(keys) > 0 {
		below := slices.Max(keys)
		if over := uint64(addr-below) - in.heap.sizes[below]; uint64(addr-below) >= in.heap.sizes[below] && over < gap {
			return fmt.Sprintf("%d bytes past the end of the %d bytes allocated at %v", over, in.heap.sizes[below], below)
		}
	}
	return "outside of every block of malloc, or in a freed one"
}
