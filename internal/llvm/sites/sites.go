// Which sites a record may be of. Package ir lists the sites of a module (its sites.go), and knows no record.

package sites

import (
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/abi"
	"example.com/reframe/internal/llvm/ir"
)

// MismatchError reports that an IR module cannot be what the process runs.
type MismatchError struct {
	Module   string // its file
	Function string
	Record   uint64
	Why      string
	defined  *ir.Func // the module's function, whose sites were compared with the record
}

// Error implements error.
func (e *MismatchError) Error() string {
	where := ""
	if e.Function != "" {
		where = " of @" + e.Function
	}
	return fmt.Sprintf("%s is not what was compiled: record %d%s %s", e.Module, e.Record, where, e.Why)
}

// Candidates are the sites that a record may be.
type Candidates struct {
	Sites []*ir.Site
	Why   string // why there are none, although modules were given; or what is uncertain about them
	order string // why the order in which they come does not determine which of them it is

	// Refused is set where no module names the record because one that defines its function cannot be what was compiled.
	Refused *Refusal
}

// Refusal is the reason why a module must not name the values of an object's code.
type Refusal struct {
	Func *ir.Func // of the module
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

// Sites finds the sites that a record of the function of these names can belong to. The
// id need not be unique, so what the record holds has to agree too: the number of live
// values, and the constants. Without a name the function has no symbol.
//
// The error is a [*MismatchError] where sites of the function have the record's id and none
// of them fits, or where no site fits another record of the same function.
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
	case stale != nil: // the user did not declare that it is what runs
		return Candidates{Why: "no names: " + stale.Error()}, nil
	case known:
		return Candidates{}, nil
	}
	return ms.Inlined(defined, e)
}

// otherPointers reports that a module is for another width of pointers than the code, or returns "".
func (ms *Modules) otherPointers(m *ir.Module) string {
	if n := m.Layout.PointerBytes(0); ms.Pointer != 0 && n != ms.Pointer {
		return fmt.Sprintf("is of code with pointers of %d bytes, and the module has pointers of %d", ms.Pointer, n)
	}
	return ""
}

// fits returns the sites that the record may be. If there is none, wrong is the reason.
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

// other compares the other records of the function of e with the sites of f: a module that fits one record by chance is not what the process runs
// if another record has no site that fits. For a function with many records and sites it compares only numbers of values.
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

// maxWholePairs bounds how many sites of a function are compared with its records by more than the number of values.
const maxWholePairs = 1 << 12

// miscounted returns the reason why none of the sites has as many values as the record, or "".
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

// Shape is all of a site that decides how many locations its record has.
type Shape struct {
	statepoint           bool
	head, live, vanished int
}

// ShapeOf is the shape of a site.
func ShapeOf(s *ir.Site) Shape {
	shape, _ := counted(s)
	return shape
}

// counted counts the operands of a site. extended means that an x86_fp80 may be without a location.
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

// Inlined finds the sites of a record that none of its function's own sites has the id
// of: it may have come with a function that was inlined, if that is the only one with the
// id. The ids that LLVM gives by itself lead nowhere.
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

// nameless finds the sites of a record whose function has no symbol: those of the only
// function of the modules that has sites for all records of it.
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

// holdsAll reports whether f has a site for every record of the function of e.
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

// head counts the locations of a patchpoint's record before those of its live values.
// With anyregcc the result and the arguments of the call are recorded first (LLVM,
// "Stack maps and patch points", llvm.experimental.patchpoint).
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

// PatchpointHead counts the operands before a patchpoint's arguments: id, bytes,
// target, number of arguments.
const PatchpointHead = 4

// CountMisfit returns the reason why the record cannot be that of the site by the number of its values, or "".
func CountMisfit(s *ir.Site, e RecordEntry) string {
	_, why := alignOrCount(s, e, false)
	return why
}

// Unalignable returns the reason why the record cannot be that of the site by the number and the kinds of its values, or "".
func Unalignable(s *ir.Site, e RecordEntry) string {
	_, why := Align(s, e)
	return why
}

// Misfit returns the reason why the record cannot be that of the site, or "".
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
			return fmt.Sprintf("holds the constant %v as its live value %d, and line %d of the module %s", got, k, s.Instr.Line, c.Ref())
		}
	}
	return ""
}
