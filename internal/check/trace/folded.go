package trace

import (
	"slices"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/deopt/unwind"
	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/progspace"
)

// ownersOf returns the names of the functions that start at an address. There are several if the linker folded them into the same code.
func ownersOf(c *progspace.Objfile, at machine.Addr) []string {
	if list, folded := c.Folded(at); folded && len(list) > 0 {
		return list
	}
	return []string{c.Starting(at).Name}
}

// join adds p to the tracepoint of another function that the linker folded into the same code, and reports whether there is one at the same address.
// The code of folded functions does not show which of them runs. A hit is then one exit, whose record may be that of any of these functions.
func (s *survey) join(p *Tracepoint) bool {
	at := p.match.Entry.Function.Addr
	if _, folded := p.code.Folded(at); !folded {
		return false
	}
	k := slices.IndexFunc(s.points, func(q *Tracepoint) bool {
		return q.match != nil && q.Addr == p.Addr && q.match.Entry.Function.Addr == at
	})
	if k < 0 {
		return false
	}
	q := s.points[k]
	q.folded = append(q.folded, p)
	q.reads = append(q.reads, p.reads...)
	q.whole, q.wide, q.patching = q.whole || p.whole, q.wide || p.wide, max(q.patching, p.patching)
	return true
}

// readFolded builds a frame with the record of each other function that the linker folded into the same code, and adds its values to the exit's
// frame.
func (x *Exited) readFolded(v *deopt.View, physical unwind.Frame) error {
	for _, p := range x.Point.folded {
		f, err := p.frame(v, physical, x.came)
		if err != nil {
			return err
		}
		x.others = append(x.others, f)
		x.Frame.Also = append(x.Frame.Also, frame.Also{Record: *f.Record, Slots: f.Slots, Notes: p.match.Uncertain()})
	}
	return nil
}
