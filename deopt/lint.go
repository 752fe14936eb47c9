package deopt

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"reframe/deopt/ir"
)

// LintSchema names the JSON of a [LintReport].
const LintSchema = "reframe.lint/v1"

// LintReport says which sites of modules could not be resumed, found before anything runs.
type LintReport struct {
	Schema   string        `json:"schema"`
	Modules  []string      `json:"modules"`
	Sites    int           `json:"sites"` // guards are counted with them
	Findings []LintFinding `json:"findings"`
}

// LintSeverity says how bad a finding is.
type LintSeverity string

// The severities.
const (
	CannotResume LintSeverity = "cannot resume" // no frame that stands there can be resumed
	LintWarning  LintSeverity = "warning"       // it depends on what the module does not show
)

// LintRule names what a finding is about.
type LintRule string

// The rules.
const (
	Unrecorded       LintRule = "unrecorded"        // what is live is not among the operands
	GCLiveUnnamed    LintRule = "gc-live"           // it is, in the gc-live bundle, whose records nothing names
	LostOperand      LintRule = "lost-operand"      // of an operand LLVM records nothing, or a part
	UndefinedOperand LintRule = "undefined-operand" // an operand is undef or poison
	ClobberedOperand LintRule = "clobbered-operand" // an operand may be where the callee overwrites it
	WideVector       LintRule = "wide-vector"       // an operand needs registers that not every processor has
	X87Operand       LintRule = "x87-operand"       // an operand has no location where it lies in an x87 register
	NotCompiled      LintRule = "not-compiled"      // the code generator crashes or never ends
	NoRecord         LintRule = "no-record"         // the code generator drops the site
	SameID           LintRule = "same-id"           // the id is another site's too
	WideID           LintRule = "wide-id"           // releases before 19 cut the id
	BehindCall       LintRule = "behind-call"       // a frame in the call before a stackmap has no record
	PatchBytes       LintRule = "patch-bytes"       // what is to be patched does not fit
	LayoutMisfit     LintRule = "layout"            // a layout names what is not there
	NoLayout         LintRule = "no-layout"         // nothing says where a deoptimize carries on
	UnknownWord      LintRule = "unknown-word"      // a word of the module is none of LLVM's
)

// LintFinding is one thing that is wrong. One of a layout has Path, and names what the
// exit names; one of a module has Line, and if it is about a site, Function.
type LintFinding struct {
	Rule     LintRule     `json:"rule"`
	Severity LintSeverity `json:"severity"`
	File     string       `json:"file"`
	Line     int          `json:"line,omitempty"`
	Path     string       `json:"path,omitempty"` // in the layout, such as exits[0].slots[2]
	Function string       `json:"function,omitempty"`
	Block    string       `json:"block,omitempty"`
	Site     string       `json:"site,omitempty"`
	ID       *uint64      `json:"id,omitempty"`
	Names    []string     `json:"names,omitempty"` // the values, the first maxNames of them
	What     string       `json:"what"`
	Do       string       `json:"do"` // what helps
}

// maxNames bounds how many values one finding names: thousands of sites may each lack
// thousands.
const maxNames = 64

// linter is what was found out so far.
type linter struct {
	ms      *modules
	layouts []*Layout
	out     *LintReport
	targets map[carried]*target      // where exits carry on
	ids     map[uint64]*ir.Site      // the first site of each id
	entry   map[*ir.Block][]ir.Value // what is live at the start of blocks behind invokes
}

// Lint looks for sites of the modules that could not be resumed: by layouts where one of
// them has an exit for a site, else behind the site itself. The error is of a module: a
// body that cannot be read, or a site that is not what LangRef says it must be.
func Lint(given []*ir.Module, layouts []*Layout) (*LintReport, error) {
	l := &linter{ms: newModules(given), layouts: layouts, out: &LintReport{Schema: LintSchema, Modules: []string{}, Findings: []LintFinding{}},
		targets: map[carried]*target{}, ids: map[uint64]*ir.Site{}, entry: map[*ir.Block][]ir.Value{}}
	for _, m := range given {
		l.out.Modules = append(l.out.Modules, m.Name)
	}
	for _, layout := range layouts {
		from := len(l.out.Findings)
		for n := range layout.Exits {
			if err := l.exit(layout, n); err != nil {
				return nil, err
			}
		}
		l.places(layout, from)
	}
	for _, m := range given {
		for _, f := range m.Funcs {
			if err := l.function(f); err != nil {
				return nil, err
			}
		}
		l.unknown(m)
	}
	return l.out, nil
}

// unknown lists the words of a module that are not known, each once.
func (l *linter) unknown(m *ir.Module) {
	list, more := m.Warnings()
	for _, w := range list {
		l.out.Findings = append(l.out.Findings, LintFinding{Rule: UnknownWord, Severity: LintWarning, File: m.Name, Line: w.Line,
			What: w.String(), Do: w.Meaning()})
	}
	if more > 0 {
		l.out.Findings = append(l.out.Findings, LintFinding{Rule: UnknownWord, Severity: LintWarning, File: m.Name, Line: list[len(list)-1].Line,
			What: "there are more unknown words", Do: "is this LLVM IR of the releases 14 to 22?"})
	}
}

