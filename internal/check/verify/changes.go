package verify

import (
	"bytes"
	"cmp"
	"slices"

	"example.com/reframe/internal/machine"
)

// changed is memory that native code has changed: its new content, or the number of bytes of whole pages that were unmapped.
type changed struct {
	addr     machine.Addr
	data     []byte
	unmapped uint64
}

// changes returns the differences between two images in ascending order: words with different bytes, memory that only the second image has, with its
// data, and pages that only the first image has and that are now unreadable, as after munmap(2).
func changes(before, after *memoryImage, now machine.Memory) (list []changed) {
	for i := range after.blocks {
		b := &after.blocks[i]
		was := before.block(b.addr)
		if was != nil && was.addr == b.addr && was.size == b.size && was.missing == b.missing && sameData(was.data, b.data) {
			continue
		}
		data := b.data
		if data == nil {
			data = zeroBlock[:b.size]
		}
		old := make([]byte, imagePage)
		for at := 0; at < b.size; at += imagePage {
			page, addr := data[at:min(at+imagePage, b.size)], b.addr+machine.Addr(at)
			if b.missing>>(at/imagePage)&1 != 0 {
				continue
			}
			if n := before.read(old[:len(page)], addr); n < len(page) {
				list = append(list, changed{addr: addr, data: page}) // the page was not mapped, or not readable
				continue
			}
			list = appendDifferent(list, addr, old[:len(page)], page)
		}
	}
	var page [imagePage]byte
	for i := range before.blocks {
		b := &before.blocks[i]
		if is := after.block(b.addr); is != nil && is.addr == b.addr && is.size == b.size && is.missing == b.missing {
			continue
		}
		for at := 0; at < b.size; at += imagePage {
			addr := b.addr + machine.Addr(at)
			if b.missing>>(at/imagePage)&1 != 0 {
				continue
			}
			if after.read(page[:], addr) > 0 {
				if b.data != nil && after.block(addr) == nil { // the block is zero and untouched again, as after madvise(2)
					list = appendDifferent(list, addr, b.data[at:min(at+imagePage, b.size)], zeroBlock[:min(imagePage, b.size-at)])
				}
				continue
			}
			if now.ReadMemory(page[:], addr) == nil {
				continue // a page that has become read-only is not in the later image
			}
			if n := len(list); n > 0 && list[n-1].unmapped > 0 && list[n-1].addr+machine.Addr(list[n-1].unmapped) == addr {
				list[n-1].unmapped += imagePage
				continue
			}
			list = append(list, changed{addr: addr, unmapped: imagePage})
		}
	}
	for _, r := range before.zero {
		for _, part := range after.zero.without(r) {
			for _, hole := range after.holes(part) {
				if now.ReadMemory(page[:], hole.Start) != nil {
					list = append(list, changed{addr: hole.Start, unmapped: uint64(hole.End - hole.Start)})
				}
			}
		}
	}
	slices.SortStableFunc(list, func(a, b changed) int { return cmp.Compare(a.addr, b.addr) })
	return list
}

// holes returns the parts of a range in which an image has no mapping.
func (img *memoryImage) holes(r machine.Range) []machine.Range {
	var mapped untouched
	for _, m := range img.ranges {
		if m.Start < r.End && r.Start < m.End {
			mapped = append(mapped, m.Range)
		}
	}
	return untouched(nil).with(mapped).without(r)
}

