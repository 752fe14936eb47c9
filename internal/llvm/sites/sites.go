// This file finds the candidate sites of a record. Package ir lists the sites of a module.

package sites

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
)

// MismatchError reports that the target was not compiled from an IR module.
type MismatchError struct {
	Module   string // file of the module
	Function string
	Record   uint64
	Why      string
	defined  *ir.Func // the function of the module that was compared with the record
}

// Error implements error.
func (e *MismatchError) Error() string {
	where := ""
	if e.Function != "" {
		where = " of @" + e.Function
	}
	return fmt.Sprintf("%s is not what was compiled: record %d%s %s", e.Module, e.Record, where, e.Why)
}

// Candidates holds the possible sites of a record.
type Candidates struct {
	Sites []*ir.Site
	Why   string // the reason if modules were given but there are no sites, or if the sites are uncertain
	order string // the reason why the order of the records does not determine the site

	// Refused is set if no module names the record because the code contradicts the module that defines its function.
	Refused *Refusal
}

// Refusal is the reason why a module must not name the values of an object's code.
type Refusal struct {
	Func *ir.Func // the function of the module
	Why  string
}

// Uncertain returns the reasons why a record has no names, or why they are uncertain.
func (c *Candidates) Uncertain() (notes []string) {
	if c.Why != "" {
		notes = append(notes, c.Why)
	}
	if len(c.Sites) > 1 {
		notes = append(notes, disagreement(c.Sites))
		if c.order != "" {
			notes = append(notes, c.order)
		}
	}
	return notes
}

// Sites finds the candidate sites of a record. names are the names of its function, empty if it has no symbol. Ids need not be unique, so the number of live
// values and the constants must agree too.
//
// The error is a [*MismatchError] if sites of the function have the record's id but none fits, or if another record of the function has no fitting site.
func (ms *Modules) Sites(e RecordEntry, names ...string) (Candidates, error) {
	if len(ms.All) == 0 {
		return Candidates{}, nil
	}
	if len(names) == 0 {
		return ms.nameless(e)
	}
	defined := ms.Definitions(names...)
	if len(defined) == 0 {
		return Candidates{Why: fmt.Sprintf("no names: no given module defines @%s", names[0])}, nil
	}
	var fitting []*ir.Site
	var mismatch, stale *MismatchError
	known := false
	for _, f := range defined {
		sites, err := ms.withID(f, e.Record.ID)
		if err != nil {
			return Candidates{}, err
		}
		known = known || len(sites) > 0
		fit, wrong := fits(sites, e)
		if why := ms.otherPointers(f.Module); why != "" {
			fit, wrong = nil, &MismatchError{f.Module.Name, f.Name, uint64(e.Record.ID), why, f}
		}
		if len(fit) > 0 {
			if w, err := ms.other(f, e); w != nil || err != nil {
				fit, wrong = nil, w
				if err != nil {
					return Candidates{}, err
				}
			}
		}
		fitting = append(fitting, fit...)
		switch {
		case wrong != nil && f.Module.Found:
			stale = wrong
		case wrong != nil:
			mismatch = wrong
		}
	}
	switch {
	case len(fitting) > 0:
		return Candidates{Sites: fitting}, nil
	case mismatch != nil:
		return Candidates{}, mismatch
	case stale != nil: // the user did not name this module, so it is not an error
		return Candidates{Why: "no names: " + stale.Error()}, nil
	case known:
		return Candidates{}, nil
	}
	return ms.Inlined(defined, e)
}

// otherPointers returns the reason if a module has another pointer size than the code, or "".
func (ms *Modules) otherPointers(m *ir.Module) string {
	if n := m.Layout.PointerBytes(0); ms.Pointer != 0 && n != ms.Pointer {
		return fmt.Sprintf("belongs to code with pointers of %d bytes, but the module has pointers of %d", ms.Pointer, n)
	}
	return ""
}

