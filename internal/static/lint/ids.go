package lint

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/deopt/stackmap"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// maxAlike bounds the sites of one id with which a site is compared: a function may have a hundred thousand. Sites that differ in a constant are
// separated before this.
const maxAlike = 256

// sameIDs reports sites of a function whose records could be confused, if their frames resume after the site. If a layout resumes them instead,
// confusion does no harm: a layout selects values by operand, not by name.
func (l *linter) sameIDs(all []*ir.Site) {
	alike := map[string][]*ir.Site{}
	apart := partingOperands(all)
	var ordered map[*ir.Site]bool
	for _, s := range all {
		for _, key := range partKeys(s, apart) {
			alike[key] = append(alike[key], s)
		}
	}
	for _, s := range all {
		if sites.LeavesFunction(s) || len(l.exitsOf(s)) > 0 {
			continue
		}
		if t := confusedWith(s, alike, apart); t != nil {
			f := Finding{Rule: SameID, Severity: CannotResume,
				What: fmt.Sprintf("the %s of line %d has the same id and number of live values, and no constant distinguishes them", t.Kind, t.Instr.Line),
				Do:   "give each its own id"}
			if sites.StatepointLike(s) {
				f.Do += ` (a call has it in the attribute "statepoint-id")`
			}
			if alikeByCut(s, t) {
				f.Severity = LintWarning
				f.What = fmt.Sprintf("LLVM before 19 cuts its id to 32 bits; then the %s of line %d has the same id and number of live values, and no constant distinguishes them", t.Kind, t.Instr.Line)
			}
			if ordered == nil {
				ordered = l.toldByOrder(all)
			}
			switch {
			case ordered[s]:
				f.Severity, f.What = LintWarning, f.What+": only their order distinguishes them, unless the code generator merges them"
			case differentCallees(s, t):
				f.Severity, f.What = LintWarning, f.What+": only the called function distinguishes them, if the call names it"
			}
			l.site(s, f)
		}
	}
	l.elsewhere(all)
}

// toldByOrder returns the sites that can be distinguished from similar ones by the order of execution: no path that passes the same number of sites
// ends at a similar one.
func (l *linter) toldByOrder(all []*ir.Site) map[*ir.Site]bool {
	told := map[*ir.Site]bool{}
	if len(all)*len(all) > sites.MaxPairs {
		return told
	}
	c := sites.CourseOfModule(all[0].Func, all)
	if c == nil {
		return told
	}
	may := [][]bool{make([]bool, len(all)+1)}
	may[0][0] = true
	for _, s := range all {
		row := make([]bool, len(all)+1)
		for k, t := range all {
			common := func(id uint64) bool { return slices.Contains(t.IDs(), id) }
			row[k+1] = sites.ShapeOf(s) == sites.ShapeOf(t) && slices.ContainsFunc(s.IDs(), common) && !toldApart(s, t)
		}
		may = append(may, row)
	}
	budget := sites.MaxSteps
	if !sites.Together(c, c, may, &budget) {
		return told
	}
	for k, s := range all {
		alone := true
		for n := range all {
			alone = alone && (n == k) == may[k+1][n+1]
		}
		told[s] = alone
	}
	return told
}

// elsewhere reports ids that sites of other functions have too. If one function is inlined into the other, the sites can be confused. Several
// functions may use LLVM's default ids.
func (l *linter) elsewhere(all []*ir.Site) {
	for _, s := range all {
		if sites.ByDefault(stackmap.RecordID(s.ID)) {
			continue
		}
		first, ok := l.ids[s.ID]
		if !ok {
			l.ids[s.ID] = s
			continue
		}
		if first.Func == s.Func {
			continue
		}
		l.site(s, Finding{Rule: SameID, Severity: LintWarning,
			What: fmt.Sprintf("the %s of @%s at line %d has the same id: after inlining of either function, a record does not identify its site", first.Kind, first.Func.Name, first.Instr.Line),
			Do:   "give each its own id"})
	}
}

