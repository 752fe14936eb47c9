package verify

import (
	"bytes"
	"slices"
	"sort"

	"reframe/deopt/machine"
)

// changed is memory that native code has changed: what lies there now.
type changed struct {
	addr machine.Addr
	data []byte
}

// changes are those between two images, in ascending order: words in which bytes differ, and what the second has and the first has not. Their data is
// the second's.
func changes(before, after *memoryImage) (list []changed) {
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
				list = append(list, changed{addr, page}) // it was not there, or could not be read
				continue
			}
			list = appendDifferent(list, addr, old[:len(page)], page)
		}
	}
	return list
}

// sameData says that blocks of one size have the same bytes. One that is shared is not looked at.
func sameData(a, b []byte) bool {
	return len(a) == len(b) && (len(a) == 0 || &a[0] == &b[0] || bytes.Equal(a, b))
}

// appendDifferent adds the words of a page in which bytes differ, those that lie together as one. Whoever stored a part of a word may have stored the
// rest of it too, of which the same was there already: of a key that free leaves behind, say, one byte.
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
		list = append(list, changed{addr + machine.Addr(at), now[at:min(end, len(now))]})
		at = end
	}
	return list
}

// with is an image with changes in it, those up to a later image.
func (img *memoryImage) with(list []changed, after *memoryImage) *memoryImage {
	out := &memoryImage{ranges: slices.Clone(img.ranges), blocks: slices.Clone(img.blocks)}
	for _, c := range list {
		if out.index(c.addr) < 0 {
			out.take(after.block(c.addr))
		}
	}
	own := map[int]bool{} // which blocks' data is not another image's
	for _, c := range list {
		i := out.index(c.addr)
		if i < 0 {
			continue
		}
		b := &out.blocks[i]
		if !own[i] {
			data := make([]byte, b.size)
			copy(data, b.data)
			b.data, own[i] = data, true
		}
		at := int(c.addr - b.addr)
		b.missing &^= 1 << (at / imagePage) // a page that could not be read is there as a whole
		copy(b.data[at:], c.data)
	}
	for _, r := range after.ranges {
		if !slices.Contains(out.ranges, r) {
			out.ranges = append(out.ranges, r)
		}
	}
	return out
}

// take makes room for a block of memory that is new, in whole or behind what there is of it.
func (img *memoryImage) take(b *imageOf) {
	i := sort.Search(len(img.blocks), func(i int) bool { return img.blocks[i].addr >= b.addr })
	if i < len(img.blocks) && img.blocks[i].addr == b.addr {
		if old := &img.blocks[i]; old.size < b.size { // the mapping has grown
			data := make([]byte, b.size)
			copy(data, old.data)
			pages := old.size / imagePage
			old.missing |= b.missing &^ (1<<pages - 1)
			old.size, old.data = b.size, data
		}
		return
	}
	if i > 0 && img.blocks[i-1].addr+machine.Addr(img.blocks[i-1].size) > b.addr {
		return // of a mapping that began elsewhere
	}
	size := b.size
	if i < len(img.blocks) {
		size = int(min(machine.Addr(size), img.blocks[i].addr-b.addr)) // a stack has grown
	}
	img.blocks = slices.Insert(img.blocks, i, imageOf{addr: b.addr, size: size, missing: b.missing & (1<<(size/imagePage) - 1), shared: b.shared})
}
