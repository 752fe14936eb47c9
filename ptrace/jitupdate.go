package ptrace

import (
	"bytes"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
	"example.com/reframe/ptrace/system"
)

// A JIT that compiles continuously changes its list between any two reads. During a stop only the descriptor is read, which points to the first entry
// of the list at that moment. The list is read before the stop, and again after it while the process runs. LLVM's JITs put each new entry at the head
// (GDBRegistrationListener.cpp, JITLoaderGDB.cpp). So the list at the stop is the part of the later list from that entry on, unless the JIT has
// removed entries. If a stack points into an entry that only one of the two lists contains, the capture starts again.

// maxFresh bounds the number of new entries that one update follows.
const maxFresh = 1 << 14

// update reads the list again while the process runs. For known objects it reads only the entries. gone holds the entries that are no longer in the
// list. ok is false if the list is uncertain, because it changed during the read, or because it changed in other ways than by new entries at the head
// and by removals. In that case update leaves r unchanged.
func (r *Registry) update(mem memory) (gone []*Entry, ok bool) {
	head := make([]byte, descriptorSize)
	if r.Broken != "" || mem.ReadMemory(head, r.Descriptor) != nil || r.arch.Order.Uint32(head) != 1 {
		return nil, false
	}
	if bytes.Equal(head, r.head) {
		return nil, true
	}
	first := machine.Addr(r.arch.Order.Uint64(head[16:]))
	known, raws := newLinks(r.Entries)
	if mem.readMany(raws.wants) != nil {
		return nil, false
	}
	now, fresh, ok := r.rewalk(mem, first, known, raws)
	if !ok {
		return nil, false
	}
	// Check that no link has changed, and that the current head leads to the entry at which the read began. In that case the list that was read
	// existed at some moment between the two reads.
	_, again := newLinks(now)
	if mem.readMany(again.wants) != nil || !again.agree(now) || !r.leads(mem, first) {
		return nil, false
	}
	added := &Registry{arch: r.arch, Entries: now[:fresh:fresh]}
	if added.readHeaders(mem); added.Broken != "" {
		return nil, false
	}
	in := make(map[*Entry]bool, len(now))
	for _, e := range now {
		in[e] = true
	}
	for _, e := range r.Entries {
		if !in[e] {
			gone = append(gone, e)
		}
	}
	r.head, r.Entries, r.ranges, r.newest = head, now, nil, 0
	r.order()
	return gone, true
}

// links holds the entries of a list as they are in memory, read with one call.
type links struct {
	raw   []byte
	wants []system.Want
}

func newLinks(entries []*Entry) (index map[machine.Addr]int, l links) {
	index = make(map[machine.Addr]int, len(entries))
	l = links{make([]byte, entrySize*len(entries)), make([]system.Want, len(entries))}
	for n, e := range entries {
		index[e.Addr] = n
		l.wants[n] = system.Want{Addr: e.Addr, Buf: l.raw[entrySize*n:][:entrySize:entrySize]}
	}
	return index, l
}

// agree reports whether all entries are unchanged, except for links to newer entries.
func (l *links) agree(entries []*Entry) bool {
	for n, e := range entries {
		if !l.wants[n].OK || !sameEntry(l.wants[n].Buf, e.raw[:]) || !bytes.Equal(l.wants[n].Buf[:8], e.raw[:8]) {
			return false
		}
	}
	return true
}

// sameEntry reports whether two entries refer to the same object.
func sameEntry(a, b []byte) bool { return bytes.Equal(a[16:entrySize], b[16:entrySize]) }

// rewalk follows the list from an entry. The known entries, which it reuses, must follow the new ones in their old order.
func (r *Registry) rewalk(mem memory, at machine.Addr, known map[machine.Addr]int, raws links) (now []*Entry, fresh int, ok bool) {
	order, last := r.arch.Order, -1
	seen := map[machine.Addr]bool{}
	for at != 0 {
		if n, isKnown := known[at]; isKnown && n > last && raws.wants[n].OK && sameEntry(raws.wants[n].Buf, r.Entries[n].raw[:]) {
			last = n
			copy(r.Entries[n].raw[:], raws.wants[n].Buf) // the links to the neighbors may have changed
			now = append(now, r.Entries[n])
			at = machine.Addr(order.Uint64(raws.wants[n].Buf))
			continue
		}
		var b [entrySize]byte
		if last >= 0 || seen[at] || fresh == maxFresh || mem.ReadMemory(b[:], at) != nil {
			return nil, 0, false
		}
		seen[at] = true
		e := &Entry{Addr: at, Start: machine.Addr(order.Uint64(b[16:])), Size: order.Uint64(b[24:]), raw: b}
		if e.Size < elfcore.HeaderSize || e.Size > maxObjectSize {
			return nil, 0, false
		}
		now = append(now, e)
		fresh++
		at = machine.Addr(order.Uint64(b[:]))
	}
	return now, fresh, len(now) <= maxEntries
}

