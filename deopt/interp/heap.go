package interp

import (
	"bytes"
	"fmt"
	"slices"
	"sort"

	"reframe/deopt/machine"
)

// The interpreter's own ranges. See the package comment.
const (
	heapBase    machine.Addr = 0x4000_0000_0000_0000
	stackBase   machine.Addr = 0x4800_0000_0000_0000
	globalBase  machine.Addr = 0x5000_0000_0000_0000
	fixedBase   machine.Addr = 0x5400_0000_0000_0000
	unknownBase machine.Addr = 0x5800_0000_0000_0000
	textBase    machine.Addr = 0x6000_0000_0000_0000
)

// gap keeps neighbours apart, so that an access just past one is found.
const gap = 16

// area is a range that is handed out from its start upwards.
type area struct {
	v    *view
	next machine.Addr
}

// take makes [addr, addr+size) accessible at the next aligned address, zero or
// undefined. align is a power of two.
func (a *area) take(size uint64, align int, zero bool) (machine.Addr, error) {
	if size > a.v.limit { // and so the sum below cannot wrap
		return 0, a.v.charge(size)
	}
	if err := a.v.charge(size + gap); err != nil {
		return 0, err
	}
	addr := alignUp(a.next, align)
	a.next = addr + machine.Addr(size) + gap
	a.v.open(addr, size, zero)
	return addr, nil
}

func alignUp(addr machine.Addr, align int) machine.Addr {
	m := machine.Addr(max(align, 1) - 1)
	return (addr + m) &^ m
}

// open makes own bytes accessible; their charge is the caller's.
func (v *view) open(addr machine.Addr, size uint64, zero bool) {
	for size > 0 {
		off := int(addr % pageSize)
		n := int(min(size, pageSize-uint64(off)))
		p := v.lookup(addr)
		if p == nil {
			p = &page{shadow: allUndefined}
			if addr >= fixedBase && addr < unknownBase {
				p.kind = fixedPage
			}
			v.pages[uint64(addr)>>pageBits] = p
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

// allUndefined is the shadow of memory that was given and not written.
var allUndefined = [pageSize]byte(bytes.Repeat([]byte{0xff}, pageSize))

// shut makes own bytes inaccessible again. Pages that have none left are let go
// unless keep is set: the stack needs them again soon.
func (v *view) shut(addr machine.Addr, size uint64, keep bool) {
	for size > 0 {
		off := int(addr % pageSize)
		n := int(min(size, pageSize-uint64(off)))
		if p := v.lookup(addr); p != nil {
			p.setValid(off, n, false)
			copy(p.shadow[off:off+n], allUndefined[:])
			if !keep && p.valid == [pageSize / 64]uint64{} {
				v.drop(uint64(addr) >> pageBits)
			}
		}
		addr, size = addr+machine.Addr(n), size-uint64(n)
	}
}

// heap is what malloc and its kin hand out. Addresses are never used twice, so
// that a pointer to freed memory is found.
type heap struct {
	area
	sizes map[machine.Addr]uint64
}

func (h *heap) alloc(size uint64, align int, zero bool) (machine.Addr, error) {
	addr, err := h.take(size, max(align, 16), zero)
	if err == nil {
		h.sizes[addr] = size
	}
	return addr, err
}

// free lets go of what alloc gave. Memory of the target's own heap stays as it
// is in the view: its extent is the target's allocator's to know.
func (h *heap) free(addr machine.Addr) error {
	if addr == 0 || !own(addr) {
		return nil
	}
	size, ok := h.sizes[addr]
	if !ok {
		return &trouble{KindFault, &FaultError{Addr: addr, Write: true, Why: "free of what malloc did not return, or freed before"}}
	}
	delete(h.sizes, addr)
	h.v.shut(addr, size, false)
	h.v.release(size + gap)
	return nil
}

// stack is where alloca takes its memory.
type stack struct {
	area
	live []span
}

type span struct {
	addr machine.Addr
	size uint64
	kept bool // until its frame is left, also by a stackrestore
}

func (s *stack) alloc(size uint64, align int) (machine.Addr, error) {
	addr, err := s.take(size, max(align, 16), false)
	if err == nil {
		s.live = append(s.live, span{addr: addr, size: size})
	}
	return addr, err
}

// unwind gives back all but the first n allocations.
func (s *stack) unwind(n int) {
	for len(s.live) > n {
		last := s.live[len(s.live)-1]
		s.v.shut(last.addr, last.size, true)
		s.v.release(last.size + gap)
		s.next = last.addr
		s.live = s.live[:len(s.live)-1]
	}
}

// unknown is the range of globals whose value cannot be known.
type unknown struct {
	next  machine.Addr
	spans []unknownSpan
}

type unknownSpan struct {
	span
	why string
}

func (u *unknown) reserve(size uint64, why string) machine.Addr {
	addr := u.next
	u.next = alignUp(addr+machine.Addr(min(size, 1<<40))+gap, pageSize)
	u.spans = append(u.spans, unknownSpan{span{addr: addr, size: size}, why})
	return addr
}

// explain says why an address that the view refuses is refused.
func (in *Interp) explain(addr machine.Addr) string {
	switch {
	case addr < pageSize:
		return "a null pointer, or one near null"
	case !own(addr):
		return "there is no target, and the address is none of the interpreter's own"
	case addr >= textBase:
		return "the address of code cannot be read or written"
	case addr >= unknownBase:
		s := in.unknown.spans
		if i := sort.Search(len(s), func(i int) bool { return s[i].addr > addr }); i > 0 {
			return s[i-1].why
		}
		return "no global is there"
	case addr >= globalBase:
		return "outside of every global"
	case addr >= stackBase:
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
	return "outside of what malloc gave, or freed"
}
