package cfi

import (
	"errors"
	"sort"
	"sync"

	"example.com/reframe/internal/machine"
)

// hdrVersion is the only version of .eh_frame_hdr (Linux Standard Base, Core
// 5.0 §10.6.2).
const hdrVersion = 1

// searchChunk is the number of rows at which a search stops bisecting and reads them all at once.
const searchChunk = 64

// searchTable is the sorted table of an .eh_frame_hdr. Each row has the start of an FDE's code and the address of the FDE.
type searchTable struct {
	section Section
	arch    *machine.Arch
	frame   machine.Addr // load address of the .eh_frame
	enc     uint8        // encoding of both addresses
	size    int64        // size of a row in bytes
	first   int64        // offset of row 0
	count   int

	// Cache of the rows that searches read first: in a large library, most reads of a search are for these rows. The rows form a binary tree: a
	// search reads node 1, and after node n it reads node 2n if pc is before n's row, or else node 2n+1.
	mu    sync.Mutex
	known [256]bool
	tops  [256]machine.Addr
}

// errNoTable reports an .eh_frame_hdr without a table that can be searched.
var errNoTable = errors.New("the search table is missing or has an unsupported form")

// readHdr reads the start of the .eh_frame_hdr for the .eh_frame at frame. Linkers omit the table if they do not understand all of the .eh_frame. All
// tested linkers write rows of two 4-byte numbers, relative to the section.
func readHdr(s Section, arch *machine.Arch, frame machine.Addr) (*searchTable, error) {
	b, err := s.read(ehFrameHdr, 0, min(s.Size, 4+8+8))
	if err != nil {
		return nil, err
	}
	c := cursor{section: ehFrameHdr, addr: s.Addr, order: arch.Order, data: b}
	version, frameEnc, countEnc, tableEnc := c.u8(), c.u8(), c.u8(), c.u8()
	if c.err == nil && version != hdrVersion {
		c.failf("unsupported .eh_frame_hdr version %d", version)
	}
	t := &searchTable{section: s, arch: arch, frame: frame, enc: tableEnc, size: rowSize(tableEnc)}
	if countEnc == peOmit || t.size == 0 {
		c.fail(errNoTable)
	}
	base := t.bases()
	if at := c.pointer(frameEnc, base); c.err == nil && at != frame {
		c.failf("the header belongs to an .eh_frame at %v; expected %v", at, frame)
	}
	count := c.plain(countEnc)
	if c.err == nil && count > uint64(s.Size-int64(c.pos))/uint64(t.size) {
		c.failf("a table of %d rows in a section of %d bytes", count, s.Size)
	}
	if c.err != nil {
		return nil, c.err
	}
	t.first, t.count = int64(c.pos), int(count)
	return t, nil
}

// rowSize returns the size in bytes of a row of the search table, or 0 for an encoding that cannot be searched.
func rowSize(enc uint8) int64 {
	switch enc & (peBase | peIndirect) {
	case 0, pePCRel, peDataRel:
	default:
		return 0
	}
	switch enc & peForm {
	case peUdata2, peSdata2:
		return 2 * 2
	case peUdata4, peSdata4:
		return 2 * 4
	case peAbsptr, peSigned, peUdata8, peSdata8:
		return 2 * 8
	}
	return 0
}

func (t *searchTable) bases() bases { return bases{abs: t.section.Bias, data: t.section.Addr} }

// find returns the last FDE that starts at or before pc, as the start of its code and its address.
func (t *searchTable) find(pc machine.Addr) (start, fde machine.Addr, err error) {
	buffer := make([]byte, searchChunk*t.size)
	low, high := 0, t.count // the row is in [low, high), or does not exist
	for node := 1; high-low > searchChunk; {
		middle := low + (high-low)/2
		at, err := t.top(buffer, node, middle)
		if err != nil {
			return 0, 0, err
		}
		if node *= 2; at <= pc {
			low = middle
			node++
		} else {
			high = middle
		}
	}
	rows, err := t.rows(buffer, low, high-low)
	if err != nil {
		return 0, 0, err
	}
	i := sort.Search(high-low, func(i int) bool { at, _ := t.row(&rows, i); return at > pc })
	if i == 0 {
		return 0, 0, ErrNoFDE
	}
	start, fde = t.row(&rows, i-1)
	if fde < t.frame {
		rows.failf("an FDE at %v, before .eh_frame at %v", fde, t.frame)
	}
	return start, fde, rows.err
}

// top returns the start of row i, which is node number node of the search tree.
func (t *searchTable) top(buffer []byte, node, i int) (machine.Addr, error) {
	if node < len(t.known) {
		t.mu.Lock()
		at, known := t.tops[node], t.known[node]
		t.mu.Unlock()
		if known {
			return at, nil
		}
	}
	rows, err := t.rows(buffer, i, 1)
	if err != nil {
		return 0, err
	}
	at, _ := t.row(&rows, 0)
	if node < len(t.known) {
		t.mu.Lock()
		t.tops[node], t.known[node] = at, true
		t.mu.Unlock()
	}
	return at, nil
}

// rows reads n rows from row i into the buffer.
func (t *searchTable) rows(buffer []byte, i, n int) (cursor, error) {
	at := t.first + int64(i)*t.size
	b := buffer[:int64(n)*t.size]
	c := cursor{section: ehFrameHdr, offset: at, addr: t.section.Addr + machine.Addr(at), order: t.arch.Order, data: b}
	return c, t.section.fill(ehFrameHdr, b, at)
}

// row decodes row i of rows.
func (t *searchTable) row(rows *cursor, i int) (start, fde machine.Addr) {
	rows.pos = i * int(t.size)
	return rows.pointer(t.enc, t.bases()), rows.pointer(t.enc, t.bases())
}
