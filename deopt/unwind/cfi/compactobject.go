package cfi

import (
	"cmp"
	"fmt"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
)

// compactRow is the size of a row of __compact_unwind in a 64-bit object: the address of a function (8 bytes), its length (4), its encoding (4), and
// the addresses of its personality and its exception table (8 each), which are ignored.
const compactRow = 32

// ReadCompactUnwind reads the __LD,__compact_unwind of a 64-bit object. data must be relocated; rows may be in any order. It returns an error for an
// unsupported architecture, and a [*FormatError] for rows that overlap or are truncated.
func ReadCompactUnwind(arch *machine.Arch, data []byte) (*Compact, error) {
	if err := checkCompactArch(arch); err != nil {
		return nil, err
	}
	if len(data)%compactRow != 0 {
		return nil, &FormatError{compactUnwind, int64(len(data)), fmt.Errorf("%d bytes; expected a multiple of %d", len(data), compactRow)}
	}
	c := &Compact{arch: arch, rows: make([]CompactEntry, 0, len(data)/compactRow)}
	for cur := (cursor{section: compactUnwind, order: arch.Order, data: data}); cur.more(); {
		e := CompactEntry{Section: compactUnwind, Offset: int64(cur.pos) + 12, arch: arch}
		e.Start = machine.Addr(cur.u64())
		length := cur.u32()
		e.End = e.Start + machine.Addr(length)
		e.Encoding = cur.u32()
		cur.bytes(16)
		if e.End < e.Start {
			return nil, e.errorf("invalid code range: %#x bytes at %v", length, e.Start)
		}
		if length > 0 {
			c.rows = append(c.rows, e)
		}
	}
	slices.SortFunc(c.rows, func(a, b CompactEntry) int {
		return cmp.Or(cmp.Compare(a.Start, b.Start), cmp.Compare(a.Offset, b.Offset))
	})
	for i := 1; i < len(c.rows); i++ {
		if e, before := &c.rows[i], &c.rows[i-1]; e.Start < before.End {
			return nil, e.errorf("the code at %v is part of that at %v, whose encoding is at offset %#x", e.Start, before.Start, before.Offset)
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