// Count is the number of findings of a severity.
func (r *LintReport) Count(s LintSeverity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n++
		}
	}
	return n
}

// function looks at the sites of one function.
func (l *linter) function(f *ir.Func) error {
	sites, err := allSites(f)
	if err != nil || len(sites) == 0 {
		return err
	}
	l.out.Sites += len(sites)
	before := len(l.out.Findings)
	kept := l.emitted(sites)
	for rest := kept; len(rest) > 0; {
		n := 1
		for n < len(rest) && rest[n].Instr.Block == rest[0].Instr.Block {
			n++
		}
		if err := l.block(slices.Clone(rest[:n])); err != nil {
			return err
		}
		rest = rest[n:]
	}
	l.sameIDs(kept)
	slices.SortStableFunc(l.out.Findings[before:], func(a, b LintFinding) int { return a.Line - b.Line })
	return nil
}

// emitted returns the sites for which code is generated, and reports the others.
func (l *linter) emitted(sites []*ir.Site) []*ir.Site {
	reached := reachable(sites[0].Func)
	return slices.DeleteFunc(slices.Clone(sites), func(s *ir.Site) bool {
		switch {
		case !emits(s.Func):
			l.site(s, LintFinding{Rule: NoRecord, Severity: LintWarning,
				What: "no code is generated for an available_externally function, and no record",
				Do:   "lint the module that defines it"})
		case !reached[s.Instr.Block]:
			l.site(s, LintFinding{Rule: NoRecord, Severity: LintWarning,
				What: "it is never reached from the entry, so LLVM drops it and writes no record",
				Do:   "nothing, unless it was meant to be reached"})
		default:
			return false
		}
		return true
	})
}

// block looks at the sites of one block, the last first: what is live at each of them is
// found in one walk.
func (l *linter) block(sites []*ir.Site) error {
	slices.Reverse(sites)
	at := make([]int, len(sites))
	for k, s := range sites {
		at[k] = s.Instr.Index + 1
		if s.Kind == ir.StackMapSite { // a frame there stands before it
			at[k]--
		}
	}
	k := 0
	return ir.LiveEach(sites[0].Instr.Block, at, func(_ int, live []ir.Value) error {
		s := sites[k]
		k++
		live, err := l.behind(s, live)
		if err != nil {
			return err
		}
		if err := l.values(s, l.exitsOf(s), live); err != nil {
			return err
		}
		l.compiles(s)
		l.patchable(s)
		l.wideID(s)
		l.behindCall(s)
		return nil
	})
}

// allSites returns the sites and guards of a function in program order.
func allSites(f *ir.Func) ([]*ir.Site, error) {
	sites, err := f.Sites()
	if err != nil {
		return nil, err
	}
	guards, err := f.Guards()
	if err != nil || len(guards) == 0 {
		return sites, err
	}
	all := slices.Concat(sites, guards)
	slices.SortFunc(all, func(a, b *ir.Site) int {
		return cmp.Or(a.Instr.Block.Index-b.Instr.Block.Index, a.Instr.Index-b.Instr.Index)
	})
	return all, nil
}

// reachable are the blocks that the code generator keeps: those that some way from the
// entry leads to.
func reachable(f *ir.Func) map[*ir.Block]bool {
	blocks, err := f.Body()
	if err != nil || len(blocks) == 0 {
		return nil
	}
	seen, work := map[*ir.Block]bool{blocks[0]: true}, []*ir.Block{blocks[0]}
	for len(work) > 0 {
		b := work[len(work)-1]
		work = work[:len(work)-1]
		for _, next := range b.Instrs[len(b.Instrs)-1].Blocks {
			if !seen[next] {
				seen[next] = true
				work = append(work, next)
			}
		}
	}
	return seen
}

// site adds a finding about a site.
func (l *linter) site(s *ir.Site, f LintFinding) {
	id := s.ID
	f.File, f.Line, f.Function, f.Block, f.Site = s.Func.Module.Name, s.Instr.Line, s.Func.Name, s.Instr.Block.Name, string(s.Kind)
	if s.Kind != ir.GuardSite { // it gets one only as what it will be
		f.ID = &id
	}
	f.Names = f.Names[:min(len(f.Names), maxNames)]
	l.out.Findings = append(l.out.Findings, f)
}

// listed spells names for a message.
func listed(names []string) string {
	if more := len(names) - maxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// is is the verb for a number of things.
func is(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// statepointLike says whether a site's live values are those of its deopt bundle.
func statepointLike(s *ir.Site) bool {
	return s.Kind != ir.StackMapSite && s.Kind != ir.PatchPointSite
}

// leavesFunction says whether nothing is carried on behind a site: its frame leaves.
func leavesFunction(s *ir.Site) bool { return s.Kind == ir.DeoptimizeSite || s.Kind == ir.GuardSite }

// where says where the operands of a site are written.
func where(s *ir.Site) string {
	if statepointLike(s) {
		return "its deopt bundle"
	}
	return "its operands"
}
