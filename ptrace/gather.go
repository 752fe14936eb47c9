package ptrace

import (
	"bytes"
	"encoding/binary"
	"iter"
	"slices"
	"strings"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
)

// Bounds of a minimal core, which contains the pages to which registers and stacks point: the memory that an interpreter may access after resuming
// there. The pages are read while the process is stopped. Therefore fixed numbers bound the work, independently of the amount of data.
const (
	reachWords = 8192 // words of registers and stacks whose pointers are followed, for all threads together
	reachLeast = 64   // number of such words for each thread, at least
	reachNext  = 32   // words in a block: the memory at the target of a pointer, whose own pointers are followed
	reachAll   = 1024 // number of blocks
	reachDepth = 4
	reachPages = 512
	// registryPages is the maximum number of registered objects whose entries are kept with the complete pages that contain them. If there are more,
	// only the entries are kept.
	registryPages = 256
	maxHeaders    = 64 // number of first pages of files
)

// start is the state of a thread from which pointers are followed.
type start struct {
	sp        machine.Addr
	registers []uint64
	stack     span
}

// gatherer collects pages. Its memory is allocated before the process is stopped.
type gatherer struct {
	order binary.ByteOrder
	// Mappings into which pointers are followed: those that are writable while the process runs, and whose pages userfaultfd does not provide.
	maps   []machine.Mapping
	always []machine.Addr       // addresses that debuggers need to find files
	at     map[machine.Addr]int // index into pages
	data   map[*Entry]bool      // objects whose variables were added
	pages  []system.Want
	next   []machine.Addr // blocks in pages that are not yet read
	blocks map[machine.Addr]bool
	full   bool // there was no room for further pages
}

// newGatherer returns a gatherer for a target whose lists have been read.
func newGatherer(t *Target) *gatherer {
	g := &gatherer{order: t.arch.Order, at: make(map[machine.Addr]int, 2*reachPages), data: map[*Entry]bool{}, blocks: make(map[machine.Addr]bool, 2*reachAll), pages: make([]system.Want, 0, reachPages)}
	for _, r := range t.maps {
		if r.Read && (r.Write || !ofFile(r) && !r.Exec) && len(overlaps(t.provided.ranges(), machine.Range{Start: r.Start, End: r.End})) == 0 {
			g.maps = append(g.maps, r)
		}
	}
	for _, r := range t.Registries {
		g.always = append(g.always, r.Descriptor, r.Descriptor+descriptorSize-1)
		if len(r.Entries) <= registryPages {
			for _, e := range r.Entries {
				g.always = append(g.always, e.Addr, e.Addr+entrySize-1)
			}
		}
	}
	g.always = append(g.always, t.recorder().linkMap()...)
	g.always = append(g.always, t.recorder().headers()...)
	room := make([]byte, reachPages*elfcore.Page)
	touch(room)
	for range reachPages {
		g.pages = append(g.pages, system.Want{Buf: room[:elfcore.Page:elfcore.Page]})
		room = room[elfcore.Page:]
	}
	g.pages = g.pages[:0]
	return g
}

// ofFile reports whether a mapping belongs to a file. A core does not contain inodes, so the path decides there.
func ofFile(r machine.Mapping) bool { return r.Inode != 0 || strings.HasPrefix(r.Path, "/") }

// gather reads the pages. It follows the pointers in registers and in the first words of each stack, nearest first.
func (g *gatherer) gather(mem memory, t *Target, threads []start) error {
	for _, a := range g.always {
		g.add(a)
	}
	each := max(reachLeast, reachWords/max(1, len(threads)))
	for _, th := range threads {
		g.add(th.sp - redZone)
		room := each
		follow := func(w machine.Addr) {
			if room--; room >= 0 {
				g.variables(t, codeAddr(t.arch, w))
				g.follow(w)
			}
		}
		for _, w := range th.registers {
			follow(machine.Addr(w))
		}
		s := th.stack
		s.data = s.data[:min(len(s.data), 8*max(room, 0)+redZone)]
		s.eachWord(g.order, follow)
	}
	for depth, from := 0, 0; ; depth++ {
		end := len(g.pages)
		if err := mem.readMany(g.pages[from:end]); err != nil {
			return err
		}
		if depth == reachDepth || from == end {
			return nil
		}
		g.deeper()
		from = end
	}
}

// add adds a page, and reports whether it had room for it.
func (g *gatherer) add(a machine.Addr) bool {
	page := a &^ (elfcore.Page - 1)
	if _, known := g.at[page]; known {
		return true
	}
	if len(g.pages) == cap(g.pages) {
		g.full = true
		return false
	}
	g.at[page] = len(g.pages)
	g.pages = g.pages[:len(g.pages)+1]
	g.pages[g.at[page]].Addr = page
	return true
}

// follow adds the page to which a word points, if the word is a pointer into memory that may change.
func (g *gatherer) follow(w machine.Addr) {
	if len(g.maps) == 0 || w < g.maps[0].Start || w >= g.maps[len(g.maps)-1].End {
		return
	}
	block := w &^ (8*reachNext - 1)
	if g.blocks[block] {
		return
	}
	if _, ok := findMapping(g.maps, w); ok && g.add(w) && len(g.blocks) < reachAll {
		g.blocks[block] = true
		g.next = append(g.next, block)
	}
}

