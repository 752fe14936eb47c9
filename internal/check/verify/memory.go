package verify

import (
	"bytes"
	"cmp"
	"encoding/binary"
	"fmt"
	"iter"
	"slices"
	"sort"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/machine"
)

// Memory is copied and compared in blocks, or in pages if a block cannot be read as a whole.
const (
	imageBlock = 64 << 10
	imagePage  = interp.PageSize

	defaultImageLimit = 1 << 30

	// Larger mappings are reserved for bookkeeping, such as the terabytes of AddressSanitizer's shadow. They have too many pages to query.
	maxImageMapping = 64 << 30
	maxImage        = 256 << 30 // bounds the size of all copied mappings together
)

// memoryImage is a copy of writable memory. Blocks of zeros take no space.
type memoryImage struct {
	ranges []imageRange
	blocks []memoryBlock   // in ascending order
	zero   untouched       // ranges without blocks that are zero because the process never touched them
	shared []machine.Range // mappings that are shared
	larger []machine.Range // mappings larger than maxImageMapping, which are not copied
}

// imageRange is a mapping. Other processes may store into a shared mapping.
type imageRange struct {
	machine.Range
	shared bool
}

type memoryBlock struct {
	addr     machine.Addr
	size     int
	data     []byte // nil: all zero
	missing  uint16 // a bit for each page that could not be read
	unmapped uint16 // the pages in missing that native code has since unmapped
	zero     bool   // the block represents untouched memory; it is made for a comparison, and is in no image
	shared   bool
}

// copyImage copies the writable mappings of maps, which are in ascending order, except those larger than maxImageMapping. If they have more than
// limit bytes that are not zero (0: 1 GiB), it copies nothing and returns an error. The copy shares memory that equals an earlier image, which may be
// nil, with that image.
func copyImage(mem machine.Memory, maps []machine.Mapping, limit uint64, earlier *memoryImage) (*memoryImage, error) {
	if limit == 0 {
		limit = defaultImageLimit
	}
	img := &memoryImage{}
	used, writable := uint64(0), uint64(0)
	for _, m := range maps {
		if m.Write && m.Read && m.End-m.Start > maxImageMapping {
			img.larger = append(img.larger, machine.Range{Start: m.Start, End: m.End})
			continue
		}
		if m.Write && m.Read {
			img.ranges = append(img.ranges, imageRange{machine.Range{Start: m.Start &^ (imagePage - 1), End: m.End &^ (imagePage - 1)}, m.Share})
			writable += uint64(m.End - m.Start)
			if m.Share {
				img.shared = append(img.shared, machine.Range{Start: m.Start, End: m.End})
			}
		}
	}
	if writable > maxImage {
		return nil, fmt.Errorf("the process has %d GiB of writable memory, more than the limit of %d GiB", writable>>30, maxImage>>30)
	}
	buf := make([]byte, imageBlock)
	zero := untouchedOf(mem)
	for _, r := range img.ranges {
		for at := r.Start; at < r.End; {
			n := int(min(uint64(r.End-at), imageBlock-uint64(at)%imageBlock))
			b := memoryBlock{addr: at, size: n, shared: r.shared}
			if zero.holds(at, n) {
				end := min(zero.endOf(at), r.End)
				if end < r.End {
					end &^= imageBlock - 1
				}
				img.zero = append(img.zero, machine.Range{Start: at, End: end})
				at = end
				continue
			}
			b.missing = readPages(mem, buf[:n], at)
			if !bytes.Equal(buf[:n], zeroBlock[:n]) {
				if used += uint64(n); used > limit {
					return nil, fmt.Errorf("the process has %d KiB of writable memory, and more than %d KiB are in use", writable>>10, limit>>10)
				}
				if b.data = earlier.same(at, buf[:n]); b.data == nil {
					b.data = bytes.Clone(buf[:n])
				}
			}
			img.blocks = append(img.blocks, b)
			at += machine.Addr(n)
		}
	}
	return img, nil
}

// sharedAt reports whether an address lies in a shared mapping.
func (img *memoryImage) sharedAt(addr machine.Addr) bool {
	return slices.ContainsFunc(img.shared, func(r machine.Range) bool { return r.Contains(addr) })
}

// block returns the block that addr lies in, or nil.
func (img *memoryImage) block(addr machine.Addr) *memoryBlock {
	if img == nil {
		return nil
	}
	if i := img.index(addr); i >= 0 {
		return &img.blocks[i]
	}
	return nil
}

