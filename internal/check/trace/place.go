package trace

import (
	"cmp"
	"slices"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
)

// place is an address with a breakpoint.
type place struct {
	points   []*Tracepoint
	marks    []mark            // marks of tracepoints at other addresses
	reads    []ptrace.Read     // memory that is read at a hit, for all points
	held     bool              // a hit stops all threads
	names    naming            // decides whether held is set for the names of VM frames
	expects  []ptrace.Expected // if held: the expected contents of memory; a hit stops the threads only if some of it differs
	wide     bool
	patching patching
}

// watch adds an address at which the process stops when the loaded code changes.
func (l *loaded) watch(x *listing, addr machine.Addr, registers bool) {
	x.watches = append(x.watches, addr)
	l.watches[addr], l.changed[addr] = registers, true
}

// add adds the places of a listing.
func (l *loaded) add(x *listing) {
	l.known += x.known
	for _, p := range x.points {
		at := l.place(p.Addr)
		at.points, at.names = append(at.points, p), naming{}
		for addr, m := range p.marks() {
			at := l.place(addr)
			at.marks = append(at.marks, m)
		}
	}
}

// place returns the place at an address, for a change: it adds the address to changed.
func (l *loaded) place(addr machine.Addr) *place {
	at := l.places[addr]
	if at == nil {
		at = &place{}
		l.places[addr] = at
	}
	l.changed[addr] = true
	return at
}

// drop removes the places of a listing.
func (l *loaded) drop(x *listing) {
	l.known -= x.known
	for _, p := range x.points {
		if p.Symbol != "" {
			l.matches[p.by].now--
		}
		if at := l.places[p.Addr]; at != nil {
			at.points, at.names = slices.DeleteFunc(at.points, func(q *Tracepoint) bool { return q == p }), naming{}
			l.changed[p.Addr] = true
		}
		for addr := range p.marks() {
			if at := l.places[addr]; at != nil {
				at.marks = slices.DeleteFunc(at.marks, func(m mark) bool { return m.point == p })
				l.changed[addr] = true
			}
		}
	}
	for _, addr := range x.watches {
		delete(l.watches, addr)
		l.changed[addr] = true
	}
}

// changes returns the breakpoints to set and to remove at addresses whose places have changed.
func (l *loaded) changes() (insert []ptrace.Breakpoint, remove []machine.Addr) {
	for addr := range l.changed {
		at := l.places[addr]
		_, watch := l.watches[addr]
		switch {
		case watch:
			insert = append(insert, ptrace.Breakpoint{Addr: addr, Hold: true, Uncounted: true})
			if at != nil {
				l.warn("%s is not traced: reframe needs a breakpoint of its own there", l.view.Space().NameOf(addr))
			}
		case at == nil || len(at.points) == 0 && len(at.marks) == 0:
			delete(l.places, addr)
			remove = append(remove, addr)
		default:
			at.combine(l.hold && len(at.points) > 0)
			b := ptrace.Breakpoint{Addr: addr, Hold: at.held, Vectors: at.wide, Hardware: at.patching > unlikely}
			if !at.held || len(at.expects) > 0 {
				b.Reads = at.reads
			}
			b.Expects = at.expects
			insert = append(insert, b)
		}
	}
	clear(l.changed)
	// There are few debug registers. Places that the process likely overwrites get them first.
	rank := func(addr machine.Addr) patching {
		if at := l.places[addr]; at != nil {
			return at.patching
		}
		return unlikely
	}
	slices.SortFunc(insert, func(a, b ptrace.Breakpoint) int {
		return cmp.Or(cmp.Compare(rank(b.Addr), rank(a.Addr)), cmp.Compare(a.Addr, b.Addr))
	})
	slices.Sort(remove)
	return insert, remove
}

// combine selects the registers and the memory that must come with a hit, for all tracepoints of the place. With hold it selects all registers: the
// outer frames are also shown, and the places of their values are known only after these frames are found.
func (p *place) combine(hold bool) {
	p.reads, p.expects, p.held, p.wide, p.patching = nil, nil, hold, hold, unlikely
	named := false
	for _, point := range p.points {
		p.reads = append(p.reads, point.reads...)
		p.held = p.held || point.whole
		named = named || point.naming
		p.wide = p.wide || point.wide || point.Symbol != ""
		p.patching = max(p.patching, point.patching)
	}
	p.held = p.held || len(p.reads) > ptrace.MaxReads
	if named && !p.held && p.names.state != fixed {
		p.held, p.expects = true, p.names.expects
	}
}
