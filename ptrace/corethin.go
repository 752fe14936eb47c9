package ptrace

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"io"
	"sort"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
)

// coreSource holds the parts of a core that are copied unchanged to a core made from it.
type coreSource struct {
	order  binary.ByteOrder
	header [elfcore.HeaderSize]byte
	notes  []byte
}

// maxNotesKept bounds the total size of the notes that are copied. The notes of a thread have about 3 KiB.
const maxNotesKept = 256 << 20

// identity reads the parts that are copied to another core. It omits notes about the core's own memory. If nameless is set, it clears the command
// line.
func (c *core) identity(nameless bool) (*coreSource, error) {
	if c.header == nil {
		return c.heldSource(nameless)
	}
	s := &coreSource{order: c.target.arch.Order, header: c.header.Raw}
	budget := elfcore.MaxNotes
	for _, p := range c.notes {
		var failed error
		budget.Each(c.file, c.size, s.order, p, func(n elfcore.Note) {
			if n.Owner == ownOwner && (n.Kind == ntMemory || n.Kind == ntRedacted) || failed != nil {
				return
			}
			if most := min(maxNotesKept, int64(c.size)); int64(len(s.notes))+n.Whole.Size() > most {
				failed = c.fail(int64(p.Off), "its notes have more than %d bytes", most)
				return
			}
			b, err := io.ReadAll(n.Whole)
			if err != nil {
				failed = c.fail(int64(p.Off), "its notes: %w", err)
				return
			}
			if theirs := n.Owner == elfcore.OwnerCore || c.delve && n.Owner == ""; nameless && theirs && n.Kind == elf.NT_PRPSINFO {
				desc := b[len(b)-int(n.Desc.Size()):]
				clear(desc[min(infoCommand, len(desc)):min(infoSize, len(desc))])
			}
			s.notes = append(s.notes, b...)
			s.notes = append(s.notes, make([]byte, -len(b)&3)...)
		})
		if failed != nil {
			return nil, failed
		}
	}
	if len(s.notes) == 0 {
		return nil, c.fail(-1, "it has no notes, so the threads are unknown")
	}
	return s, nil
}

// ownPages returns the pages of files that differ from the files, in order of address. It excludes writable data that is not executable.
func (c *core) ownPages() (own []keptPart) {
	add := func(start, end machine.Addr) {
		if n := len(own); n > 0 && own[n-1].end == start {
			own[n-1].end = end
			return
		}
		own = append(own, keptPart{start, end, true})
	}
	written, private := c.written, c.keepsPrivate()
	room := c.size // segments may overlap in the file, so bound the cost of comparing them
	a, b := make([]byte, elfcore.Page), make([]byte, elfcore.Page)
	for i := range c.maps {
		m := &c.maps[i]
		if m.Write && !m.Exec || !strings.HasPrefix(m.Path, "/") {
			continue
		}
		if m.Write {
			add(m.Start, m.End)
			continue
		}
		held := m.heldUpTo(c.size)
		for at := m.Start; at < m.End; {
			for len(written) > 0 && written[0].end <= at {
				written = written[1:]
			}
			next := m.End
			if len(written) > 0 {
				next = min(next, max(at, written[0].start))
			}
			if next == at {
				next = min(m.End, written[0].end)
				add(at, next)
				at = next
				continue
			}
			if at >= held {
				unknown := min(next, m.claimedUpTo()) // the core is truncated before this part
				if !private {
					unknown = next
				}
				if unknown > at {
					add(at, unknown)
				}
				at = next
				continue
			}
			n := min(elfcore.Page-at&(elfcore.Page-1), next-at, held-at)
			known := room >= uint64(n) && m.module != nil && m.module.file != nil
			got, _ := c.file.ReadAt(a[:n], int64(m.segment.off)+int64(at-m.segment.start))
			if !known || got < int(n) || !samePage(m.module, a[:n], b[:n], int64(m.Offset)+int64(at-m.Start)) {
				add(at, at+n)
			}
			room -= min(room, uint64(n))
			at += n
		}
	}
	return own
}

// claimedUpTo returns the end of the part of the mapping that the core claims to hold.
func (m *coreMapping) claimedUpTo() machine.Addr {
	if m.segment == nil {
		return m.Start
	}
	return min(m.End, max(m.Start, m.segment.start+machine.Addr(m.segment.held)))
}

// heldUpTo returns the end of the part of the mapping that the core contains. size is the size of the core.
func (m *coreMapping) heldUpTo(size uint64) machine.Addr {
	s := m.segment
	if s == nil || s.off >= size {
		return m.Start
	}
	return min(m.End, max(m.Start, s.start+machine.Addr(min(s.held, size-s.off))))
}

// heldFrom returns the number of bytes of the mapping that the core itself contains from an address on.
func (c *core) heldFrom(a machine.Addr) uint64 {
	i := sort.Search(len(c.maps), func(i int) bool { return c.maps[i].End > a })
	if i == len(c.maps) || !c.maps[i].Contains(a) {
		return 0
	}
	return uint64(c.maps[i].heldUpTo(c.size) - min(a, c.maps[i].heldUpTo(c.size)))
}

// samePage reports whether a page, or a part of one, equals the file. b is a buffer of the same size.
func samePage(m *coreModule, page, b []byte, off int64) bool {
	n, _ := m.file.ReadAt(b, off)
	return n > 0 && bytes.Equal(page[:n], b[:n]) && elfcore.IsZero(page[n:])
}