// index returns the index of the block that contains an address, or -1.
func (img *memoryImage) index(addr machine.Addr) int {
	if i := img.blockFrom(addr); i < len(img.blocks) && img.blocks[i].addr <= addr {
		return i
	}
	return -1
}

// blockFrom returns the index of the first block that ends after an address.
func (img *memoryImage) blockFrom(addr machine.Addr) int {
	return sort.Search(len(img.blocks), func(i int) bool { return img.blocks[i].addr+machine.Addr(img.blocks[i].size) > addr })
}

// same returns the image's bytes at an address if they equal the given block, or nil. A later image can then share them.
func (img *memoryImage) same(addr machine.Addr, block []byte) []byte {
	if b := img.block(addr); b != nil && b.addr == addr && bytes.Equal(b.data, block) {
		return b.data
	}
	return nil
}

// read reads the bytes at addr that lie in one page of the image, and returns their number: 0 if the image does not have the page.
func (img *memoryImage) read(p []byte, addr machine.Addr) (n int) {
	b := img.block(addr)
	if b == nil {
		if img == nil || !img.zero.holds(addr, 1) {
			return 0
		}
		n = min(len(p), imagePage-int(addr%imagePage), int(min(img.zero.endOf(addr)-addr, imagePage)))
		clear(p[:n])
		return n
	}
	at := int(addr - b.addr)
	if b.missing>>(at/imagePage)&1 != 0 {
		return 0
	}
	n = min(len(p), b.size-at, imagePage-at%imagePage)
	if b.data == nil {
		clear(p[:n])
	} else {
		copy(p[:n], b.data[at:])
	}
	return n
}

var zeroBlock [imageBlock]byte

// untouched holds parts of memory that are known to be zero, in ascending order.
type untouched []machine.Range

// untouchedOf returns the memory that the process never touched, or nil if mem does not know it ([ptrace.Target.Untouched]). It saves reading
// reserved heaps of gigabytes.
func untouchedOf(mem machine.Memory) untouched {
	if t, ok := mem.(interface{ Untouched() []machine.Range }); ok {
		return t.Untouched()
	}
	return nil
}

// holds reports whether size bytes at an address lie in one of the parts.
func (u untouched) holds(addr machine.Addr, size int) bool {
	i := u.index(addr)
	return i < len(u) && u[i].Start <= addr && addr+machine.Addr(size) <= u[i].End
}

func (u untouched) index(addr machine.Addr) int {
	return sort.Search(len(u), func(i int) bool { return u[i].End > addr })
}

// endOf returns the end of the part that contains an address.
func (u untouched) endOf(addr machine.Addr) machine.Addr { return u[u.index(addr)].End }

// with returns the union of both sets of parts.
func (u untouched) with(more untouched) (all untouched) {
	both := slices.Concat(u, more)
	slices.SortFunc(both, func(a, b machine.Range) int { return cmp.Compare(a.Start, b.Start) })
	for _, r := range both {
		if n := len(all); n > 0 && r.Start <= all[n-1].End {
			all[n-1].End = max(all[n-1].End, r.End)
			continue
		}
		all = append(all, r)
	}
	return all
}

// without returns the parts of a range that are not untouched.
func (u untouched) without(r machine.Range) (parts []machine.Range) {
	for i := u.index(r.Start); i < len(u) && u[i].Start < r.End; i++ {
		if u[i].Start > r.Start {
			parts = append(parts, machine.Range{Start: r.Start, End: u[i].Start})
		}
		r.Start = u[i].End
	}
	if r.Start < r.End {
		parts = append(parts, r)
	}
	return parts
}

// readPages reads a block, or the pages of it that can be read. missing has a bit for each unreadable page, whose bytes in p are zeroed.
func readPages(mem machine.Memory, p []byte, addr machine.Addr) (missing uint16) {
	if mem.ReadMemory(p, addr) == nil {
		return 0
	}
	for at := 0; at < len(p); at += imagePage {
		page := p[at:min(at+imagePage, len(p))]
		if mem.ReadMemory(page, addr+machine.Addr(at)) != nil {
			clear(page)
			missing |= 1 << (at / imagePage)
		}
	}
	return missing
}

// comparedMemory holds the differences of memory after both sides ran.
type comparedMemory struct {
	// why is the reason why memory cannot be compared, nil if it was.
	why   error
	Diffs []memoryDiff // in ascending order, at most maxDiffs
	Words uint64       // number of 8-byte words that differ, including those not in Diffs
}

