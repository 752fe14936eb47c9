package stackmap

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"sort"

	"example.com/reframe/internal/machine"
)

// site is a record and its offset in its function.
type site struct {
	spot
	id     RecordID
	offset uint32
}

// functions checks the rules about code, one function after another in the order of addresses. Functions with the same address, which a linker has
// folded into one, are checked together.
func (c *checker) functions() {
	slices.SortStableFunc(c.starts, func(a, b start) int { return cmp.Compare(a.addr, b.addr) })
	w := newWalk(c.arch, c.code)
	for i := 0; i < len(c.starts); {
		n := i + sort.Search(len(c.starts)-i, func(k int) bool { return c.starts[i+k].addr > c.starts[i].addr })
		next := machine.Addr(math.MaxUint64)
		if n < len(c.starts) {
			next = c.starts[n].addr
		}
		c.function(c.starts[i:n], next, w)
		i = n
	}
}

// function checks the records of the functions that start at one address. No other function of the maps starts before next.
func (c *checker) function(same []start, next machine.Addr, w *walk) {
	addr := same[0].addr
	end, known, in := next, false, true
	if c.code != nil {
		end, known, in = c.extent(same, next)
	}
	var sites []site
	for _, s := range same {
		n := 0
		for r := range s.m.Records(s.f) {
			at := site{spot{s.mapN, s.m, s.f, nil, n, r.Pos}, r.ID, r.Offset}
			n++
			if c.code != nil {
				switch {
				case !in:
					c.unplaced("for functions outside of executable memory", ruleInside, ruleBoundary)
					continue
				case !c.inside(at, end, known):
					c.unplaced("for offsets outside of their function", ruleBoundary)
					continue
				}
			}
			sites = append(sites, at)
		}
	}
	if c.arch == nil {
		return
	}
	slices.SortStableFunc(sites, func(a, b site) int { return cmp.Compare(a.offset, b.offset) })
	w.begin(addr, end)
	for i := range sites {
		c.boundary(&sites[i], w)
	}
}

// extent checks that the functions that start at one address are in executable memory. It returns an upper bound of their end, and whether it is
// exact.
func (c *checker) extent(same []start, next machine.Addr) (end machine.Addr, known, executable bool) {
	addr := same[0].addr
	end, executable, known = c.code.Function(addr)
	for _, s := range same {
		c.results[ruleAddress].Checked++
		if !executable {
			c.broken(ruleAddress, spot{mapN: s.mapN, m: s.m, f: s.f, pos: s.m.FunctionPos(s.f)}, "the function at %v is not in executable memory", addr)
		}
	}
	if end <= addr {
		end, known = math.MaxUint64, false
	}
	if !known {
		end = min(end, next) // functions do not overlap
	}
	return end, known, executable
}

// inside checks that a site is in its function, and returns false if it is not. end is the function's end if known is true, and an upper bound
// otherwise.
func (c *checker) inside(at site, end machine.Addr, known bool) bool {
	r := c.results[ruleInside]
	r.Checked++
	addr := at.f.Addr
	size := uint64(end - addr)
	switch {
	case uint64(at.offset) > size && known:
		c.brokenAt(ruleInside, at, "offset %#x of record %d: the function has %#x bytes", at.offset, at.id, size)
		return false
	case uint64(at.offset) > size:
		c.brokenAt(ruleInside, at, "offset %#x of record %d: %#x bytes after the function's start its code ends or another function starts", at.offset, at.id, size)
		return false
	case !known:
		r.AddUnknown("the end of a function is unknown")
	}
	return true
}

// brokenAt counts a violation of a rule at a site.
func (c *checker) brokenAt(rule int, at site, format string, args ...any) {
	c.results[rule].Add(Violation{Map: at.mapN, Function: at.f.Addr, Record: at.id, Index: at.index, Pos: at.pos, What: fmt.Sprintf(format, args...)})
}

// boundary checks that a site is at an instruction boundary. w must have begun at the start of the site's function.
func (c *checker) boundary(at *site, w *walk) {
	r := c.results[ruleBoundary]
	r.Checked++
	if w.kind == nil {
		r.AddUnknown("the instructions of " + c.arch.Title + " are not known")
		return
	}
	to := at.f.Addr + machine.Addr(at.offset)
	if rest := uint64(to) % uint64(w.kind.align); rest != 0 {
		c.brokenAt(ruleBoundary, *at, "offset %#x of record %d: %v is not a multiple of %d, as instructions are", at.offset, at.id, to, w.kind.align)
		return
	}
	switch {
	case w.kind.fixed:
	case c.code == nil:
		r.AddUnknown("no code is available")
	default:
		switch why := w.to(to); {
		case why != nil:
			r.AddUnknown(why.Error())
		case w.at != to:
			c.brokenAt(ruleBoundary, *at, "offset %#x of record %d is inside the instruction of %d bytes at offset %#x",
				at.offset, at.id, uint64(w.at-w.last), uint64(w.last-at.f.Addr))
		}
	}
}
