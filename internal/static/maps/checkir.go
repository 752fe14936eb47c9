package maps

import (
	"fmt"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// The rules that compare a map with the compiled module.
var (
	siteHasRecord = stackmap.Rule{Name: "every site has a record",
		Fact: "the code generator writes a record for each site that it emits; a site without one was in dead code, or the module is not what was compiled"}
	recordHasSite = stackmap.Rule{Name: "every record has a site",
		Fact: "records are written only for sites, with their ids (LangRef, llvm.experimental.stackmap, gc.statepoint)"}
	operandCounts = stackmap.Rule{Name: "operand counts agree",
		Fact: "a record has one location for each live operand of its site, a statepoint's the number of its deopt operands (\"Stack maps and patch points\")"}
	constantsAgree = stackmap.Rule{Name: "constants agree",
		Fact: "an operand that is a constant of the module is recorded with its value, if it is recorded as a constant"}
	nothingLost = stackmap.Rule{Name: "no location is lost",
		Fact: "LLVM records nothing for a value in an x87 register, such as an x86_fp80, only the first element of an aggregate, and an address for an i128 that was passed in parts (seen: llc 14 to 22)"}
)

// irCheck compares the maps of one image with modules.
type irCheck struct {
	image   *Image
	results map[string]*stackmap.Result
	order   []*stackmap.Result
	held    map[*ir.Instr]bool  // instructions of sites that have a record
	emitted map[*ir.Func]bool   // functions that have a record
	of      map[*ir.Module]bool // modules of the maps; false if another module may be the right one

	missing  []int // indices of maps whose module was not given
	doubtful []int // indices of maps that may come from several modules
}

// checkIR returns the results of the rules that need modules.
func (i *Image) checkIR() ([]stackmap.Result, error) {
	c := &irCheck{image: i, results: map[string]*stackmap.Result{}, held: map[*ir.Instr]bool{},
		emitted: map[*ir.Func]bool{}, of: map[*ir.Module]bool{}}
	for _, r := range []stackmap.Rule{siteHasRecord, recordHasSite, operandCounts, constantsAgree, nothingLost, allocasAreAddresses, shadowsAreApart, shadowsEnd} {
		result := &stackmap.Result{Rule: r}
		c.results[r.Name] = result
		c.order = append(c.order, result)
		if !i.HasModules() {
			result.Skip("no module was given; give it with --ir")
		}
	}
	if i.HasModules() {
		if err := c.maps(); err != nil {
			return nil, err
		}
		if err := c.sites(); err != nil {
			return nil, err
		}
		c.skipped()
	}
	out := make([]stackmap.Result, len(c.order))
	for n, r := range c.order {
		out[n] = *r
	}
	return out, nil
}

// maps compares each map with the modules that it may come from.
func (c *irCheck) maps() error {
	ms := c.image.modules
	origins := make([]*sites.Compiled, len(c.image.Section.Maps))
	for n, m := range c.image.Section.Maps {
		origin, err := ms.MapOf(c.image, m)
		if err != nil {
			return err
		}
		switch {
		case len(origin.From) > 0:
		case origin.Why == sites.ErrNotGiven:
			c.missing = append(c.missing, n)
		default:
			c.doubtful = append(c.doubtful, n)
		}
		_, named := origin.Named()
		for _, m := range origin.From {
			c.of[m] = named && len(origin.From) == 1
		}
		origins[n] = origin
	}
	for f := range c.image.Functions() {
		if f.Loose {
			continue
		}
		if err := c.function(f, origins[f.Number]); err != nil {
			return err
		}
	}
	return nil
}

// skipped records the maps that were not checked, with the reasons.
func (c *irCheck) skipped() {
	list := func(r *stackmap.Result, maps []int, one, several string) {
		switch len(maps) {
		case 0:
		case 1:
			r.Skip(fmt.Sprintf("map %d: %s", maps[0], one))
		default:
			r.Skip(fmt.Sprintf("%d maps, the first of them map %d: %s", len(maps), maps[0], several))
		}
	}
	for _, r := range c.order {
		if r.Checked == 0 && !c.image.defined() {
			r.Skip("no given module defines a function with records here")
			continue
		}
		list(r, c.missing, "no given module is what it was compiled from", "no given module is what they were compiled from")
		list(r, c.doubtful, "several functions have the same name, and it is unknown which of them it has", "several functions have the same name, and it is unknown which of them they have")
		if r.Checked == 0 && len(r.Skipped) == 0 && c.results[recordHasSite.Name].Checked == 0 {
			r.Skip("no given module defines, by name, a function that has a record here")
		}
	}
}

// function compares the records of one function with the sites of its definitions.
func (c *irCheck) function(f *Function, origin *sites.Compiled) error {
	ms := c.image.modules.Only(origin.From)
	names := origin.Names(f.Function)
	if len(names) == 0 {
		return nil
	}
	defined := ms.Definitions(names...)
	if len(defined) == 0 {
		return nil // the function belongs to another module
	}
	for _, g := range defined {
		c.emitted[g] = true
	}
	var apart []placedSite
	for rec := range f.Records() {
		e := sites.RecordEntry{Entry: stackmap.Entry{Map: f.Map, Function: f.Function}, Record: rec}
		sites, err := ms.WithIDIn(defined, rec.ID)
		if err != nil {
			return err
		}
		if len(sites) == 0 {
			inlined, err := ms.Inlined(defined, e)
			if err != nil {
				return err
			}
			sites = inlined.Sites
		}
		if placed := c.record(f, e, sites); placed != nil {
			apart = append(apart, *placed)
		}
	}
	c.shadows(f, apart)
	return nil
}

// record compares one record with the sites that have its id. It returns the site of the record, if that is known.
func (c *irCheck) record(f *Function, e sites.RecordEntry, siteList []*ir.Site) *placedSite {
	broken := func(rule stackmap.Rule, why string) {
		c.broken(rule, stackmap.Violation{Map: f.Number, Function: f.Addr, Record: e.Record.ID, Pos: e.Record.Pos,
			What: fmt.Sprintf("record %d of @%s %s", uint64(e.Record.ID), f.Source, why)})
	}
	c.results[recordHasSite.Name].Checked++
	if len(siteList) == 0 {
		broken(recordHasSite, "has an id that no site of the module in this function has")
		return nil
	}
	counted, why := keep(siteList, e, sites.CountMisfit)
	c.results[operandCounts.Name].Checked++
	if len(counted) == 0 {
		c.hold(siteList) // these sites have a record, but a wrong one
		broken(operandCounts, why)
		return nil
	}
	c.hold(counted)
	if counted, why = keep(counted, e, sites.Unalignable); len(counted) == 0 {
		broken(operandCounts, why)
		return nil
	}
	fit, why := keep(counted, e, sites.Misfit)
	c.results[constantsAgree.Name].Checked++
	if len(fit) == 0 {
		broken(constantsAgree, why)
		return nil
	}
	held := c.results[nothingLost.Name]
	if len(fit) > 1 {
		for range fit[0].Live {
			held.Checked++
			held.AddUnknown("for records that several sites match")
		}
		return nil
	}
	held.Checked += len(fit[0].Live)
	a, _ := sites.Align(fit[0], e)
	for k, v := range fit[0].Live {
		l, located := a.Location(k)
		switch {
		case a.Place(k) == sites.Absent:
			broken(nothingLost, fmt.Sprintf("has no location for operand %d, of type %s", k, v.Type()))
			continue
		case !located:
			broken(nothingLost, fmt.Sprintf("has an unknown location for operand %d, of type %s: the location of an operand in an x87 register is missing",
				k, v.Type()))
			continue
		}
		c.alloca(v, k, l, broken)
		if why := sites.Halved(fit[0], v.Type(), l, c.image.Arch); why != "" {
			broken(nothingLost, fmt.Sprintf("does not hold operand %d, of type %s: %s", k, v.Type(), why))
		}
	}
	if a.Moved {
		broken(nothingLost, "has gc pointers and allocas, if any, that LLVM read at shifted positions after a missing operand")
	}
	return &placedSite{e.Record.ID, e.Record.Offset, e.Record.Pos, fit[0].PatchBytes, fit[0].Kind}
}

// keep returns the sites that match a record, and the reason why the last of the other sites does not match.
func keep(sites []*ir.Site, e sites.RecordEntry, misfit func(*ir.Site, sites.RecordEntry) string) (fit []*ir.Site, why string) {
	for _, s := range sites {
		if w := misfit(s, e); w != "" {
			why = w
		} else {
			fit = append(fit, s)
		}
	}
	return fit, why
}

// hold marks sites as having a record.
func (c *irCheck) hold(sites []*ir.Site) {
	for _, s := range sites {
		c.held[s.Instr] = true
	}
}

// sites finds sites without a record, in the functions that the image contains.
func (c *irCheck) sites() error {
	for _, m := range c.image.modules.All {
		for _, f := range m.Funcs {
			if !sites.Emits(f) || !c.emitted[f] && !c.image.defines(f.Name) {
				continue
			}
			all, err := f.Sites()
			if err != nil {
				return err
			}
			unsure := c.unsure(f)
			for _, s := range all {
				r := c.results[siteHasRecord.Name]
				r.Checked++
				switch {
				case c.held[s.Instr]:
				case unsure != "":
					r.AddUnknown(unsure)
				default:
					r.Add(stackmap.Violation{Map: -1, Index: -1, Pos: -1, Record: stackmap.RecordID(s.ID),
						What: fmt.Sprintf("the %s of @%s at line %d, of id %d, has no record", s.Kind, f.Name, s.Instr.Line, s.ID)})
				}
			}
		}
	}
	return nil
}

// unsure returns the reason why a function of a module may belong to another module, although the image has code under its name, or "".
func (c *irCheck) unsure(f *ir.Func) string {
	sure, of := c.of[f.Module]
	switch {
	case of && !sure:
		return "for maps that may be compiled from several modules"
	case c.emitted[f], len(c.image.Section.Maps) == 1 && of:
		return ""
	case !sites.External(f) || !of && len(c.missing)+len(c.doubtful) > 0:
		return "for functions that may belong to another module"
	}
	return ""
}

// defines reports whether the image contains the code of a function.
func (i *Image) defines(name string) bool {
	if i.image == nil {
		return false
	}
	for _, symbol := range []string{name, "_" + name} {
		if i.image.SourceName(symbol) != name {
			continue
		}
		if _, ok := i.image.Lookup(symbol); ok {
			return true
		}
	}
	return false
}

func (c *irCheck) broken(rule stackmap.Rule, v stackmap.Violation) { c.results[rule.Name].Add(v) }
