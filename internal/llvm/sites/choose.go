package sites

import (
	"slices"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
)

// Two modules of one program may define the same function with the same sites: versions that a JIT compiled one after the other, or a dump of an
// earlier run. Their stack maps do not distinguish them, but the names, constants and computations in the object's code do.

// maxHeldFunctions limits how many other functions of an object are compared with those of a module.
const maxHeldFunctions = 64

// notContradicted returns the modules of a map that the code of its object does not contradict. If some are certain, it returns only one of these. If the
// code contradicts all, refused is the reason for the first module that the user named, or else for the first.
func (ms *Modules) notContradicted(c *Compiled, function *stackmap.Function) (left []*ir.Module, refused *Refusal) {
	if ms.TrustIR && len(c.From) == 1 && !c.From[0].Found {
		return c.From, nil
	}
	var certain []*ir.Module
	for _, m := range c.From {
		sure, why := ms.heldAgainst(c, function, m)
		switch {
		case why != nil && (refused == nil || refused.Func.Module.Found && !m.Found):
			refused = why
		case why != nil:
		case sure == Certain:
			certain, left = append(certain, m), append(left, m)
		default:
			left = append(left, m)
		}
	}
	switch {
	case len(certain) > 0:
		return ownFirst(certain)[:1], nil
	case len(left) > 0 || refused == nil:
		return left, nil
	}
	return nil, refused
}

// ownFirst moves the module that the object itself contains to the front, because the names of values may differ in the others.
func ownFirst(certain []*ir.Module) []*ir.Module {
	for n, m := range certain {
		if strings.HasSuffix(m.Name, ", "+TextSection) {
			return certain[n:]
		}
	}
	return certain
}

// heldAgainst compares the functions of a module with those of the map's object. sure is the result for the given function. why is set if a function of the
// object contradicts the module.
func (ms *Modules) heldAgainst(c *Compiled, function *stackmap.Function, m *ir.Module) (sure Sureness, why *Refusal) {
	sure = Open
	hold := func(f *stackmap.Function) {
		for _, name := range c.Names(f) {
			defined := Emitted(m, name)
			if defined == nil {
				continue
			}
			p := ms.ProvenanceOf(c.File(), f.Addr, defined)
			if p.Sure == Contradicted && why == nil {
				why = &Refusal{defined, p.Why}
			}
			if f == function {
				sure = p.Sure
			}
			return
		}
	}
	if hold(function); why != nil {
		return sure, why
	}
	key := origin{c, m}
	rest, known := ms.contradictions[key]
	if !known {
		for n := range c.Functions[:min(len(c.Functions), maxHeldFunctions)] {
			if hold(&c.Functions[n]); why != nil {
				break
			}
		}
		rest = why
		ms.contradictions[key] = rest
	}
	return sure, rest
}

// maxComputing limits how many sites of a record are compared by computation.
const maxComputing = 64

// computing returns the sites whose values the code may have computed. refused is set if there are none.
func (ms *Modules) computing(of Namer, e RecordEntry, c Candidates) (left Candidates, refused *Refusal) {
	if len(c.Sites) == 0 || len(c.Sites) > maxComputing {
		return c, nil
	}
	if (ms.MapsInQuestion || ms.TrustIR) && !several(c.Sites) && !c.Sites[0].Func.Module.Found {
		return c, nil
	}
	var fit []*ir.Site
	for _, s := range c.Sites {
		key := computation{e.Map, e.Record.Pos, s}
		why, known := ms.computations[key]
		if !known {
			why = ms.computedAt(of, e, s)
			ms.computations[key] = why
		}
		switch {
		case why == "":
			fit = append(fit, s)
		case refused == nil:
			refused = &Refusal{s.Func, why}
		}
	}
	if len(fit) == 0 && refused != nil {
		return c, refused
	}
	c.Sites = fit
	return c, nil
}

// computation is the pair of a record and a candidate site.
type computation struct {
	m    *stackmap.Map
	pos  int64
	site *ir.Site
}

// origin is the pair of a map and a module that it may have been compiled from.
type origin struct {
	c *Compiled
	m *ir.Module
}

// several reports whether the sites belong to more than one module.
func several(sites []*ir.Site) bool {
	return slices.ContainsFunc(sites, func(s *ir.Site) bool { return s.Func.Module != sites[0].Func.Module })
}
