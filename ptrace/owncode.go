package ptrace

import (
	"cmp"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// If a process patches code of a file, the code is in private pages, which /proc/PID/pagemap distinguishes from pages of the file. They are listed
// before a stop and after it: a page becomes private when it is written, and stays private unless the process discards it. Code that may differ from
// the file is copied during the stop.

// Limits on copying code. maxOwnCode bounds the number of bytes of patched code and of JIT code that are copied independently of the stacks. If there
// is more, only code around possible return addresses is copied.
const (
	maxOwnCode = 1 << 20
	ownPiece   = 64 << 10 // bytes of one read; if a part of it cannot be read, the read fails
	maxAsked   = 1 << 30  // bytes of the largest mapping whose pages are listed; a JIT may have reserved a larger one
)

// ownPages returns the parts of mapped files that may differ from the file, sorted by address: pages that the dynamic linker has relocated or a patch
// has changed, and code that can change at any time, because it is writable or because writes to the file are shared. If data is false, it returns
// only code.
func (t reading) ownPages(data bool) (own []keptPart) {
	pages, err := t.pagemap()
	if err == nil {
		defer pages.Close()
	}
	for _, r := range t.maps {
		switch {
		case r.Inode == 0 && r.Path != vdsoPath, !r.Exec && (!data || r.Write || r.Share):
			continue
		case r.Exec && (r.Write || r.Share || t.writtenElsewhere(r)) || uint64(r.End-r.Start) > maxAsked:
			own = append(own, keptPart{r.Start, r.End, true})
			continue
		}
		own = append(own, pages.where(r, ownPage)...)
	}
	return joined(own)
}

// writtenElsewhere reports whether the file of a mapping is being written, or can be written through another mapping. JIT compilers often map their
// memory twice.
func (t reading) writtenElsewhere(r machine.Mapping) bool {
	place := t.places.at(r.Start)
	return place != nil && (place.module.changes() || slices.ContainsFunc(place.module.maps, func(m machine.Mapping) bool { return m.Share && m.Write }))
}

// ownCode returns the code of files in own pages, sorted by address. It is read from the process. Code that is in no image is copied like JIT code
// instead.
func (t reading) ownCode(own []keptPart) (code []machine.Mapping) {
	parts := rangesOf(own, keptPart.place)
	for _, r := range t.places {
		if !r.Exec || r.module.Image == nil {
			continue
		}
		from := r.Start
		for _, p := range append(outside(place(r.Mapping), parts), addrRange{r.End, r.End}) {
			if p.start > from {
				own := r.Mapping
				own.Start, own.End = from, p.start
				code = append(code, own)
			}
			from = p.end
		}
	}
	return code
}

// codeCopy is the code that a stop copies. It is prepared before the stop.
type codeCopy struct {
	own    []machine.Mapping     // code of files that may differ from the files, in order of address
	whole  []system.Want         // code that is copied independently of the stacks
	around []machine.Mapping     // code that is copied only around possible return addresses, in order of address
	pages  map[machine.Addr]bool // the pages to copy
}

// code prepares the copy of code that is not in a file. own holds the private pages of files.
func (t reading) code(own []keptPart) *codeCopy {
	c := &codeCopy{own: t.ownCode(own), around: jitCode(t.maps, t.Modules), pages: map[machine.Addr]bool{}}
	jit := t.inUse(c.around)
	room := uint64(maxOwnCode)
	if !c.add(c.own, &room) {
		c.around = append(c.around, c.own...)
		slices.SortFunc(c.around, func(a, b machine.Mapping) int { return cmp.Compare(a.Start, b.Start) })
	}
	c.add(jit, &room)
	return c
}

// add adds mappings of code to the code that is copied completely, if there is room for all of them.
func (c *codeCopy) add(code []machine.Mapping, room *uint64) bool {
	size := uint64(0)
	for _, r := range code {
		size += uint64(r.End - r.Start)
	}
	if size > *room {
		return false
	}
	*room -= size
	b := make([]byte, size)
	touch(b)
	for _, r := range code {
		for at := r.Start; at < r.End; {
			n := min(ownPiece, uint64(r.End-at))
			c.whole = append(c.whole, system.Want{Addr: at, Buf: b[:n:n]})
			b, at = b[n:], at+machine.Addr(n)
		}
		for at := r.Start; at < r.End; at += codePage {
			c.pages[at] = true
		}
	}
	return true
}

// inUse returns the parts of mappings that have pages, because reading the other parts would allocate pages in the process.
func (t reading) inUse(code []machine.Mapping) (parts []machine.Mapping) {
	if t.core != nil {
		return code
	}
	pages, err := t.pagemap()
	if err != nil {
		return nil
	}
	defer pages.Close()
	for _, r := range code {
		if uint64(r.End-r.Start) > maxAsked {
			return code // the caller detects that it is too large
		}
		for _, p := range pages.where(r, isPage) {
			r.Start, r.End = p.start, p.end
			parts = append(parts, r)
		}
	}
	return parts
}

// holds reports whether own, which was listed before the stop, contains all code that may differ from its file now.
func (c *codeCopy) holds(now []machine.Mapping) bool {
	known := rangesOf(c.own, place)
	return !slices.ContainsFunc(now, func(r machine.Mapping) bool { return len(outside(place(r), known)) > 0 })
}

// spans returns the code that was copied independently of the stacks.
func (c *codeCopy) spans() []span { return spansOf(c.whole) }

// unreadOf returns the ranges that could not be read.
func unreadOf(wants []system.Want) (list []machine.Range) {
	for _, w := range wants {
		if !w.OK {
			list = append(list, machine.Range{Start: w.Addr, End: w.Addr + machine.Addr(len(w.Buf))})
		}
	}
	return list
}

// spansOf returns the ranges that could be read.
func spansOf(wants []system.Want) (list []span) {
	for _, w := range wants {
		if w.OK {
			list = append(list, span{w.Addr, w.Buf})
		}
	}
	return list
}