// memoryDiff is a sequence of adjacent words of memory that differ.
type memoryDiff struct {
	Addr machine.Addr // a multiple of 8
	Size uint64       // bytes
	// Before has the bytes before both sides ran, Interp those that the interpreter left, Undefined the interpreter's undefined bits, and Native those
	// that native code left. Each has at most maxDiffBytes bytes from the start.
	Before, Interp, Undefined, Native []byte
}

// These bound the reported differences.
const (
	maxDiffs     = 100
	maxDiffBytes = 64
	diffWord     = 8
)

// compareMemory returns the memory that native code and the interpreter left differently. before is the memory when both sides started, and after the
// memory after native code has run. touched holds the interpreter's stores, and dead ranges of meaningless bytes. made is as in [compareResult].
//
// Unknown bits equal any bits, and so do two default NaNs that differ in the sign: LLVM does not define that sign. In some memory only bytes that the
// interpreter stored count, even if it stored equal bytes: in shared memory, and in stack, where the callees of native code have their frames,
// because the interpreter has these frames elsewhere. If native code ran outside code (left), whose stores are unknown, this holds for all memory.
func compareMemory(before *memoryImage, after machine.Memory, touched iter.Seq[interp.Touched], dead []machine.Range, stack machine.Range, left bool, made func(uint64) bool) comparedMemory {
	c := memoryComparison{dead: dead, stack: stack, left: left, made: made, pages: map[machine.Addr]interp.Touched{}, blocks: map[machine.Addr]bool{}}
	for p := range touched {
		c.pages[p.Addr], c.blocks[p.Addr&^(imageBlock-1)] = p, true
	}
	was, now := make([]byte, imageBlock), make([]byte, imageBlock)
	zero, seen := untouchedOf(after), 0
	list := before.blocks
	if fresh := c.fresh(before, zero); len(fresh) > 0 {
		list = slices.Concat(list, fresh)
		slices.SortFunc(list, func(a, b memoryBlock) int { return cmp.Compare(a.addr, b.addr) })
	}
	for i := range list {
		b := &list[i]
		data, got := b.data, now[:b.size]
		if data == nil {
			data = zeroBlock[:b.size]
		}
		quiet := !c.touches(b.addr)
		still := zero.holds(b.addr, b.size)
		if quiet && (left || still && b.data == nil && b.missing == 0) {
			continue
		}
		missing := uint16(0)
		if still {
			clear(got)
		} else {
			missing = readPages(after, got, b.addr)
		}
		if quiet && missing == b.missing && bytes.Equal(data, got) {
			continue
		}
		copy(was, data)
		for at := 0; at < b.size; at += imagePage {
			end := min(at+imagePage, b.size)
			addr := b.addr + machine.Addr(at)
			p, ok := c.pages[addr]
			if ok {
				seen++
			}
			switch bit := uint16(1) << (at / imagePage); {
			case b.unmapped&bit != 0, b.zero && missing&bit != 0:
				continue // the program has unmapped the memory
			case b.missing&bit != 0 && !ok:
				continue // the page could not be read before, and the interpreter did not store to it
			case (b.missing|missing)&bit != 0:
				c.refuse("the page at %v cannot be read", addr)
				continue
			case !ok:
				p = interp.Touched{Addr: addr, Data: was[at:end], Undefined: zeroBlock[:end-at], Stored: zeroBlock[:interp.PageSize/8]}
			}
			c.page(p, was[at:end], got[at:end], b.shared)
		}
	}
	if seen < len(c.pages) {
		for addr := range c.pages {
			if !before.holds(addr) {
				why := "the interpreter stored to %v, which is not writable"
				if slices.ContainsFunc(before.larger, func(r machine.Range) bool { return r.Contains(addr) }) {
					why = "the interpreter stored to %v, in a mapping that is too large to be compared"
				}
				c.refuse(why, addr)
			}
		}
	}
	c.out.why = c.why
	return c.out
}

// fresh returns the blocks of untouched memory that must be compared: those that have pages now, and those to which the interpreter stored.
func (c *memoryComparison) fresh(before *memoryImage, zero untouched) (list []memoryBlock) {
	add := func(at, end machine.Addr) {
		before.gaps(at, end, func(at, to machine.Addr) { list = append(list, memoryBlock{addr: at, size: int(to - at), zero: true}) })
	}
	done := machine.Addr(0) // end of the blocks that are done, because parts may share a block
	for _, r := range before.zero {
		for _, part := range zero.without(r) {
			end := min((part.End+imageBlock-1)&^(imageBlock-1), r.End)
			add(max(part.Start&^(imageBlock-1), r.Start, done), end)
			done = end
		}
	}
	for at := range c.blocks {
		for i := before.zero.index(at); i < len(before.zero) && before.zero[i].Start < at+imageBlock; i++ {
			start, end := max(at, before.zero[i].Start), min(at+imageBlock, before.zero[i].End)
			if zero.holds(start, int(end-start)) { // if the block has pages now, the loop above has added it
				add(start, end)
			}
		}
	}
	return list
}

