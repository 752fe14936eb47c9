package unwind

import (
	"errors"
	"fmt"
	"sync"

	"reframe/deopt/machine"
)

// ErrNoFDE says that an image has no unwind information for a pc.
var ErrNoFDE = errors.New("no unwind information covers this address")

// Table is the unwind information of one image. Any number of goroutines may
// use it.
type Table struct {
	arch  *machine.Arch
	frame Section
	bases bases

	search *searchTable // nil: use index

	once     sync.Once
	index    []indexed
	indexErr error
}

// NewTable returns the table of an image. Entries are read when asked for;
// errors are a missing section, an architecture that is not handled, and a
// [*FormatError] for a header that points to another .eh_frame.
func NewTable(s Sections) (*Table, error) {
	if s.Arch == nil || s.Arch.Pointer != 8 {
		return nil, errors.New("unwind: only architectures with addresses of 8 bytes are handled")
	}
	if s.EHFrame.Data == nil {
		return nil, errors.New("unwind: the image has no .eh_frame")
	}
	t := &Table{arch: s.Arch, frame: s.EHFrame, bases: bases{s.Text, s.Data}}
	if s.EHFrameHdr.Data != nil {
		search, err := readHdr(s.EHFrameHdr, s.Arch, s.EHFrame.Addr)
		if err != nil {
			return nil, err
		}
		t.search = search
	}
	return t, nil
}

// Find returns the FDE that covers pc. Where there is none the error is
// [ErrNoFDE]; where the table is not sound enough to tell, a [*FormatError].
func (t *Table) Find(pc machine.Addr) (*FDE, error) {
	var offset int64
	var err error
	if t.search != nil {
		offset, err = t.search.find(pc, t.frame.Addr)
	} else {
		offset, err = t.indexFind(pc)
	}
	if err != nil {
		return nil, err
	}
	f, err := t.fdeAt(offset)
	if err != nil {
		return nil, err
	}
	if pc < f.Start || pc >= f.End {
		return nil, ErrNoFDE
	}
	return f, nil
}

// cursorAt is a cursor over n bytes of .eh_frame.
func (t *Table) cursorAt(off, n int64) (cursor, error) {
	b, err := t.frame.read(ehFrame, off, n)
	return cursor{
		section: ehFrame, offset: off, addr: t.frame.Addr + machine.Addr(off),
		order: t.arch.Order, data: b,
	}, err
}

// entryAt reads the entry at off: its header, and a cursor over the rest.
func (t *Table) entryAt(off int64) (header, cursor, error) {
	if off < 0 || off >= t.frame.Size {
		return header{}, cursor{}, &FormatError{ehFrame, off, errors.New("an entry outside the section")}
	}
	c, err := t.cursorAt(off, min(longestHeader, t.frame.Size-off))
	if err != nil {
		return header{}, c, err
	}
	h, err := headerOf(&c, t.frame.Size)
	if err != nil {
		return h, c, err
	}
	body := off + int64(c.pos)
	c, err = t.cursorAt(body, h.end-body)
	return h, c, err
}

// fdeAt reads the FDE at off, and its CIE.
func (t *Table) fdeAt(off int64) (*FDE, error) {
	h, body, err := t.entryAt(off)
	if err != nil {
		return nil, err
	}
	if h.id == 0 {
		return nil, &FormatError{ehFrame, off, errors.New("a CIE where an FDE should be")}
	}
	common, commonBody, err := t.entryAt(h.cieOffset())
	if err != nil {
		return nil, fmt.Errorf("the CIE of the FDE at offset %#x: %w", off, err)
	}
	if common.id != 0 {
		return nil, &FormatError{ehFrame, h.idAt, fmt.Errorf("no CIE at offset %#x, where this FDE says", h.cieOffset())}
	}
	e, err := parseCIE(commonBody, t.arch)
	if err != nil {
		return nil, err
	}
	return parseFDE(body, h, e, t.bases)
}
