package ptrace

import (
	"io"
	"os"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
)

// pagemap reads the list of a process's pages (Documentation/admin-guide/mm/pagemap.rst of Linux) as if each page had elfcore.Page bytes. On arm64
// the kernel's pages may have 16 or 64 KiB.
type pagemap struct {
	io.Closer
	list io.ReaderAt
	page int64    // size of the kernel's pages
	file *os.File // the file of list
}

// without returns the parts of a mapping that have no pages. Parts whose state is unknown, and parts beyond maxParts, count as having pages.
func (p *pagemap) without(r machine.Mapping) (parts []machine.Range) {
	from, many := r.Start, false
	err := system.Pages(p.file.Fd(), r.Start, r.End, func(start, end machine.Addr) {
		if many = many || len(parts) == maxParts; !many && start > from {
			parts = append(parts, machine.Range{Start: from, End: start})
		}
		from = end
	})
	if err == nil {
		if !many && from < r.End {
			parts = append(parts, machine.Range{Start: from, End: r.End})
		}
		return parts
	}
	parts = nil // the kernel does not support this request; read the entry of each page instead
	for _, part := range partsWhere(p, r, func(_ machine.Addr, entry uint64) bool { return isPage(entry) }) {
		if !part.keep {
			parts = append(parts, machine.Range{Start: part.start, End: part.end})
		}
	}
	return parts
}

// all reports whether all pages of a range are present.
func (p *pagemap) all(r machine.Range) bool {
	whole := machine.Mapping{Start: r.Start &^ (elfcore.Page - 1), End: (r.End + elfcore.Page - 1) &^ (elfcore.Page - 1)}
	missing := partsWhere(p, whole, func(_ machine.Addr, entry uint64) bool { return !isPage(entry) })
	return !slices.ContainsFunc(missing, func(part keptPart) bool { return part.keep })
}

// where returns the parts of a mapping whose page entries satisfy f. If the list of pages cannot be read, it returns the whole mapping.
func (p *pagemap) where(r machine.Mapping, f func(entry uint64) bool) (parts []keptPart) {
	if p == nil {
		return []keptPart{{r.Start, r.End, true}}
	}
	for _, part := range partsWhere(p, r, func(_ machine.Addr, entry uint64) bool { return f(entry) }) {
		if part.keep {
			parts = append(parts, part)
		}
	}
	return parts
}

// ReadAt implements [io.ReaderAt] for whole entries. If it returns an error, it has read no entry.
func (p *pagemap) ReadAt(b []byte, off int64) (int, error) {
	const entry = 8
	in := max(1, p.page/elfcore.Page) // number of pages of elfcore.Page bytes in a page of the kernel
	first, count := off/entry, int64(len(b)/entry)
	if count == 0 {
		return 0, nil
	}
	from := first / in
	theirs := make([]byte, ((first+count-1)/in-from+1)*entry)
	if _, err := p.list.ReadAt(theirs, from*entry); err != nil {
		return 0, err
	}
	for i := range count {
		copy(b[entry*i:][:entry], theirs[entry*((first+i)/in-from):])
	}
	return len(b), nil
}
