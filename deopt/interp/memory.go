package interp

import (
	"errors"
	"math/bits"

	"example.com/reframe/internal/machine"
)

const (
	pageBits = 12
	pageSize = 1 << pageBits
)

// page is 4 KiB of the view: a copy of a page of the target, or a page of the interpreter's own memory.
type page struct {
	data [pageSize]byte
	// shadow marks the undefined bits of data. All bits of an inaccessible byte are marked, so a byte without marked bits is accessible.
	shadow [pageSize]byte
	valid  [pageSize / 64]uint64 // a bit for each accessible byte
	kind   pageKind
	stored *[pageSize / 8]byte // a bit for each byte of a targetPage that was stored to: see [Touched]
}

type pageKind uint8

const (
	ownPage    pageKind = iota
	targetPage          // stores are counted; a byte that the target could not supply is read again at its next access
	fixedPage           // holds constants, which no store may change
)

// allows reports whether bytes [off, off+n) are accessible.
func (p *page) allows(off, n int) bool {
	for n > 0 {
		have := p.valid[off/64] >> uint(off%64)
		run := min(n, 64-off%64)
		if bits.TrailingZeros64(^have) < run {
			return false
		}
		off, n = off+run, n-run
	}
	return true
}

// setValid makes bytes [off, off+n) accessible or inaccessible.
func (p *page) setValid(off, n int, on bool) {
	for n > 0 {
		run := min(n, 64-off%64)
		m := maskAt(run, 0) << uint(off%64)
		if on {
			p.valid[off/64] |= m
		} else {
			p.valid[off/64] &^= m
		}
		off, n = off+run, n-run
	}
}

// note records that bytes [off, off+n) of a targetPage were stored to, even if the store did not change them.
func (p *page) note(off, n int) {
	if p.stored == nil {
		p.stored = new([pageSize / 8]byte)
	}
	for n > 0 {
		run := min(n, 8-off%8)
		p.stored[off/8] |= byte((1<<run - 1) << (off % 8))
		off, n = off+run, n-run
	}
}

// view is the memory of a run: copies of the target's pages, made at their first access, and memory that the interpreter allocated.
type view struct {
	target      machine.Memory
	ranges      *ranges
	pages       map[uint64]*page
	recent      [recentPages]recentPage // a cache of pages, indexed by recentAt
	used, limit uint64
	writes      int      // number of stores to the target's addresses
	unlocked    bool     // stores to constants are allowed while initializers are written
	kept        []uint64 // numbers of the stack's pages, also of those without live allocations
	why         func(addr machine.Addr) string
}

// recentPages is the number of pages in the cache.
const recentPages = 1024

type recentPage struct {
	number uint64 // page number plus one; 0 for an empty entry
	page   *page
}

// recentAt returns the index of a page in the cache. The interpreter's ranges differ only from bit 47 on and start at low numbers, so these bits are
// mixed in.
func recentAt(number uint64) uint64 { return (number + number>>47*37) % recentPages }

// hot returns the page of addr if it is in the cache, else nil.
func (v *view) hot(addr uint64) *page {
	number := addr >> pageBits
	if r := &v.recent[recentAt(number)]; r.number == number+1 {
		return r.page
	}
	return nil
}

// hotOwn is hot for stores. It returns only pages on which stores need no counting and no check for constants.
func (v *view) hotOwn(addr uint64) *page {
	if p := v.hot(addr); p != nil && p.kind == ownPage {
		return p
	}
	return nil
}

func (v *view) charge(n uint64) error {
	if n > v.limit-v.used {
		return troublef(KindMemory, "the program needs more than %d bytes of memory", v.limit)
	}
	v.used += n
	return nil
}

func (v *view) release(n uint64) { v.used -= min(n, v.used) }

// lookup returns the page of addr, or nil if the view does not have it yet.
func (v *view) lookup(addr machine.Addr) *page {
	number := uint64(addr) >> pageBits
	slot := &v.recent[recentAt(number)]
	if slot.number == number+1 {
		return slot.page
	}
	p := v.pages[number]
	if p != nil {
		slot.number, slot.page = number+1, p
	}
	return p
}