// fits returns the sites that fit the record. If there are none, wrong holds the reason.
func fits(sites []*ir.Site, e RecordEntry) (fit []*ir.Site, wrong *MismatchError) {
	for _, s := range sites {
		why := Misfit(s, e)
		if why == "" {
			fit = append(fit, s)
			continue
		}
		wrong = &MismatchError{s.Func.Module.Name, s.Func.Name, uint64(e.Record.ID), why, s.Func}
	}
	if len(fit) > 0 {
		return fit, nil
	}
	return nil, wrong
}

// other compares the other records of e's function with the sites of f. A module may fit one record by chance, but it is wrong if another record has no
// fitting site. For a function with many records and sites it compares only the numbers of values.
func (ms *Modules) other(f *ir.Func, e RecordEntry) (*MismatchError, error) {
	key := comparison{f, e.Function}
	if wrong, done := ms.compared[key]; done {
		return wrong, nil
	}
	all, err := ms.of(f)
	if err != nil {
		return nil, err
	}
	var wrong *MismatchError
	pairs := 0
	for rec := range e.Map.Records(e.Function) {
		other := RecordEntry{e.Entry, rec}
		sites := all[uint64(other.Record.ID)]
		why := miscounted(sites, other)
		if pairs += len(sites); why == "" && len(sites) > 0 && pairs <= maxWholePairs {
			if fit, mismatch := fits(sites, other); len(fit) == 0 {
				why = mismatch.Why
			}
		}
		if why != "" {
			wrong = &MismatchError{f.Module.Name, f.Name, uint64(other.Record.ID), why, f}
			break
		}
	}
	ms.compared[key] = wrong
	return wrong, nil
}

// maxWholePairs limits the pairs of records and sites of a function that are compared in full.
const maxWholePairs = 1 << 12

// miscounted returns the reason why no site has as many values as the record, or "".
func miscounted(sites []*ir.Site, e RecordEntry) (why string) {
	tried := map[Shape]bool{}
	for _, s := range sites {
		if k := ShapeOf(s); !tried[k] {
			tried[k] = true
			if why = CountMisfit(s, e); why == "" {
				return ""
			}
		}
	}
	return why
}

// Shape holds the properties of a site that determine how many locations its record has.
type Shape struct {
	statepoint           bool
	head, live, vanished int
}

// ShapeOf returns the shape of a site.
func ShapeOf(s *ir.Site) Shape {
	shape, _ := counted(s)
	return shape
}

// counted counts the operands of a site. extended reports whether an x86_fp80 may lack a location.
func counted(s *ir.Site) (out Shape, extended bool) {
	out = Shape{RecordsStatepoint(s), head(s), len(s.Live), 0}
	for k := range out.head + out.live {
		if v := operand(s, out.head, k); MayVanish(s, v) {
			out.vanished++
			extended = extended || FirstLeaf(v.Type()).Kind == ir.X86FP80Kind
		}
	}
	return out, extended
}

// Inlined finds the candidate sites of a record if its function has no site with its id. The site may come from an inlined function, if only one function
// has the id. Default ids of LLVM are ignored.
func (ms *Modules) Inlined(into []*ir.Func, e RecordEntry) (Candidates, error) {
	none := Candidates{Why: fmt.Sprintf("no names: @%s of the module has no site with the id of record %d", into[0].Name, uint64(e.Record.ID))}
	if ByDefault(e.Record.ID) {
		return none, nil
	}
	having, err := ms.with(e.Record.ID)
	if err != nil {
		return Candidates{}, err
	}
	var from []*ir.Site
	for _, g := range having {
		if slices.ContainsFunc(into, func(f *ir.Func) bool { return f.Module == g.Module }) {
			from = append(from, ms.sitesOf[g][uint64(e.Record.ID)]...)
		}
	}
	fit, _ := fits(from, e)
	if len(fit) == 0 || len(from) != len(fit) {
		return none, nil
	}
	for _, s := range fit {
		if s.Func != fit[0].Func {
			return none, nil
		}
	}
	return Candidates{Sites: fit, Why: fmt.Sprintf("the site is that of @%s: it was inlined here, if the module is what was compiled", fit[0].Func.Name)}, nil
}