// leads reports whether the current list leads to an entry.
func (r *Registry) leads(mem memory, to machine.Addr) bool {
	var head [descriptorSize]byte
	if mem.ReadMemory(head[:], r.Descriptor) != nil {
		return false
	}
	at := machine.Addr(r.arch.Order.Uint64(head[16:]))
	for range maxFresh {
		if at == to {
			return true
		}
		var next [8]byte
		if at == 0 || mem.ReadMemory(next[:], at) != nil {
			return false
		}
		at = machine.Addr(r.arch.Order.Uint64(next[:]))
	}
	return false
}

// stoppedList is a list with its descriptor at the stop.
type stoppedList struct {
	registry *Registry
	head     [descriptorSize]byte
}

// readHeads reads the descriptors of all lists.
func (t reading) readHeads() (lists []stoppedList, ok bool) {
	for _, r := range t.Registries {
		l := stoppedList{registry: r}
		err := t.source.ReadMemory(l.head[:], r.Descriptor)
		switch {
		case r.Broken == "" && err != nil, r.Broken != "" && err == nil && !bytes.Equal(l.head[:], r.head):
			return nil, false // a broken list is not updated, so it must be unchanged
		case r.Broken == "":
			lists = append(lists, l)
		}
	}
	return lists, true
}

// atStop restores a list to its state at the stop, if the list has changed since it was read. It reports whether that succeeded. stands reports
// whether a stack at the stop points to an entry's code.
func (l *stoppedList) atStop(mem memory, stands func(*Entry) bool) bool {
	r := l.registry
	if bytes.Equal(l.head[:], r.head) {
		return true
	}
	gone, ok := r.update(mem)
	if !ok {
		return false
	}
	for _, e := range gone {
		if stands(e) {
			return false
		}
	}
	first := machine.Addr(r.arch.Order.Uint64(l.head[16:]))
	for n, e := range r.Entries {
		if e.Addr == first {
			r.Entries, r.ranges = r.Entries[n:], nil
			r.order()
			return true
		}
	}
	return first == 0 && len(r.Entries) == 0
}

// updated updates all lists of registered objects, and reports whether that succeeded.
func (t reading) updated() bool {
	for _, r := range t.Registries {
		if r.Broken != "" && !r.unchanged(t.source) {
			return false
		}
		if _, ok := r.update(t.source); r.Broken == "" && !ok {
			return false
		}
	}
	return true
}

// stillRegistered reports whether all objects that were read are still in the lists. The memory of an object that was removed may have been reused
// before it was read.
func (t reading) stillRegistered() bool {
	for _, r := range t.Registries {
		if r.Broken != "" {
			continue
		}
		now := *r
		gone, ok := now.update(t.source)
		if !ok {
			return false
		}
		for _, e := range gone {
			if e.image != nil {
				return false
			}
		}
	}
	return true
}

// points returns a function that reports whether a range contains the program counter, or a word of a stack that may be a return address.
func (s *stopped) points() func(start, end machine.Addr) bool {
	var words []machine.Addr
	for _, thread := range s.threads {
		if thread.missing == "" {
			thread.eachCode(func(addr machine.Addr) { words = append(words, addr) })
		}
	}
	slices.Sort(words)
	return func(start, end machine.Addr) bool {
		n, _ := slices.BinarySearch(words, start)
		// A call may be the last instruction of a function; the return address is then the end of the function's code.
		return n < len(words) && words[n] <= end
	}
}

// sameCodeWhere reports whether the executable mappings to which points applies are unchanged. A JIT may create and remove other mappings at any
// time.
func (t reading) sameCodeWhere(points func(start, end machine.Addr) bool) bool {
	all, err := readMaps(t.via)
	if err != nil {
		return false
	}
	known := map[machine.Mapping]int{}
	for _, r := range t.maps {
		if r.Exec {
			known[r]++
		}
	}
	for _, r := range all {
		if !r.Exec {
			continue
		}
		if known[r]--; known[r] < 0 && points(r.Start, r.End) {
			return false
		}
	}
	for r, n := range known {
		if n > 0 && points(r.Start, r.End) {
			return false
		}
	}
	return true
}