// wideID reports a statepoint id that releases before LLVM 19 truncate.
func (l *linter) wideID(s *ir.Site) {
	if cut, wide := s.CutID(); wide {
		l.site(s, Finding{Rule: WideID, Severity: LintWarning,
			What: fmt.Sprintf("LLVM before 19 cuts the id of a statepoint to 32 bits: its record gets the id %d", cut),
			Do:   "give it an id of 32 bits"})
	}
}

// alikeByCut reports whether two sites have the same id only if one is truncated.
func alikeByCut(s, t *ir.Site) bool {
	_, one := s.CutID()
	_, other := t.CutID()
	return s.ID != t.ID && (one || other)
}

// idShape holds the id and the shape of a site. Sites that differ in neither may differ in their constants.
type idShape struct {
	id uint64
	sites.Shape
}

// partingOperands returns for each id and shape the operands that are integer constants of one width in all sites: a record matches a site only if
// these agree.
func partingOperands(all []*ir.Site) map[idShape][]int {
	out := map[idShape][]int{}
	first := map[idShape]*ir.Site{}
	for _, s := range all {
		for _, id := range s.IDs() {
			k := idShape{id, sites.ShapeOf(s)}
			f, seen := first[k]
			if !seen {
				first[k] = s
				for n, v := range s.Live {
					if partsBy(v) {
						out[k] = append(out[k], n)
					}
				}
				continue
			}
			out[k] = slices.DeleteFunc(out[k], func(n int) bool {
				return n >= len(s.Live) || !partsBy(s.Live[n]) || s.Live[n].Type().Bits != f.Live[n].Type().Bits
			})
		}
	}
	return out
}

// partsBy reports whether an operand is an integer constant of at most 64 bits: only these are compared with the constants of a record.
func partsBy(v ir.Value) bool {
	c, ok := v.(*ir.Const)
	return ok && c.Kind == ir.ConstInt && c.Typ.Bits <= 64
}

// partKeys returns a key for each id that the record of a site may have. Sites with the same key cannot be distinguished.
func partKeys(s *ir.Site, apart map[idShape][]int) []string {
	var keys []string
	for _, id := range s.IDs() {
		k := idShape{id, sites.ShapeOf(s)}
		var b strings.Builder
		fmt.Fprintf(&b, "%d %v", id, k.Shape)
		for _, n := range apart[k] {
			fmt.Fprintf(&b, " %v", s.Live[n].(*ir.Const).Int)
		}
		keys = append(keys, b.String())
	}
	return keys
}

// confusedWith returns another site whose records can be confused with those of s, or nil.
func confusedWith(s *ir.Site, alike map[string][]*ir.Site, apart map[idShape][]int) *ir.Site {
	for _, key := range partKeys(s, apart) {
		for _, t := range alike[key][:min(len(alike[key]), maxAlike)] {
			if t != s && !toldApart(s, t) {
				return t
			}
		}
	}
	return nil
}

// toldApart reports whether two sites of one shape have different constants at some operand.
func toldApart(s, t *ir.Site) bool {
	for n, v := range s.Live {
		if n >= len(t.Live) || !partsBy(v) || !partsBy(t.Live[n]) {
			continue
		}
		if v.Type().Bits == t.Live[n].Type().Bits && v.(*ir.Const).Int.Cmp(t.Live[n].(*ir.Const).Int) != 0 {
			return true
		}
	}
	return false
}

// differentCallees reports whether two statepoints call different functions by name. Then the target of the call instruction distinguishes them
// ([Frame.narrow]), unless it is in a register.
func differentCallees(s, t *ir.Site) bool {
	if !sites.StatepointLike(s) || !sites.StatepointLike(t) {
		return false
	}
	a, direct := s.Callee.(*ir.Func)
	b, both := t.Callee.(*ir.Func)
	return direct && both && a != b
}
