package progspace

import (
	"slices"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/machine"
)

// Folded reports whether several functions with records share the code at an address, and returns their names. Linkers fold functions with identical
// code (lld --icf=all, gold --icf). Each function keeps its records, and the code does not show which function runs. A COMDAT function of several
// objects is not folded: its records are in several maps, but it has one name.
func (c *Objfile) Folded(addr machine.Addr) (names []string, folded bool) {
	if c.rows == nil {
		c.rows = map[machine.Addr]rows{}
		for _, m := range c.Maps {
			for i := range m.Functions {
				at := m.Functions[i].Addr
				r := c.rows[at]
				r.inOneMap = r.inOneMap || r.last == m
				r.count, r.last = r.count+1, m
				c.rows[at] = r
			}
		}
	}
	r := c.rows[addr]
	if r.count < 2 {
		return nil, false
	}
	if c.Image != nil {
		for _, name := range SymbolsAt(c.Image, addr) {
			if !slices.Contains(names, name) {
				names = append(names, name)
			}
		}
	}
	return names, r.inOneMap || len(names) != 1
}

// rows describes the functions of maps that start at one address.
type rows struct {
	count    int
	last     *stackmap.Map
	inOneMap bool // two of the functions are in one map
}