func (v *view) drop(number uint64) {
	delete(v.pages, number)
	if slot := &v.recent[recentAt(number)]; slot.number == number+1 {
		slot.number, slot.page = 0, nil
	}
}

// reach returns the number of bytes at addr, at most n and within its page, that may be accessible. It does not read the target, so it counts all
// bytes of a target's page.
func (v *view) reach(addr machine.Addr, n uint64) uint64 {
	off := uint64(addr % pageSize)
	n = min(n, pageSize-off)
	p := v.lookup(addr)
	if p == nil || p.kind == targetPage {
		return n
	}
	have := uint64(0)
	for have < n {
		at := off + have
		run := uint64(bits.TrailingZeros64(^(p.valid[at/64] >> (at % 64)))) // number of ones from bit at%64 on
		have += run
		if run < 64-at%64 {
			break
		}
	}
	return min(have, n)
}

// touch makes bytes [addr, addr+n) accessible, which must lie in one page, and returns the page. It reads them from the target if necessary.
func (v *view) touch(addr machine.Addr, n int, write bool) (*page, error) {
	p := v.lookup(addr)
	off := int(addr % pageSize)
	if p != nil && p.allows(off, n) {
		if write && p.kind == fixedPage && !v.unlocked {
			return nil, &trouble{KindFault, &FaultError{Addr: addr, Size: uint64(n), Write: write, Why: "a constant"}}
		}
		return p, nil
	}
	if v.ranges.own(addr) || v.target == nil {
		return nil, &trouble{KindFault, &FaultError{Addr: addr, Size: uint64(n), Write: write, Why: v.why(addr)}}
	}
	if p == nil {
		var err error
		if p, err = v.fetch(addr); err != nil {
			return nil, err
		}
	}
	if p.allows(off, n) {
		return p, nil
	}
	if err := p.fill(v.target, addr, n); err != nil {
		return nil, &trouble{KindFault, &FaultError{Addr: addr, Size: uint64(n), Write: write, Why: reason(err), Err: err}}
	}
	return p, nil
}

// fetch copies a page of the target. If the target cannot supply the whole page, because a snapshot contains only pieces, the copy starts empty and
// later accesses read single bytes.
func (v *view) fetch(addr machine.Addr) (*page, error) {
	if err := v.charge(pageSize); err != nil {
		return nil, err
	}
	p := &page{kind: targetPage, shadow: allUndefined}
	if v.target.ReadMemory(p.data[:], addr&^(pageSize-1)) != nil {
		clear(p.data[:])
	} else {
		p.setValid(0, pageSize, true)
		clear(p.shadow[:])
	}
	v.pages[uint64(addr)>>pageBits] = p
	return p, nil
}

// fill reads those of the bytes [addr, addr+n) from the target that are not accessible yet. Bytes that the run stored are accessible, so they stay.
func (p *page) fill(target machine.Memory, addr machine.Addr, n int) error {
	fresh := make([]byte, n)
	if err := target.ReadMemory(fresh, addr); err != nil {
		return err
	}
	off := int(addr % pageSize)
	for i, b := range fresh {
		if !p.allows(off+i, 1) {
			p.data[off+i], p.shadow[off+i] = b, 0
			p.setValid(off+i, 1, true)
		}
	}
	return nil
}

func reason(err error) string {
	var m *machine.MemoryError
	if errors.As(err, &m) {
		return m.Why
	}
	return err.Error()
}

// read copies len(data) bytes from addr, and marks their undefined bits in shadow, which is as long as data. If shadow is nil, an undefined bit is an
// error.
func (v *view) read(data, shadow []byte, addr machine.Addr) error {
	return v.each(addr, uint64(len(data)), false, func(p *page, off, at, n int) error {
		copy(data[at:at+n], p.data[off:])
		switch {
		case shadow == nil:
			for i, u := range p.shadow[off : off+n] {
				if u != 0 {
					return undefined("the byte at %v", addr+machine.Addr(at+i))
				}
			}
		default:
			copy(shadow[at:at+n], p.shadow[off:])
		}
		return nil
	})
}

