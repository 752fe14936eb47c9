package cfi

import (
	"errors"
	"fmt"

	"example.com/reframe/internal/machine"
)

// Kinds of pages, and the sizes of their rows.
const (
	regularPage    = 2
	regularRow     = 8 // offset of the code, encoding
	compressedPage = 3
	compressedRow  = 4 // 24 bits: distance of the code from the first code of the page; 8 bits: index of the encoding
)

// infoPage is a page of __unwind_info.
type infoPage struct {
	*infoTable
	off        int64
	first      uint64 // start of its code, from the index
	compressed bool
	rows       infoArray
	encodings  infoArray // for a compressed page: its own encodings
}

// page reads the header of the page at off, whose code starts at first.
func (t *infoTable) page(off int64, first uint64) (*infoPage, error) {
	const regularHeader, compressedHeader = 8, 12
	b, err := t.section.read(unwindInfo, off, regularHeader)
	if err != nil {
		return nil, err
	}
	p := &infoPage{infoTable: t, off: off, first: first}
	c := cursor{order: infoOrder, data: b}
	switch kind := c.u32(); kind {
	case regularPage:
		p.rows = infoArray{off + int64(c.u16()), int64(c.u16()), regularRow}
	case compressedPage:
		p.compressed = true
		p.rows = infoArray{off + int64(c.u16()), int64(c.u16()), compressedRow}
		if b, err = t.section.read(unwindInfo, off+regularHeader, compressedHeader-regularHeader); err != nil {
			return nil, err
		}
		c = cursor{order: infoOrder, data: b}
		p.encodings = infoArray{off + int64(c.u16()), int64(c.u16()), encodingRow}
	default:
		return nil, &FormatError{unwindInfo, off, fmt.Errorf("unknown page kind %d", kind)}
	}
	return p, nil
}

// start returns the start of a row's code from the row's first word.
func (p *infoPage) start(word uint32) uint64 {
	if p.compressed {
		return p.first + uint64(word&0xffffff)
	}
	return uint64(word)
}

// find returns the entry that covers want. The code of the page ends at end, which is above want. The entry contains want even if the rows are
// out of order, because the search has compared want with the returned row and with the next one.
func (p *infoPage) find(want, end uint64) (*CompactEntry, error) {
	i, err := p.last(p.rows, p.start, want)
	if err != nil {
		return nil, err
	}
	if i < 0 {
		return nil, &FormatError{unwindInfo, p.off, errors.New("the index refers to this page for code before its start")}
	}
	row, err := p.at(p.rows, i)
	if err != nil {
		return nil, err
	}
	if i+1 < p.rows.count {
		next, err := p.at(p.rows, i+1)
		if err != nil {
			return nil, err
		}
		end = p.start(next.u32())
	}
	at, word := p.rows.off+i*p.rows.row, row.u32()
	e := &CompactEntry{Range: machine.Range{Start: p.image + machine.Addr(p.start(word)), End: p.image + machine.Addr(end)}, Section: unwindInfo}
	if p.compressed {
		e.Offset, e.Encoding, err = p.encoding(int64(word>>24), at)
	} else {
		e.Offset, e.Encoding = at+4, row.u32()
	}
	return e, err
}

// encoding returns the offset and the value of encoding n of a compressed page. n counts the encodings common to all pages first, then the page's
// own. row is the offset of the referring row, for errors.
func (p *infoPage) encoding(n, row int64) (int64, uint32, error) {
	from, i := p.common, n
	if n >= p.common.count {
		from, i = p.encodings, n-p.common.count
	}
	if i >= from.count {
		return 0, 0, &FormatError{unwindInfo, row, fmt.Errorf("encoding index %d is out of range; the page has %d encodings", n, p.common.count+p.encodings.count)}
	}
	c, err := p.at(from, i)
	return from.off + i*encodingRow, c.u32(), err
}
