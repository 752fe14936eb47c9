package ptrace

import (
	"bytes"
	"debug/elf"
	"fmt"
	"hash/maphash"
	"sort"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
)

// The GDB JIT interface ("Debugging with GDB", chapter "JIT Compilation
// Interface"): a descriptor under a known name holds the head of a list of
// entries, each of which points to an object in memory.
//
//	descriptor: uint32 version, uint32 action, entry *relevant, entry *first
//	entry:      entry *next, entry *prev, const char *object, uint64 size
const (
	descriptorName = "__jit_debug_descriptor"
	descriptorSize = 24
	entrySize      = 32
)

// Limits on the data of a list. Real JITs register 100,000 objects.
const (
	maxEntries    = 1 << 20
	maxObjectSize = 1 << 30
	maxSections   = 1 << 16
	maxTables     = 256 << 20 // bytes of section headers, for all objects together
)

// Registry is the list of registered objects in one descriptor, at one moment.
type Registry struct {
	Descriptor machine.Addr
	Module     string // the module that contains the descriptor
	Entries    []*Entry
	// Broken is the reason why the list could not be followed to the end, or "".
	Broken string

	arch   *machine.Arch
	head   []byte // the descriptor's bytes
	ranges []codeRange
	newest int // the age of the newest entry
}

// Entry is one registered object.
type Entry struct {
	Addr  machine.Addr // address of the entry
	Start machine.Addr // address of the object in memory
	Size  uint64
	// Bad is the reason why the object cannot be used, or "".
	Bad string

	raw       [entrySize]byte // the bytes of the entry
	extents   []extent        // the parts of the object to read
	content   *content        // the bytes of the object, if they were read
	code      []codeRange
	variables []codeRange // sections to which the object's code may write
	image     *object.Image
	table     uint64 // a hash of the section headers, which hold the load address of each section
}

var tableSeed = maphash.MakeSeed()

type codeRange struct {
	start, end machine.Addr
	entry      *Entry
	age        int // 0 for the newest entry, which a JIT puts at the head of its list
}

// readRegistry follows the list and reads the section headers of each object, which contain the addresses of its code. The objects themselves are
// read when they are needed.
//
// room is the maximum number of entries.
func readRegistry(mem memory, arch *machine.Arch, module string, descriptor machine.Addr, room int) *Registry {
	r := &Registry{Descriptor: descriptor, Module: module, arch: arch, head: make([]byte, descriptorSize)}
	if err := mem.ReadMemory(r.head, descriptor); err != nil {
		r.Broken = "the descriptor cannot be read: " + err.Error()
		return r
	}
	if v := arch.Order.Uint32(r.head); v != 1 {
		// In a statically linked host, the version is 0 until its initializers have run. Before that nothing is registered.
		if v != 0 || r.first() != 0 {
			r.Broken = fmt.Sprintf("the descriptor has version %d; expected 1", v)
		}
		return r
	}
	r.walk(mem, room)
	r.readHeaders(mem)
	r.order()
	return r
}

// order creates the index that maps code addresses to entries.
func (r *Registry) order() {
	for age, e := range r.Entries {
		for _, c := range e.code {
			c.age = age
			r.ranges = append(r.ranges, c)
		}
	}
	sort.SliceStable(r.ranges, func(i, j int) bool { return r.ranges[i].start < r.ranges[j].start })
}

func (r *Registry) first() machine.Addr { return machine.Addr(r.arch.Order.Uint64(r.head[16:])) }

func (r *Registry) walk(mem memory, room int) {
	order := r.arch.Order
	seen := map[machine.Addr]bool{}
	var b [entrySize]byte
	for at := r.first(); at != 0; at = machine.Addr(order.Uint64(b[:])) {
		switch {
		case seen[at]:
			r.Broken = fmt.Sprintf("entry %d is again the entry at %v: the list is a loop", len(r.Entries), at)
			return
		case len(r.Entries) >= room:
			r.Broken = fmt.Sprintf("over %d entries", room)
			return
		}
		if err := mem.ReadMemory(b[:], at); err != nil {
			r.Broken = fmt.Sprintf("entry %d cannot be read: %v", len(r.Entries), err)
			return
		}
		seen[at] = true
		e := &Entry{Addr: at, Start: machine.Addr(order.Uint64(b[16:])), Size: order.Uint64(b[24:]), raw: b}
		if e.Size < elfcore.HeaderSize || e.Size > maxObjectSize {
			e.Bad = fmt.Sprintf("it claims %d bytes", e.Size)
		}
		r.Entries = append(r.Entries, e)
	}
}

// byteOrder returns an architecture's byte order in ELF's encoding.
func byteOrder(arch *machine.Arch) elf.Data {
	if arch.BigEndian() {
		return elf.ELFDATA2MSB
	}
	return elf.ELFDATA2LSB
}

