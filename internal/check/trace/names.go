package trace

import (
	"fmt"
	"strings"

	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/internal/progspace"
)

// maxNamed bounds the functions that one pattern may select: each gets a breakpoint, and a regular expression may match a whole library.
const maxNamed = 1000

// patternMatches counts the functions that a pattern matches.
type patternMatches struct {
	now  int  // number of matching functions that have a breakpoint now
	ever bool // a function that the pattern matches has had a breakpoint
	over int  // number of matching functions that got no breakpoint because of the limit
	near *names.Nearest
}

// symbols adds breakpoints at the functions of an object file that the patterns in at select.
func (l *loaded) symbols(x *listing, c *progspace.Objfile) {
	if c.Image != nil {
		for n, p := range l.at {
			l.symbolsOf(x, c, n, p)
		}
	}
}

// symbolsOf adds breakpoints at the functions that one pattern selects. It looks up an exact symbol name in the symbol table. Otherwise it compares
// all symbols, because several functions may have the same name in the source.
func (l *loaded) symbolsOf(x *listing, c *progspace.Objfile, n int, p *names.Pattern) {
	here := func(sym object.Symbol) bool { // a symbol of this code
		return l.view.Space().At(sym.Addr) == c && c.Image.CodeAt(sym.Addr) != nil
	}
	if name := p.Name(); name != "" {
		if sym, ok := c.Image.Lookup(name); ok && here(sym) {
			if _, alone := c.Image.Only(name); !alone {
				x.refused = append(x.refused, fmt.Sprintf("%s has several functions called %s; only the one at %v has a breakpoint", c.Name, name, sym.Addr))
			}
			l.watchCalls(x, c, n, sym)
			return
		}
	}
	var found []object.Symbol
	for sym := range c.Image.Functions() {
		if p.Match(sym.Name) && here(sym) {
			found = append(found, sym)
		} else if c.JIT { // keep the names now, because a JIT may unregister the object before they are needed
			l.nearest(n).Add(sym.Name)
		}
	}
	if l.matches[n].now+len(found) > maxNamed {
		l.matches[n].over += len(found)
		x.refused = append(x.refused, fmt.Sprintf("%s has %d functions that match %s, and none of them has a breakpoint: the limit is %d, and %d have one already", c.Name, len(found), p.Text, maxNamed, l.matches[n].now))
		return
	}
	for _, sym := range found {
		l.watchCalls(x, c, n, sym)
	}
}

// nearest returns the names nearest to a pattern that has matched nothing so far.
func (l *loaded) nearest(n int) *names.Nearest {
	if l.matches[n].near == nil {
		l.matches[n].near = names.NewNearest(l.at[n].Text)
	}
	return l.matches[n].near
}

func (l *loaded) watchCalls(x *listing, c *progspace.Objfile, n int, sym object.Symbol) {
	l.matches[n].now++
	l.matches[n].ever = true
	x.points = append(x.points, &Tracepoint{Addr: sym.Addr, Symbol: sym.Name, Function: sym.Name, Module: c.Name, code: c, whole: true, by: n})
}

// unnamed returns a line for each pattern that has matched nothing so far, with the nearest names.
func (l *loaded) unnamed() (lines []string) {
	for n, p := range l.at {
		switch m := l.matches[n]; {
		case m.ever:
			continue
		case m.over > 0:
			lines = append(lines, fmt.Sprintf("%v: %d functions match %s; the limit is %d", l.view.Target(), m.over, p.Text, maxNamed))
			continue
		}
		nearest := l.nearest(n)
		for _, c := range l.images() {
			for sym := range c.Functions() {
				nearest.Add(sym.Name)
			}
		}
		lines = append(lines, fmt.Sprintf("%v has no function %s%s", l.view.Target(), p.Text, nearest))
	}
	return lines
}

// images returns the images of all loaded code, JIT objects first.
func (l *loaded) images() (all []*object.Image) {
	for _, x := range l.objects {
		if x.image != nil {
			all = append(all, x.image)
		}
	}
	for _, m := range l.view.Target().Modules {
		if m.Image != nil {
			all = append(all, m.Image)
		}
	}
	return all
}

// warnUnnamed warns, at the end, about functions and records that stayed pending.
func (t *tracer) warnUnnamed() {
	if t.view == nil || !t.options.Wait {
		return
	}
	if line := t.excluded.reason(&t.filters[0]); line != "" {
		t.warn("%s", line)
	}
	for _, line := range t.unnamed() {
		t.warn("%s", strings.Replace(line, " has no ", " had no ", 1))
	}
}
