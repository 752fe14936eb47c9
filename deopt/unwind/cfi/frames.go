package cfi

import (
	"errors"
	"fmt"
	"sync"

	"example.com/reframe/internal/machine"
)

// frames is a section with CIEs and FDEs: .eh_frame or .debug_frame.
type frames struct {
	Section
	name  string
	eh    bool // the form of .eh_frame (Linux Standard Base, Core 5.0 §10.6.1), not that of DWARF 5 §6.4.1
	arch  *machine.Arch
	bases bases

	search *searchTable // nil: use index
	once   sync.Once
	index  index

	mu   sync.Mutex
	cies map[int64]*cie // CIEs by offset; many FDEs refer to one CIE
}

const (
	// entryAhead is the number of bytes to read for one entry. Nearly all entries are shorter.
	entryAhead = 256
	// maxCIEs bounds the CIEs in the cache. In .eh_frame, linkers merge identical CIEs; in .debug_frame, each object file has its own.
	maxCIEs = 1024
)

// find does the same as [Table.Find] for one section.
func (s *frames) find(pc machine.Addr) (*FDE, error) {
	f, err := s.searched(pc)
	if err != nil && !errors.Is(err, ErrNoFDE) {
		// The .eh_frame_hdr is unusable, so search the section itself.
		var offset int64
		if offset, err = s.indexed(pc); err == nil {
			f, err = s.fdeAt(offset)
		}
	}
	switch {
	case err != nil:
		return nil, err
	case !f.Contains(pc):
		return nil, ErrNoFDE
	}
	return f, nil
}

// searched returns the FDE that the header gives for pc. It may not cover pc.
func (s *frames) searched(pc machine.Addr) (*FDE, error) {
	if s.search == nil {
		return nil, errNoTable
	}
	start, at, err := s.search.find(pc)
	if err != nil {
		return nil, err
	}
	f, err := s.fdeAt(int64(at - s.Addr))
	if err == nil && f.Start != start {
		return nil, &FormatError{s.name, f.Offset, fmt.Errorf("an FDE for %v; .eh_frame_hdr says %v", f.Start, start)}
	}
	return f, err
}

// fdeAt reads the FDE at offset, and its CIE.
func (s *frames) fdeAt(offset int64) (*FDE, error) {
	var chunk cursor
	h, c, err := s.entry(&chunk, offset, entryAhead)
	if err != nil {
		return nil, err
	}
	if h.isCIE {
		return nil, &FormatError{s.name, offset, errors.New("found a CIE; expected an FDE")}
	}
	e, err := s.cieAt(h.cie)
	if err != nil {
		return nil, fmt.Errorf("the CIE of the FDE at offset %#x: %w", offset, err)
	}
	f := &FDE{Signal: e.signal, Section: s.name, Offset: h.at, cie: e, bases: s.bases}
	f.Start, f.End = c.codeRange(e.encoding, s.bases)
	if e.augmented {
		c.bytes(c.uleb())
	}
	f.program = c.rest()
	if c.err != nil {
		return nil, c.err
	}
	return f, nil
}

// cieAt returns the CIE at offset.
func (s *frames) cieAt(offset int64) (*cie, error) {
	s.mu.Lock()
	e := s.cies[offset]
	s.mu.Unlock()
	if e != nil {
		return e, nil
	}
	var chunk cursor
	h, c, err := s.entry(&chunk, offset, entryAhead)
	if err != nil {
		return nil, err
	}
	if !h.isCIE {
		return nil, &FormatError{s.name, offset, errors.New("found an FDE; expected a CIE")}
	}
	if e, err = parseCIE(c, s.arch); err != nil {
		return nil, err
	}
	s.mu.Lock()
	if s.cies == nil || len(s.cies) == maxCIEs {
		s.cies = map[int64]*cie{}
	}
	s.cies[offset] = e
	s.mu.Unlock()
	return e, nil
}

// entry returns the header of the entry at off, and a cursor over the rest of the entry. It takes them from chunk, and refills chunk if the entry is
// not in it, with at least ahead bytes or the whole entry.
func (s *frames) entry(chunk *cursor, off, ahead int64) (header, cursor, error) {
	if off < 0 || off >= s.Size {
		return header{}, cursor{}, &FormatError{s.name, off, errors.New("an entry outside the section")}
	}
	need := min(ahead, s.Size-off)
	// Try the current chunk, then a chunk with the header of the entry, then one with the whole entry.
	for range 3 {
		if at := off - chunk.offset; at >= 0 && at < int64(len(chunk.data)) {
			c := *chunk
			c.pos = int(at)
			h, err := s.header(&c)
			length := h.end - off
			if err == nil && length <= int64(len(c.data))-at {
				return h, c.sub(uint64(h.end - c.offset - int64(c.pos))), nil
			}
			if at == 0 && int64(len(c.data)) >= need {
				if err != nil {
					return h, c, err
				}
				need = length
			}
		}
		b, err := s.read(s.name, off, need)
		if err != nil {
			return header{}, cursor{}, err
		}
		*chunk = cursor{section: s.name, offset: off, addr: s.Addr + machine.Addr(off), order: s.arch.Order, data: b}
	}
	return header{}, cursor{}, &FormatError{s.name, off, errors.New("the section changed while it was read")}
}
