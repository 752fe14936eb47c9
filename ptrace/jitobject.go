package ptrace

import (
	"bytes"
	"cmp"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"io"
	"slices"
	"sort"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace/elfcore"
)

// Limits on the data of registered objects. Real JITs register 100,000 objects of about 10 KiB.
const (
	maxObjects = 1 << 30   // for all objects of a target
	maxRead    = 256 << 20 // for one object
	// An object of up to maxWholeObject bytes is read completely. Of a larger object, only the headers, the sections, and gaps of up to smallGap
	// between them are read.
	maxWholeObject = 1 << 20
	smallGap       = 64 << 10
)

// extent is a part of an object, given by offsets.
type extent struct{ from, to uint64 }

// plan selects the parts of an object to read. It uses the ELF header and the section headers (System V ABI, chapter 4).
func (e *Entry) plan(head, sections []byte, order binary.ByteOrder) {
	e.extents = []extent{{0, e.Size}}
	if e.Size <= maxWholeObject {
		return
	}
	var list []extent
	add := func(from, size uint64) uint64 {
		from = min(from, e.Size)
		size = min(size, e.Size-from)
		list = append(list, extent{from, from + size})
		return size
	}
	add(0, elfcore.HeaderSize)
	add(order.Uint64(head[32:]), uint64(order.Uint16(head[54:]))*uint64(order.Uint16(head[56:]))) // program headers
	add(order.Uint64(head[40:]), uint64(len(sections)))
	claimed := uint64(0)
	for ; len(sections) >= elfcore.SectionSize; sections = sections[elfcore.SectionSize:] {
		if kind := elf.SectionType(order.Uint32(sections[4:])); kind != elf.SHT_NULL && kind != elf.SHT_NOBITS {
			claimed += add(order.Uint64(sections[24:]), order.Uint64(sections[32:]))
		}
	}
	if claimed > e.Size {
		e.Bad = fmt.Sprintf("its sections overlap: they claim %d bytes of its %d", claimed, e.Size)
		return
	}
	e.extents = mergedExtents(list)
}

// mergedExtents sorts extents and joins those that are close together. It omits empty ones.
func mergedExtents(list []extent) (all []extent) {
	slices.SortFunc(list, func(a, b extent) int { return cmp.Compare(a.from, b.from) })
	for _, x := range list {
		switch n := len(all); {
		case x.from == x.to:
		case n > 0 && x.from <= all[n-1].to+smallGap:
			all[n-1].to = max(all[n-1].to, x.to)
		default:
			all = append(all, x)
		}
	}
	return all
}

// needs returns the maximum number of bytes of the object that [Entry.read] reads.
func (e *Entry) needs() (n uint64) {
	for _, x := range e.extents {
		n += x.to - x.from
	}
	return n
}

// content holds the bytes of an object that were read. Memory that the process has not touched is zero, and is stored as a range.
type content struct {
	start  machine.Addr
	size   uint64
	parts  *copied
	zeroes []machine.Range
}

// read reads the object of an entry. If that fails, it sets Bad.
func (e *Entry) read(mem memory, arch *machine.Arch, number int) {
	if e.Bad != "" || e.image != nil {
		return
	}
	if e.extents == nil {
		e.Bad = "its section headers were not read"
		return
	}
	data, err := e.load(mem)
	if err != nil {
		e.Bad = "it lies partly outside of memory: " + err.Error()
		return
	}
	img, err := object.New(fmt.Sprintf("JIT object %d", number), data, int64(e.Size))
	if err == nil {
		err = madeFor(img, arch)
	}
	if err != nil {
		e.Bad = err.Error()
		return
	}
	img.Registered = true
	e.image, e.content = img, data
}

// load reads the extents of the object.
func (e *Entry) load(mem memory) (*content, error) {
	c := &content{start: e.Start, size: e.Size}
	var parts []span
	var ranges []machine.Range
	for _, x := range e.extents {
		ranges = append(ranges, machine.Range{Start: e.Start + machine.Addr(x.from), End: e.Start + machine.Addr(x.to)})
	}
	err := eachStretch(mem, ranges, func(r machine.Range, zero bool) error {
		if zero {
			c.zeroes = append(c.zeroes, r)
			return nil
		}
		var last [1]byte // read the last byte before allocating memory, because the range may not exist
		if err := mem.ReadMemory(last[:], r.End-1); err != nil {
			return err
		}
		data := make([]byte, r.End-r.Start)
		parts = append(parts, span{r.Start, data})
		return mem.ReadMemory(data, r.Start)
	})
	if err != nil {
		return nil, err
	}
	c.parts = newCopied(parts, "")
	return c, nil
}

