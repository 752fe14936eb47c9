package unwind

import (
	"errors"
	"fmt"
	"sort"

	"reframe/deopt/machine"
)

// indexed is one FDE in the index of a section that has no search table.
type indexed struct {
	start, end machine.Addr
	offset     int64
}

// window is how much of a section is read at once while it is walked. It holds
// any entry that is allowed, so reading again once is always enough.
const window = longestHeader + maxEntry

// indexFind is Find's lookup in the index.
func (t *Table) indexFind(pc machine.Addr) (int64, error) {
	t.once.Do(t.buildIndex)
	i := sort.Search(len(t.index), func(i int) bool { return t.index[i].start > pc })
	if i > 0 && pc < t.index[i-1].end {
		return t.index[i-1].offset, nil
	}
	if t.indexErr != nil {
		return 0, t.indexErr // the FDE may be one that could not be read
	}
	return 0, ErrNoFDE
}

// buildIndex walks .eh_frame from start to end. Each entry is read once, and a
// CIE counts only where an entry starts and before its FDEs, as every linker
// writes it: hostile bytes cannot make the walk longer than the section.
func (t *Table) buildIndex() {
	cies := map[int64]*cie{}
	keep := func(err error) {
		if t.indexErr == nil {
			t.indexErr = err
		}
	}
	var chunk cursor
	for off := int64(0); off < t.frame.Size; {
		h, body, err := t.nextEntry(&chunk, off)
		if errors.Is(err, errTerminator) {
			break
		}
		if err != nil {
			keep(err) // where the next entry starts is not known
			break
		}
		off = h.end
		if h.id == 0 {
			if cies[h.at], err = parseCIE(body, t.arch); err != nil {
				keep(err)
				delete(cies, h.at)
			}
			continue
		}
		e := cies[h.cieOffset()]
		if e == nil {
			keep(&FormatError{ehFrame, h.idAt, fmt.Errorf("no sound CIE at offset %#x, where this FDE says", h.cieOffset())})
			continue
		}
		f, err := parseFDE(body, h, e, t.bases)
		if err != nil {
			keep(err)
			continue
		}
		t.index = append(t.index, indexed{f.Start, f.End, f.Offset})
	}
	sort.SliceStable(t.index, func(i, j int) bool { return t.index[i].start < t.index[j].start })
}

// nextEntry is entryAt through chunk, which it fills again when the entry is
// not whole in it.
func (t *Table) nextEntry(chunk *cursor, off int64) (header, cursor, error) {
	for fresh := false; ; fresh = true {
		c := *chunk
		if rel := off - c.offset; rel <= int64(len(c.data)) {
			c.pos = int(rel)
			h, err := headerOf(&c, t.frame.Size)
			if whole := c.offset + int64(len(c.data)); err == nil && h.end <= whole {
				return h, c.sub(uint64(h.end - c.offset - int64(c.pos))), nil
			}
			if fresh {
				return h, c, err
			}
		}
		var err error
		if *chunk, err = t.cursorAt(off, min(window, t.frame.Size-off)); err != nil {
			return header{}, c, err
		}
	}
}