// readHeaders reads the ELF headers of all entries with one call, and their section headers with a second one.
func (r *Registry) readHeaders(mem memory) {
	order := r.arch.Order
	headers := make([]system.Want, 0, len(r.Entries))
	owners := make([]*Entry, 0, len(r.Entries))
	for _, e := range r.Entries {
		if e.Bad == "" {
			headers = append(headers, system.Want{Addr: e.Start, Buf: make([]byte, elfcore.HeaderSize)})
			owners = append(owners, e)
		}
	}
	if err := mem.readMany(headers); err != nil {
		r.Broken = err.Error()
		return
	}
	tables := make([]system.Want, 0, len(headers))
	tableOwners := make([]*Entry, 0, len(headers))
	heads := make([][]byte, 0, len(headers))
	kinds := make([]elf.Type, 0, len(headers))
	room := min(maxTables, mem.size())
	for i, h := range headers {
		e := owners[i]
		if !h.OK {
			e.Bad = "it points outside of memory"
			continue
		}
		if !bytes.HasPrefix(h.Buf, []byte(elf.ELFMAG)) || h.Buf[elf.EI_CLASS] != byte(elf.ELFCLASS64) || h.Buf[elf.EI_DATA] != byte(byteOrder(r.arch)) {
			e.Bad = "it does not point to a 64-bit ELF object"
			continue
		}
		off, size, count := order.Uint64(h.Buf[40:]), order.Uint16(h.Buf[58:]), order.Uint16(h.Buf[60:])
		length := uint64(count) * elfcore.SectionSize
		if count == 0 && off == 0 { // an object without sections
			e.plan(h.Buf, nil, order)
			continue
		}
		if size != elfcore.SectionSize || count == 0 || off > e.Size || length > e.Size-off {
			e.Bad = "its section headers lie outside of it"
			continue
		}
		if length > room {
			r.Broken = fmt.Sprintf("the section headers take over %d bytes", min(maxTables, mem.size()))
			return
		}
		room -= length
		tables = append(tables, system.Want{Addr: e.Start + machine.Addr(off), Buf: make([]byte, length)})
		tableOwners, heads = append(tableOwners, e), append(heads, h.Buf)
		kinds = append(kinds, elf.Type(order.Uint16(h.Buf[16:])))
	}
	if err := mem.readMany(tables); err != nil {
		r.Broken = err.Error()
		return
	}
	for i, t := range tables {
		e := tableOwners[i]
		if !t.OK {
			e.Bad = "its section headers lie outside of memory"
			continue
		}
		e.table = maphash.Bytes(tableSeed, t.Buf)
		e.plan(heads[i], t.Buf, order)
		for at := 0; at < len(t.Buf); at += elfcore.SectionSize {
			flags := elf.SectionFlag(order.Uint64(t.Buf[at+8:]))
			addr, size := machine.Addr(order.Uint64(t.Buf[at+16:])), order.Uint64(t.Buf[at+32:])
			const code, variable = elf.SHF_ALLOC | elf.SHF_EXECINSTR, elf.SHF_ALLOC | elf.SHF_WRITE
			// A section at address 0 belongs to an unlinked object that was not loaded.
			if size == 0 || size > maxObjectSize || addr == 0 && kinds[i] == elf.ET_REL {
				continue
			}
			switch r := (codeRange{addr, addr + machine.Addr(size), e, 0}); {
			case flags&code == code:
				e.code = append(e.code, r)
			case flags&variable == variable:
				e.variables = append(e.variables, r)
			}
		}
	}
}

// unchanged reports whether the descriptor is the same as when the list was read. Each registration changes it, by writing the address of the new
// entry into it.
func (r *Registry) unchanged(mem memory) bool {
	var now [descriptorSize]byte
	return mem.ReadMemory(now[:], r.Descriptor) == nil && bytes.Equal(now[:], r.head)
}

// holds reports whether an entry still refers to the object that was read. A JIT may unregister an object and register another one at the same
// address, which leaves the descriptor unchanged. Therefore holds reads the object again: if the memory was freed and reused during the first read,
// the bytes now differ.
func (r *Registry) holds(e *Entry, mem memory) bool {
	again := &Entry{Addr: e.Addr, Start: e.Start, Size: e.Size}
	if mem.ReadMemory(again.raw[:], e.Addr) != nil || !sameEntry(again.raw[:], e.raw[:]) {
		return false
	}
	if e.content == nil || !e.content.is(mem) { // content is nil if the object could not be read
		return false
	}
	now := &Registry{arch: r.arch, Entries: []*Entry{again}}
	now.readHeaders(piecemeal{e.content, mem})
	return now.Broken == "" && again.Bad == "" && again.table == e.table
}

// at returns the entry whose code contains addr, or nil. If a JIT has reused memory without unregistering objects, several entries match, and at
// returns the newest one.
func (r *Registry) at(addr machine.Addr) *Entry {
	n := sort.Search(len(r.ranges), func(i int) bool { return r.ranges[i].start > addr })
	// Ranges overlap only if memory was reused. The bound limits the cost of a hostile list.
	var newest *codeRange
	for i := n - 1; i >= 0 && i >= n-16; i-- {
		if c := &r.ranges[i]; addr < c.end && (newest == nil || c.age < newest.age) {
			newest = c
		}
	}
	if newest == nil {
		return nil
	}
	return newest.entry
}

// Image returns the object, or nil if it was not read or is bad.
func (e *Entry) Image() *object.Image { return e.image }
