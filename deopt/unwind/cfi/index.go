package cfi

import (
	"errors"
	"fmt"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
)

// index holds the FDEs of a section without a search table, by code range.
type index struct {
	fdes []indexed
	err  error // first error about an entry that is missing from the index
}

type indexed struct {
	machine.Range
	offset int64
}

// window is the number of bytes to read at once during a walk. A longer entry is read again as a whole.
const window = 64 << 10

// indexed returns the offset of the FDE that covers pc, looked up in the index.
func (s *frames) indexed(pc machine.Addr) (int64, error) {
	s.once.Do(s.buildIndex)
	fdes := s.index.fdes
	i := sort.Search(len(fdes), func(i int) bool { return fdes[i].Start > pc })
	if i > 0 && fdes[i-1].Contains(pc) {
		return fdes[i-1].offset, nil
	}
	if s.index.err != nil {
		return 0, s.index.err // the missing FDE may cover pc
	}
	return 0, ErrNoFDE
}

// buildIndex walks the section from start to end and reads the code range of each entry. It accepts a CIE only if the walk has read an entry
// there, before the FDEs that refer to it, as every linker writes it. So it reads each entry once, and hostile bytes cannot make the walk longer
// than the section.
func (s *frames) buildIndex() {
	encodings := map[int64]uint8{} // encodings of the CIEs
	keep := func(err error) {
		if s.index.err == nil {
			s.index.err = err
		}
	}
	if s.Size < 0 {
		keep(&FormatError{s.name, 0, fmt.Errorf("invalid section size: %d bytes", uint64(s.Size))})
	}
	var chunk cursor
	for off := int64(0); off < s.Size; {
		h, c, err := s.entry(&chunk, off, window)
		if errors.Is(err, errTerminator) {
			if s.eh {
				break
			}
			off = h.idAt // DWARF has no terminator: this is padding
			continue
		}
		if err != nil {
			keep(err) // stop, because the start of the next entry is unknown
			break
		}
		off = h.end
		if h.isCIE {
			if e, err := cieHead(&c, s.arch); err != nil {
				keep(err)
			} else {
				encodings[h.at] = e.encoding
			}
			continue
		}
		encoding, ok := encodings[h.cie]
		if !ok {
			keep(&FormatError{s.name, h.idAt, fmt.Errorf("the FDE refers to offset %#x, which has no valid CIE", h.cie)})
			continue
		}
		start, end := c.codeRange(encoding, s.bases)
		if c.err != nil {
			keep(c.err)
		} else if start < end {
			s.index.fdes = append(s.index.fdes, indexed{machine.Range{Start: start, End: end}, h.at})
		}
	}
	s.index.fdes = slices.Clip(s.index.fdes)
	sort.SliceStable(s.index.fdes, func(i, j int) bool { return s.index.fdes[i].Start < s.index.fdes[j].Start })
}
