package unwind

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"reframe/deopt/machine"
)

// compactRow is the size of a row of __compact_unwind of a 64-bit object: the address of a
// function (8 bytes), its length (4), its encoding (4), and the addresses of its
// personality and its exception table (8 each), which nobody asks for.
const compactRow = 32

// rowsAtOnce is how many rows are read at once: what a section claims to have is
// allocated only as far as it is there.
const rowsAtOnce = 1 << 12

// ReadCompactUnwind reads the __LD,__compact_unwind of a 64-bit object, whose relocations have been
// applied: rows in any order, all of them. Errors are an architecture that is not
// handled, and a [*FormatError] for rows that overlap or are cut off.
func ReadCompactUnwind(arch *machine.Arch, s Section) (*Compact, error) {
	if err := checkCompactArch(arch); err != nil {
		return nil, err
	}
	if s.Size%compactRow != 0 {
		return nil, &FormatError{compactUnwind, s.Size, fmt.Errorf("%d bytes are no rows of %d", s.Size, compactRow)}
	}
	c := &Compact{arch: arch}
	for off := int64(0); off < s.Size; {
		n := min(s.Size-off, rowsAtOnce*compactRow)
		b, err := s.read(compactUnwind, off, n)
		if err != nil {
			return nil, err
		}
		cur := cursor{section: compactUnwind, offset: off, order: arch.Order, data: b}
		for cur.more() {
			e := CompactEntry{Section: compactUnwind, Offset: cur.offset + int64(cur.pos) + 12, arch: arch}
			e.Start = machine.Addr(cur.u64())
			length := cur.u32()
			e.End = e.Start + machine.Addr(length)
			e.Encoding = cur.u32()
			if e.End < e.Start {
				return nil, e.errorf("code at %v of %#x bytes", e.Start, length)
			}
			cur.bytes(16)
			if length > 0 {
				c.rows = append(c.rows, e)
			}
		}
		off += n
	}
	slices.SortFunc(c.rows, func(a, b CompactEntry) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Offset, b.Offset))
	})
	for i := 1; i < len(c.rows); i++ {
		if before := &c.rows[i-1]; before.End > c.rows[i].Start {
			return nil, c.rows[i].errorf("the code at %v is part of that at %v, of the row for offset %#x", c.rows[i].Start, before.Start, before.Offset)
		}
	}
	return c, nil
}

func (c *Compact) findRow(pc machine.Addr) (*CompactEntry, error) {
	i := sort.Search(len(c.rows), func(i int) bool { return c.rows[i].Start > pc })
	if i == 0 || pc >= c.rows[i-1].End {
		return nil, ErrNoFDE
	}
	return &c.rows[i-1], nil
}