// deeper follows the pointers in the blocks that the last round read.
func (g *gatherer) deeper() {
	now := g.next
	g.next = nil
	for _, block := range now {
		if p := &g.pages[g.at[block&^(elfcore.Page-1)]]; p.OK {
			span{block, p.Buf[block&(elfcore.Page-1):][:8*reachNext]}.eachWord(g.order, g.follow)
		}
	}
}

// variables adds the data of the registered object into whose code a word points.
func (g *gatherer) variables(t *Target, w machine.Addr) {
	for _, r := range t.Registries {
		if e := r.at(w); e != nil && !g.data[e] {
			g.data[e] = true
			for _, d := range e.variables {
				for a := d.start &^ (elfcore.Page - 1); a < d.end; a += elfcore.Page {
					if !g.add(a) {
						return
					}
				}
			}
		}
	}
}

func (g *gatherer) spans() []span {
	return spansOf(g.pages)
}

// headers returns the first pages of files, which identify the files, if they differ from the files.
func (t recorder) headers() (at []machine.Addr) {
	if t.recorded == nil {
		return nil
	}
	own := rangesOf(t.recorded.own, keptPart.place)
	for _, m := range t.maps {
		if ofFile(m) && m.Offset == 0 && len(at) < maxHeaders && len(outside(addrRange{m.Start, m.Start + 1}, own)) == 0 {
			at = append(at, m.Start)
		}
	}
	return at
}

// Constants of the auxiliary vector (getauxval(3)), of dynamic sections (elf(5)) and of link.h.
const (
	atPhdr  = 3
	atPhnum = 5
	dtDebug = 21

	maxLinked  = 1 << 12 // maximum number of loaded files
	maxDynamic = 1 << 10
)

// linkMap returns the addresses that debuggers read to find the loaded files: the dynamic section of the program, the target of its DT_DEBUG, and the
// entries of the list with their names. The number of entries is limited, because the list may be endless.
func (t recorder) linkMap() (at []machine.Addr) {
	if t.recorded == nil || t.recorded.about == nil {
		return nil
	}
	for range linkMap(t.source, t.arch.Order, t.recorded.about.auxv, func(read ...machine.Addr) { at = append(at, read...) }) {
	}
	seen := map[machine.Addr]bool{}
	return slices.DeleteFunc(at, func(a machine.Addr) bool {
		page := a &^ (elfcore.Page - 1)
		_, mapped := findMapping(t.maps, a)
		drop := seen[page] || !mapped
		seen[page] = true
		return drop
	})
}

// linkedFile is an entry of the list of loaded files: the load bias of the file, and the address of its path, which is empty for the program.
type linkedFile struct{ bias, name machine.Addr }

// linkMap iterates over the list of loaded files. It calls reads with the addresses that it reads. The number of entries is limited, because the list
// may be endless.
func linkMap(mem machine.Memory, order binary.ByteOrder, auxv []byte, reads func(...machine.Addr)) iter.Seq[linkedFile] {
	return func(yield func(linkedFile) bool) {
		word := func(a machine.Addr) machine.Addr {
			var b [8]byte
			if mem.ReadMemory(b[:], a) != nil {
				return 0
			}
			return machine.Addr(order.Uint64(b[:]))
		}
		for d, end := dynamicSection(word, order, auxv); d < end; d += 16 {
			tag := word(d)
			if tag == 0 {
				return
			}
			reads(d)
			if tag != dtDebug {
				continue
			}
			debug := word(d + 8) // struct r_debug: version, pointer to the first entry, …
			reads(debug, debug+40)
			for e, n := word(debug+8), 0; e != 0 && n < maxLinked; e, n = word(e+24), n+1 {
				// struct link_map: address, name, dynamic section, next, previous.
				name := word(e + 8)
				reads(e, e+40, name, name+255)
				if !yield(linkedFile{word(e), name}) {
					return
				}
			}
		}
	}
}

// dynamicSection returns the bounds of the program's dynamic section.
func dynamicSection(word func(machine.Addr) machine.Addr, order binary.ByteOrder, auxv []byte) (from, end machine.Addr) {
	var headers, count machine.Addr
	for kind, value := range auxEntries(auxv, order) {
		switch kind {
		case atPhdr:
			headers = value
		case atPhnum:
			count = value
		}
	}
	var bias, dynamic machine.Addr
	for i := range min(count, maxFilePrograms) {
		p := headers + i*elfcore.ProgramSize
		switch kind := word(p) & 0xffffffff; kind {
		case 6: // PT_PHDR
			bias = headers - word(p+16)
		case 2: // PT_DYNAMIC
			dynamic = word(p + 16)
		}
	}
	if dynamic == 0 {
		return 0, 0
	}
	return dynamic + bias, dynamic + bias + 16*maxDynamic
}

// pathAt reads a path. It returns "" if the path does not end within PATH_MAX bytes.
func pathAt(mem machine.Memory, at machine.Addr) string {
	const most, piece = 4096, 64
	var all []byte
	for len(all) < most {
		from := at + machine.Addr(len(all))
		b := make([]byte, piece-uint64(from)%piece) // no piece crosses a page boundary
		if mem.ReadMemory(b, from) != nil {
			return ""
		}
		if end := bytes.IndexByte(b, 0); end >= 0 {
			return string(append(all, b[:end]...))
		}
		all = append(all, b...)
	}
	return ""
}
