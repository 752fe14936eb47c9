package lint

import (
	"fmt"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/internal/vm/vmlayout"
)

// Schema names the JSON of a [Report].
const Schema = "reframe.lint/v1"

// Report lists sites of modules that could not be resumed. Lint makes it from the files alone.
type Report struct {
	Schema   string    `json:"schema"`
	Modules  []string  `json:"modules"`
	Sites    int       `json:"sites"` // including guards
	Findings []Finding `json:"findings"`
}

// Severity ranks a finding.
type Severity string

// The severities.
const (
	CannotResume Severity = "cannot resume" // a frame at the site can never be resumed
	LintWarning  Severity = "warning"       // the frame may be resumable, depending on facts outside of the module
)

// Rule names a kind of finding.
type Rule string

// The rules.
const (
	Unrecorded       Rule = "unrecorded"        // a live value is not among the operands
	GCLiveUnnamed    Rule = "gc-live"           // a live value is only in the gc-live bundle, whose records have no names
	LostOperand      Rule = "lost-operand"      // LLVM records no part of an operand, or only one part
	UndefinedOperand Rule = "undefined-operand" // an operand is undef or poison
	ClobberedOperand Rule = "clobbered-operand" // an operand may be in a register that the callee overwrites
	WideVector       Rule = "wide-vector"       // an operand needs registers that not every processor has
	X87Operand       Rule = "x87-operand"       // an operand in an x87 register has no location
	NotCompiled      Rule = "not-compiled"      // the code generator crashes or does not terminate
	NoRecord         Rule = "no-record"         // the code generator drops the site
	SameID           Rule = "same-id"           // another site has the same id
	WideID           Rule = "wide-id"           // releases before 19 truncate the id
	AfterCall        Rule = "behind-call"       // a frame that waits for the call before a stackmap has no record
	PatchBytes       Rule = "patch-bytes"       // the patchable region is too small
	LayoutMisfit     Rule = "layout"            // a layout names something that does not exist
	Swapped          Rule = "swapped"           // a layout gives a value the name of another one
	NoLayout         Rule = "no-layout"         // no layout gives the place at which a deoptimize resumes
	VMLayout         Rule = "vm-layout"         // a layout of a virtual machine cannot read the operands
	UnknownWord      Rule = "unknown-word"      // a word of the module is unknown to LLVM
	WrongCallee      Rule = "wrong-callee"      // the code generator calls another value than the statepoint's callee
)

// Finding is one problem. A finding in a layout has Path, and the names in the exit. A finding in a module has Line, and Function if it is about a
// site.
type Finding struct {
	Rule     Rule     `json:"rule"`
	Severity Severity `json:"severity"`
	File     string   `json:"file"`
	Line     int      `json:"line,omitempty"`
	Path     string   `json:"path,omitempty"` // in the layout, such as exits[0].slots[2]
	Function string   `json:"function,omitempty"`
	Block    string   `json:"block,omitempty"`
	Site     string   `json:"site,omitempty"`
	ID       *uint64  `json:"id,omitempty"`
	Names    []string `json:"names,omitempty"` // the values, the first maxNames of them
	What     string   `json:"what"`
	Do       string   `json:"do"`             // the fix
	More     int      `json:"more,omitempty"` // number of further sites with the same mistake of a layout

	key mistake // zero for findings that are not about a layout
}

// MaxNames bounds the values that one finding names: thousands of sites may each lack thousands of values.
const MaxNames = 64

// linter holds the state of a run of [Lint].
type linter struct {
	ms      *sites.Modules
	layouts []*layout.Layout
	vms     []*vmlayout.Layout
	out     *Report
	targets map[carried]*target      // the places where exits resume
	ids     map[uint64]*ir.Site      // the first site of each id
	entry   map[*ir.Block][]ir.Value // live values at the start of blocks after invokes
	deopts  map[*ir.Module]bool      // the result of [linter.deoptimizes]

	offered, accepted int // numbers of sites for which layouts of virtual machines were run, and for which one of them returned frames
}