// memoryComparison is a comparison of memory in progress.
type memoryComparison struct {
	pages  map[machine.Addr]interp.Touched
	blocks map[machine.Addr]bool // the blocks that contain the pages
	dead   []machine.Range
	stack  machine.Range
	left   bool
	made   func(uint64) bool
	out    comparedMemory
	why    error
	whySet machine.Addr
}

func (c *memoryComparison) refuse(format string, addr machine.Addr) {
	// Use the lowest address, so that the same memory always gives the same reason.
	if c.why == nil || addr < c.whySet {
		c.why, c.whySet = frame.Errorf(format, addr), addr
	}
}

// touches reports whether the interpreter stored to a block.
func (c *memoryComparison) touches(addr machine.Addr) bool { return c.blocks[addr&^(imageBlock-1)] }

func (img *memoryImage) holds(addr machine.Addr) bool {
	for _, r := range img.ranges {
		if r.Contains(addr) {
			return true
		}
	}
	return false
}

// page compares the bytes of a page before both sides ran (was), after the interpreter (p) and after native code (got).
func (c *memoryComparison) page(p interp.Touched, was, got []byte, shared bool) {
	if bytes.Equal(p.Data[:len(got)], got) {
		return
	}
	for at := 0; at < len(got); at += diffWord {
		end := at + diffWord
		want, unknown, have := binary.LittleEndian.Uint64(p.Data[at:]), binary.LittleEndian.Uint64(p.Undefined[at:]), binary.LittleEndian.Uint64(got[at:])
		if (want^have)&^unknown == 0 {
			continue
		}
		addr := p.Addr + machine.Addr(at)
		live := (want ^ have) &^ unknown &^ c.deadBytes(addr)
		if shared || c.left || c.stack.Contains(addr) { // other code may have stored a byte that the interpreter did not store
			live &= bytesStored(p.Stored[at/diffWord])
		}
		switch {
		case live == 0 || unknown == 0 && sameNaN(want, have):
		case unknown == 0 && c.made(want):
			c.refuse("the interpreter stored a pointer to memory of its own at %v", addr)
		default:
			c.add(addr, was[at:end], p.Data[at:end], p.Undefined[at:end], got[at:end])
		}
	}
}

// deadBytes returns a mask of the bytes of the word at addr that lie in dead ranges.
func (c *memoryComparison) deadBytes(addr machine.Addr) (mask uint64) {
	for _, r := range c.dead {
		if r.End <= addr || r.Start >= addr+diffWord {
			continue
		}
		for i := range diffWord {
			if r.Contains(addr + machine.Addr(i)) {
				mask |= 0xff << (8 * i)
			}
		}
	}
	return mask
}

// bytesStored returns a mask of the bytes of a word that were stored. Bit n of bits is set if byte n, counted from the lowest, was stored.
func bytesStored(bits byte) (mask uint64) {
	for i := range diffWord {
		if bits>>i&1 != 0 {
			mask |= 0xff << (8 * i)
		}
	}
	return mask
}

// sameNaN reports whether two words are both default NaNs as a double, or differ only in floats that are default NaNs.
func sameNaN(a, b uint64) bool {
	const sign, double, single = 1 << 63, 0x7ff8000000000000, 0x7fc00000
	if a&^sign == double && b&^sign == double {
		return true
	}
	for range 2 {
		x, y := uint32(a), uint32(b)
		if x != y && (x&^(1<<31) != single || y&^(1<<31) != single) {
			return false
		}
		a, b = a>>32, b>>32
	}
	return true
}

func (c *memoryComparison) add(addr machine.Addr, was, want, unknown, got []byte) {
	c.out.Words++
	n := len(c.out.Diffs)
	if n == 0 || c.out.Diffs[n-1].Addr+machine.Addr(c.out.Diffs[n-1].Size) != addr {
		if n == maxDiffs {
			return
		}
		c.out.Diffs = append(c.out.Diffs, memoryDiff{Addr: addr})
		n++
	}
	d := &c.out.Diffs[n-1]
	d.Size += uint64(len(want))
	if len(d.Native) < maxDiffBytes {
		d.Before, d.Interp = append(d.Before, was...), append(d.Interp, want...)
		d.Undefined, d.Native = append(d.Undefined, unknown...), append(d.Native, got...)
	}
}
