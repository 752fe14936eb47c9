package cfi

import (
	"encoding/binary"
	"fmt"

	"example.com/reframe/internal/machine"
)

// infoTable is __TEXT,__unwind_info: an index of pages, and pages of entries, both by code address. All numbers are little-endian. Offsets of code
// are relative to the Mach-O header, others to the start of the section.
type infoTable struct {
	section Section
	image   machine.Addr // load address of the header
	common  infoArray    // encodings that all pages share
	index   infoArray
}

// infoArray is an array of rows in the section.
type infoArray struct {
	off   int64
	count int64
	row   int64 // bytes
}

// Constants with the names of mach-o/compact_unwind_encoding.h.
const (
	infoVersion = 1
	infoHeader  = 28
	indexRow    = 12 // offset of the code, of the page, of exception tables
	encodingRow = 4
)

var infoOrder = binary.LittleEndian

// OpenUnwindInfo returns the compact unwind of a linked image from its __TEXT,__unwind_info. image is the load address of its Mach-O header.
// OpenUnwindInfo reads only the section's header; each lookup reads the rows for a binary search of the index and of one page. It returns an error
// for an unsupported architecture, and a [*FormatError] for a malformed header.
func OpenUnwindInfo(arch *machine.Arch, s Section, image machine.Addr) (*Compact, error) {
	if err := checkCompactArch(arch); err != nil {
		return nil, err
	}
	b, err := s.read(unwindInfo, 0, infoHeader)
	if err != nil {
		return nil, err
	}
	t := &infoTable{section: s, image: image}
	c := cursor{section: unwindInfo, order: infoOrder, data: b}
	if version := c.u32(); version != infoVersion {
		return nil, &FormatError{unwindInfo, 0, fmt.Errorf("version %d", version)}
	}
	t.common = infoArray{int64(c.u32()), int64(c.u32()), encodingRow}
	c.bytes(8) // personalities
	t.index = infoArray{int64(c.u32()), int64(c.u32()), indexRow}
	for _, a := range []infoArray{t.common, t.index} {
		if a.off+a.count*a.row > s.Size {
			return nil, &FormatError{unwindInfo, a.off, fmt.Errorf("%d rows of %d bytes in a section of %d", a.count, a.row, s.Size)}
		}
	}
	return &Compact{arch: arch, info: t}, nil
}

// at reads row i of a.
func (t *infoTable) at(a infoArray, i int64) (cursor, error) {
	b, err := t.section.read(unwindInfo, a.off+i*a.row, a.row)
	return cursor{section: unwindInfo, order: infoOrder, data: b}, err
}

// last returns the index of the last row of a whose code starts at or before want, or -1. start computes the start of a row's code from the first
// word of the row.
func (t *infoTable) last(a infoArray, start func(uint32) uint64, want uint64) (int64, error) {
	low, high := int64(0), a.count // rows below low start at or before want; rows from high on start after it
	for low < high {
		mid := low + (high-low)/2
		c, err := t.at(a, mid)
		if err != nil {
			return 0, err
		}
		if start(c.u32()) <= want {
			low = mid + 1
		} else {
			high = mid
		}
	}
	return low - 1, nil
}

func (t *infoTable) find(pc machine.Addr) (*CompactEntry, error) {
	want := uint64(pc - t.image)
	if pc < t.image {
		return nil, ErrNoFDE
	}
	i, err := t.last(t.index, func(word uint32) uint64 { return uint64(word) }, want)
	if err != nil {
		return nil, err
	}
	if i < 0 || i+1 >= t.index.count { // the last row only marks the end of the previous row's code
		return nil, ErrNoFDE
	}
	row, err := t.at(t.index, i)
	if err != nil {
		return nil, err
	}
	next, err := t.at(t.index, i+1)
	if err != nil {
		return nil, err
	}
	first, page, end := uint64(row.u32()), int64(row.u32()), uint64(next.u32())
	if page == 0 {
		return nil, ErrNoFDE
	}
	p, err := t.page(page, first)
	if err != nil {
		return nil, err
	}
	return p.find(want, end)
}