// write stores data at addr. shadow marks the undefined bits of data; nil means that all bits are known.
func (v *view) write(addr machine.Addr, data, shadow []byte) error {
	return v.counted(addr, v.put(addr, data, shadow))
}

// put is write, but does not count the store.
func (v *view) put(addr machine.Addr, data, shadow []byte) error {
	return v.each(addr, uint64(len(data)), true, func(p *page, off, at, n int) error {
		if p.kind == targetPage {
			p.note(off, n)
		}
		copy(p.data[off:off+n], data[at:])
		p.setShadow(off, n, shadow, at)
		return nil
	})
}

// check returns an error if any of n bytes at addr cannot be accessed. Callers check before they allocate a buffer of n bytes.
func (v *view) check(addr machine.Addr, n uint64, write bool) error {
	return v.each(addr, n, write, func(*page, int, int, int) error { return nil })
}

// counted counts a store at addr if the address is the target's and err is nil. It returns err.
func (v *view) counted(addr machine.Addr, err error) error {
	if err == nil && !v.ranges.own(addr) {
		v.writes++
	}
	return err
}

// fill stores the byte b, which may have undefined bits, n times at addr.
func (v *view) fill(addr machine.Addr, b word, n uint64) error {
	return v.counted(addr, v.each(addr, n, true, func(p *page, off, _, n int) error {
		if p.kind == targetPage {
			p.note(off, n)
		}
		for k := off; k < off+n; k++ {
			p.data[k], p.shadow[k] = byte(b.v), byte(b.u)
		}
		return nil
	}))
}

// move copies n bytes and their undefined bits; the ranges may overlap. It copies one page at a time, so that its buffer is small.
func (v *view) move(to, from machine.Addr, n uint64) error {
	if err := v.check(from, n, false); err != nil {
		return err
	}
	if err := v.check(to, n, true); err != nil {
		return err
	}
	data, shadow := make([]byte, min(n, pageSize)), make([]byte, min(n, pageSize))
	for done := uint64(0); done < n; {
		run := min(n-done, pageSize)
		at := machine.Addr(done)
		if to > from { // copy from the end, because the store could overwrite bytes that are not read yet
			at = machine.Addr(n - done - run)
		}
		if err := v.read(data[:run], shadow[:run], from+at); err != nil {
			return err
		}
		if err := v.put(to+at, data[:run], shadow[:run]); err != nil {
			return err
		}
		done += run
	}
	return v.counted(to, nil)
}

func (p *page) setShadow(off, n int, shadow []byte, at int) {
	if shadow == nil {
		clear(p.shadow[off : off+n])
	} else {
		copy(p.shadow[off:off+n], shadow[at:])
	}
}

// each calls visit for each page of [addr, addr+n). Before the first visit it checks that all pages are accessible, so that a failed store stores
// nothing.
func (v *view) each(addr machine.Addr, n uint64, write bool, visit func(p *page, off, at, n int) error) error {
	if n == 0 {
		return nil
	}
	off := int(addr % pageSize)
	if uint64(off)+n <= pageSize {
		p, err := v.touch(addr, int(n), write)
		if err != nil {
			return err
		}
		return visit(p, off, 0, int(n))
	}
	if uint64(addr)+n < n {
		return &trouble{KindFault, &FaultError{Addr: addr, Size: n, Write: write, Why: "past the end of the address space"}}
	}
	if n > v.limit {
		return troublef(KindMemory, "an access of %d bytes is more than the %d bytes of memory allowed", n, v.limit)
	}
	for pass := range 2 {
		for at := uint64(0); at < n; {
			a := addr + machine.Addr(at)
			run := min(n-at, pageSize-uint64(a%pageSize))
			p, err := v.touch(a, int(run), write)
			if err == nil && pass == 1 {
				err = visit(p, int(a%pageSize), int(at), int(run))
			}
			if err != nil {
				return err
			}
			at += run
		}
	}
	return nil
}
