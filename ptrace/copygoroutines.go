package ptrace

import (
	"cmp"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// GoLayout contains the address of the list of goroutines in a Go program, and offsets in the structures g and m that differ between releases of Go.
type GoLayout struct {
	All    machine.Addr // the variable runtime.allgs, a slice of pointers; 0 to copy only the goroutines that threads run
	Size   int          // of a g
	Labels int          // the offset of the field labels, which points to a slice of pairs of strings; 0 if it is unknown
	// Locked is the offset of the field lockedm in a g, which points to the m to whose thread the goroutine is locked. ThreadID is the offset of the
	// field procid in an m. Both are 0 if they are unknown.
	Locked, ThreadID int
}

// Bounds of the copies of goroutines.
const (
	// MaxGoroutines is the number of goroutines that are copied.
	MaxGoroutines = 1 << 16
	// maxLabels is the number of labels of one goroutine, and maxLabel the length of one string, as Delve reads them.
	maxLabels, maxLabel = 64, 64
	maxGoroutineSize    = 4096
	// usualParked is the usual size of the used part of a parked goroutine's stack.
	usualParked = 1024
	maxParked   = 128 << 10 // for one stack
)

// goCopy copies goroutines and the stacks of those that no thread runs.
type goCopy struct {
	layout  GoLayout
	room    []byte // memory that was allocated before the stop, like scratch
	scratch []byte
	stacks  int // number of bytes that remain for stacks
	spans   []span
}

// prepareGoroutines allocates the memory for copies of goroutines, whose number it reads while the process runs.
func (t reading) prepareGoroutines(s *stopped, o Options) {
	if s.goroutines = nil; o.Goroutines == nil || !t.goProgram {
		return
	}
	t.memory = t.source
	layout := o.Goroutines(t.Target)
	if layout == nil || layout.Size < goFields || layout.Size > maxGoroutineSize {
		return
	}
	c := &goCopy{layout: *layout, stacks: deepStacks, scratch: make([]byte, nearBytes)}
	_, n := c.list(t.Target)
	c.room = make([]byte, min(n+n/8, MaxGoroutines)*(layout.Size+usualParked))
	touch(c.room)
	touch(c.scratch)
	s.goroutines = c
}

// list copies the slice of all goroutines. It returns the address of its first element, and the number of elements.
func (c *goCopy) list(t *Target) (first machine.Addr, n int) {
	if c.layout.All == 0 {
		return 0, 0
	}
	b := make([]byte, 24)
	if t.process.ReadMemory(b, c.layout.All) != nil {
		return 0, 0
	}
	c.spans = []span{{c.layout.All, b}}
	word := func(at int) uint64 { return t.arch.Order.Uint64(b[at:]) }
	return machine.Addr(word(0)), int(min(word(8), MaxGoroutines))
}

// bytes returns n bytes of room for a copy.
func (c *goCopy) bytes(n int) []byte {
	if n > len(c.room) {
		return make([]byte, n)
	}
	b := c.room[:n:n]
	c.room = c.room[n:]
	return b
}

// read reads ranges of memory, and stores those that could be read.
func (c *goCopy) read(mem *liveMemory, wants []system.Want) []system.Want {
	mem.readNear(wants, c.scratch)
	c.spans = append(c.spans, spansOf(wants)...)
	return wants
}

// copy copies the goroutines, their labels, and the stacks of those that no thread runs.
func (c *goCopy) copy(t *Target, threads []*stoppedThread) {
	order, mem := t.arch.Order, t.process
	word := func(b []byte, at int) machine.Addr { return machine.Addr(order.Uint64(b[at:])) }
	running := map[machine.Addr]bool{}
	var gs []system.Want
	for _, th := range threads {
		for _, g := range th.running {
			if !running[g] {
				running[g] = true
				gs = append(gs, system.Want{Addr: g, Buf: c.bytes(c.layout.Size)})
			}
		}
	}
	if first, n := c.list(t); n > 0 {
		list := []system.Want{{Addr: first, Buf: c.bytes(8 * n)}}
		c.read(mem, list)
		for i := 0; list[0].OK && i < n; i++ {
			if g := word(list[0].Buf, 8*i); g != 0 && g%8 == 0 && !running[g] {
				gs = append(gs, system.Want{Addr: g, Buf: c.bytes(c.layout.Size)})
			}
		}
	}
	c.read(mem, gs)
	var stacks, labels, ids []system.Want
	for _, g := range gs {
		if !g.OK {
			continue
		}
		if c.layout.Labels > 0 && c.layout.Labels+8 <= len(g.Buf) {
			if at := word(g.Buf, c.layout.Labels); at != 0 && at%8 == 0 {
				labels = append(labels, system.Want{Addr: at, Buf: c.bytes(24)})
			}
		}
		if l := c.layout; l.Locked > 0 && l.Locked+8 <= len(g.Buf) && l.ThreadID > 0 && !running[g.Addr] {
			if m := word(g.Buf, l.Locked); m != 0 && m%8 == 0 {
				ids = append(ids, system.Want{Addr: m + machine.Addr(l.ThreadID), Buf: c.bytes(8)})
			}
		}
		sp, stack := word(g.Buf, goSP), machine.Range{Start: word(g.Buf, goStackLow), End: word(g.Buf, goStackHigh)}
		if !running[g.Addr] && stack.Contains(sp) {
			size := int(min(uint64(stack.End-sp), maxParked, uint64(c.stacks)))
			c.stacks -= size
			stacks = append(stacks, system.Want{Addr: sp, Buf: c.bytes(size)})
		}
	}
	c.read(mem, stacks)
	c.read(mem, ids)
	c.copyLabels(mem, c.read(mem, labels), word)
}

// copyLabels copies the labels of goroutines, given the headers of their slices.
func (c *goCopy) copyLabels(mem *liveMemory, slices []system.Want, word func([]byte, int) machine.Addr) {
	var pairs, strings []system.Want
	for _, s := range slices {
		if n := word(s.Buf, 8); s.OK && n > 0 && n <= maxLabels {
			pairs = append(pairs, system.Want{Addr: word(s.Buf, 0), Buf: c.bytes(32 * int(n))})
		}
	}
	c.read(mem, pairs)
	for _, p := range pairs {
		for at := 0; p.OK && at < len(p.Buf); at += 16 {
			if n := word(p.Buf, at+8); n > 0 && n <= maxLabel {
				strings = append(strings, system.Want{Addr: word(p.Buf, at), Buf: c.bytes(int(n))})
			}
		}
	}
	c.read(mem, strings)
}

// Ranges that are at most nearGap bytes apart are read together, at most nearBytes at once, because the structures of goroutines are adjacent, and so
// are their stacks of 2 KiB.
const (
	nearGap   = 4096
	nearBytes = 256 << 10
)

// readNear reads ranges of known mappings, which it sorts by address. It sets OK in those that it could read. scratch must have nearBytes bytes.
func (l *liveMemory) readNear(wants []system.Want, scratch []byte) {
	end := func(w *system.Want) machine.Addr { return w.Addr + machine.Addr(len(w.Buf)) }
	slices.SortFunc(wants, func(a, b system.Want) int { return cmp.Compare(a.Addr, b.Addr) })
	for len(wants) > 0 {
		first := wants[0].Addr
		m, ok := findMapping(l.maps, first)
		n, until := 1, end(&wants[0])
		for n < len(wants) && wants[n].Addr <= until+nearGap && end(&wants[n]) <= m.End && end(&wants[n]) <= first+nearBytes {
			until = max(until, end(&wants[n]))
			n++
		}
		group := wants[:n]
		wants = wants[n:]
		switch {
		case !ok || until > m.End:
			continue
		case n == 1:
			got, err := l.readUpTo(group[0].Buf, first)
			group[0].OK = err == nil && got == len(group[0].Buf)
			continue
		}
		got, _ := l.readUpTo(scratch[:until-first], first) // got is 0 after an error
		for i := range group {
			w := &group[i]
			if from := int(w.Addr - first); from+len(w.Buf) <= got {
				copy(w.Buf, scratch[from:])
				w.OK = true
			} else if again, err := l.readUpTo(w.Buf, w.Addr); err == nil {
				w.OK = again == len(w.Buf)
			}
		}
	}
}