// sameData reports whether blocks have the same size and bytes. It does not read shared blocks.
func sameData(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// appendDifferent adds the words of a page in which bytes differ, and joins adjacent ones. It adds whole words, because native code may have stored a
// word whose other bytes were equal before. For example, free(3) stores a key that may leave one byte unchanged.
func appendDifferent(list []changed, addr machine.Addr, was, now []byte) []changed {
	same := func(at int) bool {
		return bytes.Equal(was[at:min(at+8, len(now))], now[at:min(at+8, len(now))])
	}
	for at := 0; at < len(now); at += 8 {
		if same(at) {
			continue
		}
		end := at + 8
		for end < len(now) && !same(end) {
			end += 8
		}
		list = append(list, changed{addr: addr + machine.Addr(at), data: now[at:min(end, len(now))]})
		at = end
	}
	return list
}

// with returns a copy of an image with changes applied. after is the later image in which they were found.
func (img *memoryImage) with(list []changed, after *memoryImage) *memoryImage {
	out := &memoryImage{ranges: slices.Clone(img.ranges), blocks: slices.Clone(img.blocks), zero: img.zero.with(after.zero), shared: after.shared, larger: img.larger}
	for _, c := range list {
		if b := after.block(c.addr); b != nil && c.unmapped == 0 && out.index(c.addr) < 0 { // a block that is zero in the later image is not in after
			out.take(b)
		}
	}
	own := map[int]bool{} // blocks whose data is not shared with another image
	put := func(i, at int, data []byte) {
		b := &out.blocks[i]
		if !own[i] {
			data := make([]byte, b.size)
			copy(data, b.data)
			b.data, own[i] = data, true
		}
		present := ^(uint16(1) << (at / imagePage)) // the page could not be read before, and is now complete
		b.missing, b.unmapped = b.missing&present, b.unmapped&present
		copy(b.data[at:], data)
	}
	for _, r := range after.zero { // memory that was unmapped and mapped again
		for i := out.blockFrom(r.Start); i < len(out.blocks) && out.blocks[i].addr < r.End; i++ {
			for at := 0; at < out.blocks[i].size && out.blocks[i].missing != 0; at += imagePage {
				if out.blocks[i].missing>>(at/imagePage)&1 != 0 && r.Contains(out.blocks[i].addr+machine.Addr(at)) {
					put(i, at, zeroBlock[:min(imagePage, out.blocks[i].size-at)])
				}
			}
		}
	}
	for _, c := range list {
		if c.unmapped > 0 {
			out.remove(machine.Range{Start: c.addr, End: c.addr + machine.Addr(c.unmapped)})
			continue
		}
		if i := out.index(c.addr); i >= 0 {
			put(i, int(c.addr-out.blocks[i].addr), c.data)
		}
	}
	for _, r := range after.ranges {
		if !slices.Contains(out.ranges, r) {
			out.ranges = append(out.ranges, r)
		}
	}
	return out
}

// remove marks pages as unmapped by native code.
func (img *memoryImage) remove(r machine.Range) {
	for i := img.blockFrom(r.Start); i < len(img.blocks) && img.blocks[i].addr < r.End; i++ {
		b := &img.blocks[i]
		for at := 0; at < b.size; at += imagePage {
			if r.Contains(b.addr + machine.Addr(at)) {
				bit := uint16(1) << (at / imagePage)
				b.missing, b.unmapped = b.missing|bit, b.unmapped|bit
			}
		}
	}
}

// take adds blocks for the parts of b without a block: the mapping is new, has grown, or starts at another address than an earlier one.
func (img *memoryImage) take(b *memoryBlock) {
	img.gaps(b.addr, b.addr+machine.Addr(b.size), func(at, to machine.Addr) {
		missing := b.missing >> ((at - b.addr) / imagePage) & (1<<((to-at)/imagePage) - 1)
		img.blocks = slices.Insert(img.blocks, img.blockFrom(at), memoryBlock{addr: at, size: int(to - at), missing: missing, shared: b.shared})
	})
}

// gaps yields the parts of memory without a block, none of them larger than one block. yield may add a block for such a part.
func (img *memoryImage) gaps(at, end machine.Addr, yield func(at, to machine.Addr)) {
	for at < end {
		i, to := img.blockFrom(at), min(end, at&^(imageBlock-1)+imageBlock)
		if i < len(img.blocks) && img.blocks[i].addr <= at {
			at = img.blocks[i].addr + machine.Addr(img.blocks[i].size)
			continue
		}
		if i < len(img.blocks) {
			to = min(to, img.blocks[i].addr)
		}
		yield(at, to)
		at = to
	}
}
