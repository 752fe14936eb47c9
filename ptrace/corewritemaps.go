package ptrace

import (
	"cmp"
	"encoding/binary"
	"io"
	"slices"
	"sort"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
)

// keptPart is a part of a mapping that a core contains completely or not at all.
type keptPart struct {
	start, end machine.Addr
	keep       bool
}

// kept returns the parts of a mapping that a core must contain. With Writable, that is memory whose content is in no file. This corresponds to the
// kernel's default (0x33 of coredump_filter, core(5)), but selects pages: the kernel keeps the whole mapping of a file if one page was written.
func (m *coreMoment) kept(r machine.Mapping) []keptPart {
	return cut(m.wanted(r), m.redacted)
}

// wanted returns the parts of a mapping that kept would return without redaction.
func (m *coreMoment) wanted(r machine.Mapping) []keptPart {
	whole := []keptPart{{r.Start, r.End, true}}
	none := []keptPart{{r.Start, r.End, false}}
	switch {
	case m.mode == Minimal:
		return m.minimal(r)
	case !r.Read || uint64(r.End-r.Start) > maxKept:
		return none
	case m.mode == All:
		return whole
	case r.Inode == 0 || r.Share && strings.HasSuffix(r.Path, deletedSuffix):
		return whole // anonymous memory, or a file that exists only in the memory of processes
	case r.Share:
		return none
	case r.Write:
		return whole
	}
	return m.copies(r, true)
}

// minimal divides a mapping into the parts that were copied, which a minimal core contains, and the other parts.
func (m *coreMoment) minimal(r machine.Mapping) (parts []keptPart) {
	from := r.Start
	add := func(end machine.Addr, keep bool) {
		if end > from {
			parts = append(parts, keptPart{from, end, keep})
			from = end
		}
	}
	first := sort.Search(len(m.spans), func(i int) bool { return m.spans[i].end() > r.Start })
	for _, s := range m.spans[first:] {
		if s.addr >= r.End {
			break
		}
		add(max(s.addr, r.Start), false)
		add(min(s.end(), r.End), true)
	}
	add(r.End, false)
	return parts
}

// ownLeftOut returns the pages that differ from their files but are not in the core. A reader of the core must not read them from the files.
func (m *coreMoment) ownLeftOut() (out []keptPart) {
	for _, own := range m.own {
		for _, p := range m.minimal(machine.Mapping{Start: own.start, End: own.end}) {
			if !p.keep {
				out = append(out, p)
			}
		}
	}
	return out
}

// outside returns the parts of a range that no range in others contains. others is in ascending order.
func outside(r addrRange, others []addrRange) (out []addrRange) {
	first := sort.Search(len(others), func(i int) bool { return others[i].end > r.start })
	for _, o := range others[first:] {
		if o.start >= r.end {
			break
		}
		if o.start > r.start {
			out = append(out, addrRange{r.start, o.start})
		}
		r.start = max(r.start, o.end)
	}
	if r.start < r.end {
		out = append(out, r)
	}
	return out
}

// outside returns the parts of a span that no range in others contains. others is in ascending order.
func (s span) outside(others []addrRange) (out []span) {
	for _, p := range outside(addrRange{s.addr, s.end()}, others) {
		end := p.end - s.addr
		out = append(out, span{p.start, s.data[p.start-s.addr : end : end]})
	}
	return out
}

// withoutRanges returns the parts of spans outside of ranges, which are in ascending order.
func withoutRanges(spans []span, ranges []addrRange) (out []span) {
	for _, s := range spans {
		out = append(out, s.outside(ranges)...)
	}
	return out
}

// rangesOf returns the address range of each element, which is a mapping, span or part.
func rangesOf[T any](list []T, of func(T) addrRange) (out []addrRange) {
	for _, x := range list {
		out = append(out, of(x))
	}
	return out
}

func (s span) place() addrRange         { return addrRange{s.addr, s.end()} }
func (p keptPart) place() addrRange     { return addrRange{p.start, p.end} }
func place(m machine.Mapping) addrRange { return addrRange{m.Start, m.End} }

