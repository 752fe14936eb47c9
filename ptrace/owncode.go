package ptrace

import (
	"cmp"
	"slices"

	"reframe/deopt/machine"
	"reframe/ptrace/system"
)

// Code of files that a process has patched is in pages of its own (private copies), which /proc/PID/pagemap tells from those of the
// file. Which ones there are is asked before a stop and after it: pages become the process's own by being written to, and do
// not become the file's again unless the process lets go of them. What need not be as in the file is copied in the stop.

// maxOwnCode is how many bytes of such code, and of a JIT's, are copied whatever the stacks hold. Of more it is what lies around possible return
// addresses.
const (
	maxOwnCode = 1 << 20
	ownPiece   = 64 << 10 // is read at once: where a part of it cannot be read, none is
	maxAsked   = 1 << 30  // bytes of a mapping about whose pages is asked: a JIT may have reserved more
)

// ownPages finds what of mapped files is not known to be as in the file, by address: pages that were written to, which the dynamic linker
// has relocated or something has patched; and code that can change any moment, because it can be written to,
// or because others see what is written into the file. Without data, of code alone.
func (t *Target) ownPages(data bool) (own []keptPart) {
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

// writtenElsewhere reports whether the file of a mapping is being written to, or can be through another mapping, as JIT compilers map their memory
// twice.
func (t *Target) writtenElsewhere(r machine.Mapping) bool {
	place := t.places.at(r.Start)
	return place != nil && (place.module.changes() || slices.ContainsFunc(place.module.maps, func(m machine.Mapping) bool { return m.Share && m.Write }))
}

// ownCode is what of own pages is code of files for which the process is asked, by address: what no image is in is copied as code of a JIT is.
func (t *Target) ownCode(own []keptPart) (code []machine.Mapping) {
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

// codeCopy is the code that a stop copies. It is made before that.
type codeCopy struct {
	own    []machine.Mapping     // code of files that need not be as in those, by address
	whole  []system.Want         // that is copied whatever the stacks hold
	around []machine.Mapping     // code of which what lies around possible return addresses is copied, by address
	pages  map[machine.Addr]bool // that are copied
}

// code prepares to copy the code that no file tells; own are the own pages of files.
func (t *Target) code(own []keptPart) *codeCopy {
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

// add makes code be copied whole, unless there is no room for all of it.
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

// inUse are the parts of mappings that have pages: to read others of a process would give them some.
func (t *Target) inUse(code []machine.Mapping) (parts []machine.Mapping) {
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
			return code // which is too much
		}
		for _, p := range pages.where(r, isPage) {
			r.Start, r.End = p.start, p.end
			parts = append(parts, r)
		}
	}
	return parts
}

// holds reports whether all code that is the process's own by now was known to be.
func (c *codeCopy) holds(now []machine.Mapping) bool {
	known := rangesOf(c.own, place)
	return !slices.ContainsFunc(now, func(r machine.Mapping) bool { return len(outside(place(r), known)) > 0 })
}

// spans are what was copied whole.
func (c *codeCopy) spans() []span { return spansOf(c.whole) }

// spansOf are those ranges that could be read.
func spansOf(wants []system.Want) (list []span) {
	for _, w := range wants {
		if w.OK {
			list = append(list, span{w.Addr, w.Buf})
		}
	}
	return list
}