// nameless finds the candidate sites of a record whose function has no symbol. There must be exactly one function in the modules with sites for all of its
// records.
func (ms *Modules) nameless(e RecordEntry) (Candidates, error) {
	const noSymbol = "its function has no symbol"
	if ByDefault(e.Record.ID) {
		return Candidates{Why: fmt.Sprintf("no names: %s, and record %d has the id that LLVM gives to every statepoint", noSymbol, uint64(e.Record.ID))}, nil
	}
	having, err := ms.with(e.Record.ID)
	if err != nil {
		return Candidates{}, err
	}
	var found []*ir.Site
	owners := 0
	for _, f := range having {
		if !Emits(f) {
			continue
		}
		if fit, _ := fits(ms.sitesOf[f][uint64(e.Record.ID)], e); len(fit) > 0 && ms.holdsAll(f, e) {
			found = append(found, fit...)
			owners++
		}
	}
	switch owners {
	case 0:
		return Candidates{Why: fmt.Sprintf("no names: %s, and no function of the given modules has its records", noSymbol)}, nil
	case 1:
		return Candidates{Sites: found, Why: fmt.Sprintf("%s; its records are those of @%s", noSymbol, found[0].Func.Name)}, nil
	}
	return Candidates{Why: fmt.Sprintf("no names: %s, and %d functions of the given modules have its records", noSymbol, owners)}, nil
}

// holdsAll reports whether f has a site for every record of e's function.
func (ms *Modules) holdsAll(f *ir.Func, e RecordEntry) bool {
	key := comparison{f, e.Function}
	all, done := ms.held[key]
	if !done {
		all = true
		for rec := range e.Map.Records(e.Function) {
			other := RecordEntry{e.Entry, rec}
			sites := ms.sitesOf[f][uint64(other.Record.ID)]
			if all = len(sites) > 0 && miscounted(sites, other) == ""; !all {
				break
			}
		}
		ms.held[key] = all
	}
	return all
}

// head returns the number of locations before the live values. In a patchpoint with anyregcc these are the result and the arguments (LLVM, "Stack maps and
// patch points", llvm.experimental.patchpoint).
func head(s *ir.Site) int {
	if s.Kind != ir.PatchPointSite || !abi.InAnyRegisters(s.CC) {
		return 0
	}
	n := len(s.Instr.Args) - PatchpointHead - len(s.Live)
	if s.Instr.Typ.Kind != ir.VoidKind {
		n++
	}
	return n
}

// PatchpointHead is the number of operands before a patchpoint's arguments: id, bytes, target, number of arguments.
const PatchpointHead = 4

// CountMisfit returns the reason why the number of the record's values excludes the site, or "".
func CountMisfit(s *ir.Site, e RecordEntry) string {
	_, why := alignOrCount(s, e, false)
	return why
}

// Unalignable returns the reason why the number and kinds of the record's values exclude the site, or "".
func Unalignable(s *ir.Site, e RecordEntry) string {
	_, why := Align(s, e)
	return why
}

// Misfit returns the reason why the record cannot belong to the site, or "".
func Misfit(s *ir.Site, e RecordEntry) string {
	a, why := Align(s, e)
	if why != "" {
		return why
	}
	for k, v := range s.Live {
		c, ok := v.(*ir.Const)
		if !ok || c.Kind != ir.ConstInt || c.Typ.Bits > 64 {
			continue
		}
		l, known := a.Location(k)
		if got, agrees := agreesWith(e.Map, c.Int, c.Typ, l); known && !agrees {
			return fmt.Sprintf("has the constant %v as its live value %d, but line %d of the module has %s", got, k, s.Instr.Line, c.Ref())
		}
	}
	return ""
}