// Lint reports the sites of the modules that could not be resumed: by an exit in a layout, or if there is none, after the site itself. It returns an
// error if a body cannot be read, or a site violates a rule of LLVM's verifier ([siteRules]).
//
// Lint runs layouts of virtual machines over each site. For a site that such a layout reads, Lint does not check the values that IR needs to resume,
// because the machine's own interpreter resumes the frame.
func Lint(given []*ir.Module, layouts []*layout.Layout, vms ...*vmlayout.Layout) (*Report, error) {
	l := &linter{ms: sites.NewModules(given), layouts: layouts, vms: vms, out: &Report{Schema: Schema, Modules: []string{}, Findings: []Finding{}},
		targets: map[carried]*target{}, ids: map[uint64]*ir.Site{}, entry: map[*ir.Block][]ir.Value{}, deopts: map[*ir.Module]bool{}}
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
	l.group()
	return l.out, nil
}

// unknown reports the unknown words of a module, each once.
func (l *linter) unknown(m *ir.Module) {
	list, more := m.Warnings()
	for _, w := range list {
		l.out.Findings = append(l.out.Findings, Finding{Rule: UnknownWord, Severity: LintWarning, File: m.Name, Line: w.Line,
			What: w.String(), Do: w.Meaning()})
	}
	if more > 0 {
		l.out.Findings = append(l.out.Findings, Finding{Rule: UnknownWord, Severity: LintWarning, File: m.Name, Line: list[len(list)-1].Line,
			What: "there are more unknown words", Do: "check that this is LLVM IR of releases 14 to 22"})
	}
}

// Count returns the number of findings of a severity. It counts a finding once for each site that has it.
func (r *Report) Count(s Severity) int {
	n := 0
	for _, f := range r.Findings {
		if f.Severity == s {
			n += 1 + f.More
		}
	}
	return n
}

// function checks the sites of one function.
func (l *linter) function(f *ir.Func) error {
	if err := verifySites(f); err != nil {
		return err
	}
	sites, err := sites.AllSites(f)
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
	slices.SortStableFunc(l.out.Findings[before:], func(a, b Finding) int { return a.Line - b.Line })
	return nil
}

// emitted returns the sites for which code is generated, and reports the others.
func (l *linter) emitted(siteList []*ir.Site) []*ir.Site {
	reached := sites.Reachable(siteList[0].Func)
	return slices.DeleteFunc(slices.Clone(siteList), func(s *ir.Site) bool {
		switch {
		case !sites.Emits(s.Func):
			l.site(s, Finding{Rule: NoRecord, Severity: LintWarning,
				What: "no code and no record is generated for an available_externally function",
				Do:   "lint the module that defines it"})
		case !reached[s.Instr.Block]:
			l.site(s, Finding{Rule: NoRecord, Severity: LintWarning,
				What: "it is never reached from the entry, so LLVM drops it and writes no record",
				Do:   "nothing, unless it should be reachable"})
		default:
			return false
		}
		return true
	})
}

// block checks the sites of one block, starting with the last: one walk finds the live values of all.
func (l *linter) block(sites []*ir.Site) error {
	slices.Reverse(sites)
	at := make([]int, len(sites))
	for k, s := range sites {
		at[k] = s.Instr.Index + 1
		if s.Kind == ir.StackMapSite { // the frame stops before the stackmap
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
		if !l.readByVM(s) {
			if err := l.values(s, l.exitsOf(s), live); err != nil {
				return err
			}
		}
		l.compiles(s)
		l.patchable(s)
		l.wideID(s)
		l.afterCall(s)
		return nil
	})
}

// site adds a finding about a site.
func (l *linter) site(s *ir.Site, f Finding) {
	id := s.ID
	f.File, f.Line, f.Function, f.Block, f.Site = s.Func.Module.Name, s.Instr.Line, s.Func.Name, s.Instr.Block.Name, string(s.Kind)
	if s.Kind != ir.GuardSite { // a guard gets an id when it is lowered
		f.ID = &id
	}
	f.Names = f.Names[:min(len(f.Names), MaxNames)]
	l.out.Findings = append(l.out.Findings, f)
}

// listed joins names for a message.
func listed(names []string) string {
	if more := len(names) - MaxNames; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:MaxNames], ", "), more)
	}
	return strings.Join(names, ", ")
}

// is returns "is" or "are" for a number of things.
func is(n int) string {
	if n == 1 {
		return "is"
	}
	return "are"
}

// where names the operands of a site in a message.
func where(s *ir.Site) string {
	if sites.StatepointLike(s) {
		return "its deopt bundle"
	}
	return "its operands"
}
