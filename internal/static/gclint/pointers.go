package gclint

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"example.com/reframe/internal/llvm/ir"
)

// Pointers lists the address spaces whose pointers a collector manages.
type Pointers []int

// managed reports whether the collector manages values of a type: pointers, or vectors of pointers. Only these may be in a gc-live bundle.
func (p Pointers) managed(t *ir.Type) bool {
	if t.Kind == ir.VectorKind {
		t = t.Elem
	}
	return t.Kind == ir.PointerKind && slices.Contains(p, t.AddrSpace)
}

// holds reports whether a type is a managed pointer or has managed pointers as elements.
func (p Pointers) holds(t *ir.Type) bool {
	switch t.Kind {
	case ir.ArrayKind:
		return p.holds(t.Elem)
	case ir.StructKind:
		return slices.ContainsFunc(t.Fields, p.holds)
	}
	return p.managed(t)
}

// withoutStatepoints are LLVM's own collectors that find their roots without statepoints (LLVM, "Garbage Collection with LLVM").
var withoutStatepoints = map[string]bool{"shadow-stack": true, "erlang": true, "ocaml": true}

// Collectors holds the address spaces of the managed pointers of each garbage collector. Its zero value holds those of LLVM's own collectors.
type Collectors struct {
	byName map[string]Pointers // "" for each collector that is neither listed nor LLVM's own
}

// Set reads a user's description: addrspace=N, or several numbers joined by commas, for each collector that LLVM does not define; or
// COLLECTOR:addrspace=N for one collector.
func (c *Collectors) Set(description string) error {
	name, numbers, ok := "", "", false
	if colon := strings.LastIndex(description, ":"); colon > 0 {
		name = description[:colon]
		numbers, ok = strings.CutPrefix(description[colon+1:], "addrspace=")
	} else {
		numbers, ok = strings.CutPrefix(description, "addrspace=")
	}
	var p Pointers
	for number := range strings.SplitSeq(numbers, ",") {
		n, err := strconv.ParseUint(number, 10, 24) // LLVM numbers address spaces with 24 bits
		if !ok || err != nil {
			return fmt.Errorf("expected addrspace=N or COLLECTOR:addrspace=N, got %q", description)
		}
		p = append(p, int(n))
	}
	if c.byName == nil {
		c.byName = map[string]Pointers{}
	}
	c.byName[name] = p
	return nil
}

// Unused returns the described collectors that no function of modules has. It returns none if no function has any collector, because a build may
// describe its collector for each module.
func (c *Collectors) Unused(modules []*ir.Module) (names []string) {
	has := map[string]bool{}
	for _, m := range modules {
		for _, f := range m.Funcs {
			if f.GC != "" {
				has[f.GC] = true
			}
		}
	}
	for name := range c.byName {
		if name != "" && len(has) > 0 && !has[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// of returns the managed pointers of a function's collector. known is false if the collector may use statepoints and the user has not described its
// pointers.
func (c *Collectors) of(f *ir.Func) (p Pointers, known bool) {
	if f.GC == "" {
		return nil, true
	}
	if p, ok := c.byName[f.GC]; ok {
		return p, true
	}
	switch {
	case f.GC == "statepoint-example", f.GC == "coreclr": // LLVM, "Garbage Collection with LLVM", "The Statepoint Example GC", "The CoreCLR GC"
		return Pointers{1}, true
	case withoutStatepoints[f.GC]:
		return nil, true
	}
	p, known = c.byName[""]
	return p, known
}
