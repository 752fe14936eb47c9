package ptrace

import (
	"bytes"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/elfcore"
)

// again updates the data about a stopped process. It reuses unchanged data by the same pointers, because reading everything again for each object
// that a JIT registers would take more and more time.
func (t reading) again() error {
	maps, err := readMaps(t.via)
	if err != nil {
		return err
	}
	t.maps = maps
	t.know()
	t.Modules = readModules(t.source, t.via, maps, t.Modules)
	t.debugFiles()
	t.placeModules()
	t.followRegistries(t.Registries)
	t.readAllObjects()
	return nil
}

// followRegistries updates the lists of registered objects. before holds the lists at an earlier stop.
func (t reading) followRegistries(before []*Registry) {
	at := func(addr machine.Addr) *Registry {
		i := slices.IndexFunc(before, func(r *Registry) bool { return r.Descriptor == addr })
		if i < 0 {
			return nil
		}
		return before[i]
	}
	var now []*Registry
	for _, m := range t.Modules {
		if m.Image == nil {
			continue
		}
		sym, ok := m.Image.Lookup(descriptorName)
		if !ok || slices.ContainsFunc(now, func(r *Registry) bool { return r.Descriptor == sym.Addr }) {
			continue
		}
		r := at(sym.Addr)
		if r == nil || !r.follow(t.source) {
			r = readRegistry(t.source, t.arch, m.Path, sym.Addr, maxEntries)
		}
		now = append(now, r)
	}
	t.Registries = now
}

// registered updates only the lists of registered objects, which takes less time than again. It reports whether that succeeded.
func (t reading) registered() bool {
	for _, r := range t.Registries {
		if !r.follow(t.source) {
			return false
		}
		if len(r.Entries) > 0 {
			t.read(r.Entries[0], len(r.Entries)) // the first entry is the new one
		}
	}
	return true
}

// Values of the descriptor's action, which concerns the entry that it points to (the GDB JIT interface, jit_actions_t).
const (
	actionRegister   = 1
	actionUnregister = 2
)

// follow applies the descriptor's last action to the list, and reports whether that was possible. If not, the list must be read again.
func (r *Registry) follow(mem memory) bool {
	head := make([]byte, descriptorSize)
	if r.Broken != "" || mem.ReadMemory(head, r.Descriptor) != nil || r.arch.Order.Uint32(head) != 1 {
		return false
	}
	if bytes.Equal(head, r.head) {
		return true // each change writes its entry into the descriptor, so nothing has changed
	}
	order := r.arch.Order
	action, relevant, first := order.Uint32(head[4:]), machine.Addr(order.Uint64(head[8:])), machine.Addr(order.Uint64(head[16:]))
	known := slices.IndexFunc(r.Entries, func(e *Entry) bool { return e.Addr == relevant })
	switch {
	case action == actionRegister && known < 0 && first == relevant && len(r.Entries) < maxEntries:
		fresh := &Registry{arch: r.arch}
		var b [entrySize]byte
		if mem.ReadMemory(b[:], relevant) != nil || machine.Addr(order.Uint64(b[:])) != r.first() {
			return false
		}
		e := &Entry{Addr: relevant, Start: machine.Addr(order.Uint64(b[16:])), Size: order.Uint64(b[24:])}
		fresh.Entries = []*Entry{e}
		if e.Size < elfcore.HeaderSize || e.Size > maxObjectSize {
			return false
		}
		if fresh.readHeaders(mem); fresh.Broken != "" {
			return false
		}
		r.Entries = slices.Insert(r.Entries, 0, e)
		r.newest--
		for _, c := range e.code {
			c.age = r.newest
			at := sort.Search(len(r.ranges), func(i int) bool { return r.ranges[i].start > c.start })
			r.ranges = slices.Insert(r.ranges, at, c)
		}
	case action == actionUnregister && known >= 0 && (known == 0) == (first != r.first()):
		gone := r.Entries[known]
		r.Entries = slices.Delete(r.Entries, known, known+1)
		r.ranges = slices.DeleteFunc(r.ranges, func(c codeRange) bool { return c.entry == gone })
	default:
		return false
	}
	r.head = head
	return true
}