// eachStretch calls each for consecutive parts of ranges, which must be sorted. zero means that the part is zero because the process has not touched
// it.
func eachStretch(mem memory, ranges []machine.Range, each func(r machine.Range, zero bool) error) error {
	var large, zeroes []machine.Range
	for _, r := range ranges {
		if r.End-r.Start >= minUntouched {
			large = append(large, r)
		}
	}
	if l, ok := mem.(interface {
		untouched([]machine.Range) []machine.Range
	}); ok && len(large) > 0 {
		zeroes = l.untouched(large)
	}
	for _, r := range ranges {
		first := sort.Search(len(zeroes), func(i int) bool { return zeroes[i].End > r.Start })
		last := sort.Search(len(zeroes), func(i int) bool { return zeroes[i].Start >= r.End })
		if err := eachPart(r, zeroes[first:last], each); err != nil {
			return err
		}
	}
	return nil
}

// eachPart calls each for the zero parts of a range and for the parts between them.
func eachPart(in machine.Range, zeroes []machine.Range, each func(r machine.Range, zero bool) error) error {
	for _, z := range append(slices.Clip(zeroes), machine.Range{Start: in.End, End: in.End}) {
		for _, part := range []struct {
			machine.Range
			zero bool
		}{{machine.Range{Start: in.Start, End: z.Start}, false}, {z, true}} {
			if part.Start < part.End {
				if err := each(part.Range, part.zero); err != nil {
					return err
				}
			}
		}
		in.Start = z.End
	}
	return nil
}

// ReadAt implements [io.ReaderAt].
func (c *content) ReadAt(p []byte, off int64) (n int, err error) {
	if off < 0 || uint64(off) >= c.size {
		return 0, io.EOF
	}
	for n < len(p) {
		at := c.start + machine.Addr(off) + machine.Addr(n)
		b, unknown := c.parts.from(at, len(p)-n)
		if unknown == 0 {
			n += copy(p[n:], b)
			continue
		}
		i := sort.Search(len(c.zeroes), func(i int) bool { return c.zeroes[i].End > at })
		if i == len(c.zeroes) || !c.zeroes[i].Contains(at) {
			break
		}
		zero := p[n:][:min(uint64(len(p)-n), uint64(c.zeroes[i].End-at))]
		clear(zero)
		n += len(zero)
	}
	switch {
	case n == len(p):
		return n, nil
	case uint64(off)+uint64(n) == c.size:
		return n, io.EOF
	}
	return n, io.ErrUnexpectedEOF // this part of the object was not read from the process
}

// ReadMemory implements [machine.Memory].
func (c *content) ReadMemory(p []byte, addr machine.Addr) error {
	if addr < c.start {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: NotCopied, Code: frame.MemoryNotCopied}
	}
	if n, _ := c.ReadAt(p, int64(addr-c.start)); n < len(p) {
		return &machine.MemoryError{Addr: addr, Len: len(p), Why: NotCopied, Code: frame.MemoryNotCopied}
	}
	return nil
}

// is reports whether memory still has the bytes of the content.
func (c *content) is(mem memory) bool {
	buf := make([]byte, 2*readChunk)
	same := func(r machine.Range, zero bool) error {
		for at := r.Start; at < r.End; at += readChunk {
			n := min(r.End-at, readChunk)
			was, now := buf[:n], buf[readChunk:][:n]
			if err := c.ReadMemory(was, at); err != nil {
				return err
			}
			if clear(now); !zero {
				if err := mem.ReadMemory(now, at); err != nil {
					return err
				}
			}
			if !bytes.Equal(was, now) {
				return io.ErrUnexpectedEOF
			}
		}
		return nil
	}
	return eachStretch(mem, c.ranges(), same) == nil
}

// ranges returns the parts that were read, in ascending order.
func (c *content) ranges() []machine.Range {
	all := slices.Clone(c.zeroes)
	for _, s := range c.parts.ranges {
		all = append(all, machine.Range{Start: s.addr, End: s.end()})
	}
	slices.SortFunc(all, func(a, b machine.Range) int { return cmp.Compare(a.Start, b.Start) })
	return all
}

// untouched returns the number of bytes that are zero because the process has not touched them.
func (c *content) untouched() (n uint64) {
	for _, z := range c.zeroes {
		n += uint64(z.End - z.Start)
	}
	return n
}

// spans returns the parts with their bytes.
func (c *content) spans() []span {
	list := slices.Clone(c.parts.ranges)
	for _, z := range c.zeroes {
		list = append(list, span{z.Start, make([]byte, z.End-z.Start)})
	}
	return list
}
