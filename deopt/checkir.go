package deopt

import (
	"fmt"

	"reframe/deopt/ir"
	"reframe/deopt/stackmap"
)

// The rules that tie a map to the module that was compiled.
var (
	siteHasRecord = stackmap.Rule{Name: "every site has a record",
		Fact: "the code generator writes a record for each site that it emits; a site without one was in code that it found dead, or the module is not what was compiled"}
	recordHasSite = stackmap.Rule{Name: "every record has a site",
		Fact: "a record is written for a site alone, and carries its id (LangRef, llvm.experimental.stackmap, gc.statepoint)"}
	operandCounts = stackmap.Rule{Name: "operand counts agree",
		Fact: "a record has one location for each live operand of its site, a statepoint's the number of its deopt operands (\"Stack maps and patch points\")"}
	constantsAgree = stackmap.Rule{Name: "constants agree",
		Fact: "an operand that is a constant of the module is recorded with its value, if it is recorded as a constant"}
	nothingLost = stackmap.Rule{Name: "no location is lost",
		Fact: "of an x86_fp80 of a stackmap LLVM records nothing, of an aggregate the first element alone, of an i128 that came in parts an address (seen: llc 14 to 22)"}
)

// irCheck holds the maps of one image against modules.
type irCheck struct {
	image   *MapImage
	results map[string]*stackmap.Result
	order   []*stackmap.Result
	held    map[*ir.Instr]bool // the instructions of sites that have a record
}

// checkIR returns the results of the rules that need modules.
func (i *MapImage) checkIR() ([]stackmap.Result, error) {
	c := &irCheck{image: i, results: map[string]*stackmap.Result{}, held: map[*ir.Instr]bool{}}
	for _, r := range []stackmap.Rule{siteHasRecord, recordHasSite, operandCounts, constantsAgree, nothingLost} {
		result := &stackmap.Result{Rule: r}
		c.results[r.Name] = result
		c.order = append(c.order, result)
		if len(i.modules.all) == 0 {
			result.Skipped = "no module was given; give it with --ir"
		}
	}
	if len(i.modules.all) > 0 {
		compiled := map[string]bool{}
		for f := range i.Functions() {
			compiled[f.Source] = true
			if err := c.function(f); err != nil {
				return nil, err
			}
		}
		if err := c.sites(compiled); err != nil {
			return nil, err
		}
	}
	out := make([]stackmap.Result, len(c.order))
	for n, r := range c.order {
		if r.Checked == 0 && r.Skipped == "" {
			r.Skipped = "no given module defines a function with records here"
		}
		out[n] = *r
	}
	return out, nil
}

// function holds the records of one function against the sites of its definitions.
func (c *irCheck) function(f *MapFunction) error {
	ms := c.image.modules
	defined := ms.definitions(f.Source)
	if len(defined) == 0 {
		return nil // of another module, or without a symbol
	}
	for rec := range f.Records() {
		e := recordEntry{stackmap.Entry{Map: f.Map, Function: f.Function}, rec}
		var sites []*ir.Site
		for _, g := range defined {
			own, err := ms.withID(g, rec.ID)
			if err != nil {
				return err
			}
			sites = append(sites, own...)
		}
		if len(sites) == 0 {
			inlined, err := ms.inlined(defined, e)
			if err != nil {
				return err
			}
			sites = inlined.sites
		}
		c.record(f, e, sites)
	}
	return nil
}

// record holds one record against the sites that have its id.
func (c *irCheck) record(f *MapFunction, e recordEntry, sites []*ir.Site) {
	broken := func(rule stackmap.Rule, why string) {
		c.broken(rule, stackmap.Violation{Map: f.Number, Function: f.Addr, Record: e.Record.ID, Pos: e.Record.Pos,
			What: fmt.Sprintf("record %d of @%s %s", uint64(e.Record.ID), f.Source, why)})
	}
	c.results[recordHasSite.Name].Checked++
	if len(sites) == 0 {
		broken(recordHasSite, "has an id that no site of the module has that could be in it")
		return
	}
	var counted []*ir.Site
	why := ""
	for _, s := range sites {
		if w := countMisfit(s, e); w != "" {
			why = w
		} else {
			counted = append(counted, s)
		}
	}
	c.results[operandCounts.Name].Checked++
	if len(counted) == 0 {
		broken(operandCounts, why)
		for _, s := range sites {
			c.held[s.Instr] = true // they have a record, if a wrong one
		}
		return
	}
	var fit []*ir.Site
	for _, s := range counted {
		c.held[s.Instr] = true
		if w := misfit(s, e); w != "" {
			why = w
		} else {
			fit = append(fit, s)
		}
	}
	c.results[constantsAgree.Name].Checked++
	if len(fit) == 0 {
		broken(constantsAgree, why)
		return
	}
	c.results[nothingLost.Name].Checked++
	if len(fit) > 1 {
		c.results[nothingLost.Name].Unknown++
		return
	}
	locations, _, _ := live(fit[0], e)
	at := 0
	for k, v := range fit[0].Live {
		if noLocation(fit[0], v) {
			broken(nothingLost, fmt.Sprintf("has no location for operand %d, an %s", k, v.Type()))
			continue
		}
		if why := halved(v.Type(), locations[at], fit[0].Func.Module.Layout); why != "" {
			broken(nothingLost, fmt.Sprintf("does not hold operand %d, of type %s: %s", k, v.Type(), why))
		}
		at++
	}
}

// sites looks for sites without a record, in the functions that the image holds.
func (c *irCheck) sites(compiled map[string]bool) error {
	for _, m := range c.image.modules.all {
		for _, f := range m.Funcs {
			if f.Declared() || !compiled[f.Name] && !c.image.defines(f.Name) {
				continue
			}
			all, err := f.Sites()
			if err != nil {
				return err
			}
			for _, s := range all {
				c.results[siteHasRecord.Name].Checked++
				if !c.held[s.Instr] {
					c.broken(siteHasRecord, stackmap.Violation{Record: stackmap.RecordID(s.ID),
						What: fmt.Sprintf("the %s of @%s at line %d, of id %d, has no record", s.Kind, f.Name, s.Instr.Line, s.ID)})
				}
			}
		}
	}
	return nil
}

// defines says whether the image holds the code of a function.
func (i *MapImage) defines(name string) bool {
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

func (c *irCheck) broken(rule stackmap.Rule, v stackmap.Violation) {
	v.Rule = rule.Name
	c.results[rule.Name].Add(v)
}
