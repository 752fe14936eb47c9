package unwind

import (
	"fmt"
	"sort"

	"reframe/deopt/machine"
)

// hdrVersion is the only version of .eh_frame_hdr (Linux Standard Base, Core
// 5.0 §10.6.2).
const hdrVersion = 1

// searchEntry is the size of a row of the search table: the start of a
// function and the address of its FDE, both relative to the section.
const searchEntry = 8

// searchChunk is how many rows are read at once when few are left to search.
const searchChunk = 512

// searchTable is the sorted table of an .eh_frame_hdr.
type searchTable struct {
	section Section
	arch    *machine.Arch
	first   int64 // offset of row 0
	count   int
}

// readHdr reads the start of an .eh_frame_hdr. It returns nil where there is
// no table that can be searched: .eh_frame alone then says everything.
func readHdr(s Section, arch *machine.Arch, frame machine.Addr) (*searchTable, error) {
	b, err := s.read(ehFrameHdr, 0, min(s.Size, 4+8+8))
	if err != nil {
		return nil, err
	}
	c := cursor{section: ehFrameHdr, addr: s.Addr, order: arch.Order, data: b}
	version, frameEnc, countEnc, tableEnc := c.u8(), c.u8(), c.u8(), c.u8()
	if c.err == nil && version != hdrVersion {
		c.failf(".eh_frame_hdr version %d", version)
	}
	if c.err != nil {
		return nil, c.err
	}
	// All linkers write this one; rows of other forms may differ in size.
	if frameEnc == peOmit || countEnc == peOmit || tableEnc != peDataRel|peSdata4 {
		return nil, nil
	}
	base := bases{data: s.Addr}
	if at := c.pointer(frameEnc, base); c.err == nil && at != frame {
		c.failf("it is the header of an .eh_frame at %v, not of the one at %v", at, frame)
	}
	count := c.pointer(countEnc, base)
	if c.err == nil && uint64(count) > uint64(s.Size-int64(c.pos))/searchEntry {
		c.failf("a table of %d rows in a section of %d bytes", uint64(count), s.Size)
	}
	if c.err != nil {
		return nil, c.err
	}
	return &searchTable{section: s, arch: arch, first: int64(c.pos), count: int(count)}, nil
}

// find returns the offset in .eh_frame, loaded at frame, of the FDE that
// starts last at or before pc.
func (t *searchTable) find(pc, frame machine.Addr) (int64, error) {
	low, high := 0, t.count // the row is in [low, high), or is none
	for high-low > searchChunk {
		middle := low + (high-low)/2
		rows, err := t.rows(middle, 1)
		if err != nil {
			return 0, err
		}
		if t.start(rows, 0) <= pc {
			low = middle
		} else {
			high = middle
		}
	}
	rows, err := t.rows(low, high-low)
	if err != nil {
		return 0, err
	}
	i := sort.Search(high-low, func(i int) bool { return t.start(rows, i) > pc })
	if i == 0 {
		return 0, ErrNoFDE
	}
	fde := t.word(rows[(i-1)*searchEntry+4:])
	if fde < frame {
		at := t.first + int64(low+i-1)*searchEntry
		return 0, &FormatError{ehFrameHdr, at, fmt.Errorf("an FDE at %v, before .eh_frame at %v", fde, frame)}
	}
	return int64(fde - frame), nil
}

// rows reads n rows from row i on.
func (t *searchTable) rows(i, n int) ([]byte, error) {
	return t.section.read(ehFrameHdr, t.first+int64(i)*searchEntry, int64(n)*searchEntry)
}

// start is the function start of row i of rows.
func (t *searchTable) start(rows []byte, i int) machine.Addr { return t.word(rows[i*searchEntry:]) }

func (t *searchTable) word(b []byte) machine.Addr {
	return t.section.Addr + machine.Addr(int32(t.arch.Order.Uint32(b)))
}