// withMore adds to maps the mappings that were created while the list was read, and a mapping for each copied range without one. The mapping of such
// a range was removed meanwhile, such as that of the stack of a short-lived thread.
func withMore(maps, more []machine.Mapping, copied []span) []machine.Mapping {
	all := ordered(slices.Concat(maps, more))
	known := rangesOf(all, place)
	for _, s := range copied {
		for _, p := range s.outside(known) {
			all = append(all, machine.Mapping{Start: p.addr, End: p.end(), Read: true, Write: true})
		}
	}
	return ordered(all)
}

// ordered sorts mappings by address and removes overlaps. The kernel's list of a running process is not a snapshot: a mapping that changes while the
// list is read may occur twice.
func ordered(maps []machine.Mapping) (out []machine.Mapping) {
	maps = slices.Clone(maps)
	slices.SortStableFunc(maps, func(a, b machine.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	last := machine.Addr(0)
	for _, m := range maps {
		if m.Start < last {
			m.Offset += uint64(min(last, m.End) - m.Start)
			m.Start = last
		}
		if m.Start < m.End {
			out, last = append(out, m), m.End
		}
	}
	return out
}

// maxKept is the size of the largest mapping that is kept. Larger mappings are reserved address space, such as the terabytes of AddressSanitizer, for
// which no disk has room.
const maxKept = 64 << 30

// maxParts bounds the number of segments of one mapping.
const maxParts = 1 << 10

// copies returns the pages of a private mapping that differ from the file because the dynamic linker relocated them or the process patched them. If
// first is set, it adds the first page, which may contain the file's headers.
func (m *coreMoment) copies(r machine.Mapping, first bool) []keptPart {
	return partsWhere(m.pages, r, func(at machine.Addr, entry uint64) bool {
		return first && at == r.Start && r.Offset == 0 || ownPage(entry)
	})
}

// partsWhere divides a mapping by the result of f for each page and its entry in pagemap. If the entries cannot be read, the whole mapping counts as
// if f had returned true.
func partsWhere(pages io.ReaderAt, r machine.Mapping, f func(at machine.Addr, entry uint64) bool) (parts []keptPart) {
	if pages == nil {
		return []keptPart{{r.Start, r.End, true}}
	}
	add := func(start, end machine.Addr, keep bool) {
		if n := len(parts); n > 0 && (parts[n-1].keep == keep || n >= maxParts) {
			parts[n-1].end, parts[n-1].keep = end, parts[n-1].keep || keep
			return
		}
		parts = append(parts, keptPart{start, end, keep})
	}
	entries := make([]byte, 8*512)
	for at := r.Start; at < r.End; {
		n := min(uint64(r.End-at)/elfcore.Page, uint64(len(entries)/8))
		if n == 0 {
			add(at, r.End, true)
			break
		}
		if _, err := pages.ReadAt(entries[:8*n], int64(at/elfcore.Page*8)); err != nil {
			add(at, r.End, true)
			break
		}
		for i := range n {
			add(at, at+elfcore.Page, f(at, binary.LittleEndian.Uint64(entries[8*i:])))
			at += elfcore.Page
		}
	}
	return parts
}

// Bits of an entry of /proc/PID/pagemap (Documentation/admin-guide/mm/pagemap.rst of Linux).
const (
	pagePresent = 1 << 63
	pageSwapped = 1 << 62
	pageOfFile  = 1 << 61 // the page belongs to a file or to shared anonymous memory
)

// ownPage reports whether an entry has a page that does not belong to a file.
func ownPage(entry uint64) bool { return isPage(entry) && entry&pageOfFile == 0 }

func isPage(entry uint64) bool { return entry&(pagePresent|pageSwapped) != 0 }

// untouched reports whether memory has no pages, so that it is zero. Reading such memory would allocate pages.
func (m *coreMoment) untouched(r machine.Mapping, at machine.Addr, size int) bool {
	if m.pages == nil || !zeroFilled(r) || m.awaits != nil && m.awaits(at, size) {
		return false
	}
	pages := (int(at&(elfcore.Page-1)) + size + elfcore.Page - 1) / elfcore.Page
	entries := make([]byte, 8*pages)
	if _, err := m.pages.ReadAt(entries, int64(at/elfcore.Page*8)); err != nil {
		return false
	}
	for i := 0; i < len(entries); i += 8 {
		if isPage(binary.LittleEndian.Uint64(entries[i:])) {
			return false
		}
	}
	return true
}
