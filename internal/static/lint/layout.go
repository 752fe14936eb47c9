package lint

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/base/jsonat"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/layout"
)

// carried is the pair of a layout's exit and a function in which it may resume.
type carried struct {
	exit *layout.Exit
	to   *ir.Func
}

// target holds the values that a frame needs where an exit resumes.
type target struct {
	live    map[string]bool // the values that are read from there on, by name
	missing []string        // the values in live that have no slot in the exit
}

// places adds positions in the layout's file to findings, starting at index from.
func (l *linter) places(layout *layout.Layout, from int) {
	findings := l.out.Findings[from:]
	paths := make([]string, len(findings))
	for k := range findings {
		paths[k] = findings[k].Path
	}
	for k, place := range jsonat.Find(layout.Text, paths...) {
		findings[k].Line = place.Line
	}
}

// exit compares exit n of a layout with the modules. It reports all mistakes that [layout.Layout.Check] would reject at run time, not only the first.
func (l *linter) exit(described *layout.Layout, n int) error {
	x := &described.Exits[n]
	found := func(s Severity, path, do, what string) {
		l.out.Findings = append(l.out.Findings, Finding{Rule: LayoutMisfit, Severity: s, File: described.Name,
			Path: x.Path + path, Function: x.Function, ID: x.Record, What: what, Do: do})
	}
	at, wrong, err := x.Leaves(l.ms)
	if err != nil {
		return err
	}
	sound := len(at) > 0
	for _, m := range wrong {
		sound = sound && !strings.HasPrefix(m.Path, ".when")
		what, do := misfit(x, &m)
		found(CannotResume, m.Path, do, what)
	}
	if sound && !slices.ContainsFunc(at, func(s *ir.Site) bool { return holds(x, s) != never }) {
		found(LintWarning, ".when", "correct the condition, or remove the exit", fmt.Sprintf("no exit of @%s ever has these values", x.Function))
	}
	for _, m := range x.Enters(l.ms) {
		if m.Kind == layout.Unreadable {
			return m.Err
		}
		what, do := misfit(x, &m)
		found(CannotResume, m.Path, do, what)
	}
	at = slices.DeleteFunc(at, func(s *ir.Site) bool { return holds(x, s) == never })
	for k := range x.Slots {
		if what := swapped(x, k, at); what != "" {
			l.out.Findings = append(l.out.Findings, Finding{Rule: Swapped, Severity: LintWarning, File: described.Name, Path: fmt.Sprintf("%s.slots[%d]", x.Path, k),
				Function: x.Function, ID: x.Record, What: what, Do: "exchange the operands, unless the names have other meanings in @" + x.Resume.Function})
		}
	}
	return nil
}

// swapped describes a slot that gives its operand the name of another slot's operand. In the function that is left, that other operand must have this
// name at each site of the exit. It returns "" for other slots.
func swapped(x *layout.Exit, k int, at []*ir.Site) (what string) {
	slot := x.Slots[k]
	for _, s := range at {
		if slot.Operand < 0 || slot.Operand >= len(s.Live) {
			return ""
		}
		own := sites.NameOf(s.Live[slot.Operand])
		if own == "" || condition.Plain(own) == condition.Plain(slot.Name) {
			return ""
		}
		other := slices.IndexFunc(x.Slots, func(o layout.Slot) bool {
			return o.Operand >= 0 && o.Operand < len(s.Live) && condition.Plain(sites.NameOf(s.Live[o.Operand])) == condition.Plain(slot.Name)
		})
		if other < 0 {
			return ""
		}
		what = fmt.Sprintf("operand %d, which is %s in @%s, becomes %s, and operand %d, which is %s, becomes %s",
			slot.Operand, own, x.Function, slot.Name, x.Slots[other].Operand, sites.NameOf(s.Live[x.Slots[other].Operand]), x.Slots[other].Name)
	}
	return what
}

// misfit describes a mismatch of an exit, and the fix.
func misfit(x *layout.Exit, m *layout.Misfit) (what, do string) {
	what = m.Err.Error()
	switch m.Kind {
	case layout.NoFunction:
		do = "give the module that defines it, or correct the name"
	case layout.NoSite:
		return fmt.Sprintf("@%s has no such exit: it has no stackmap, patchpoint, statepoint, deoptimize or guard with that record", x.Function), "name the record of a site of @" + x.Function
	case layout.NoOperand:
		return fmt.Sprintf("operand %d: the exits of @%s have %d live values", m.Operand, x.Function, m.Most), "operands count the live values from 0"
	case layout.NoBlock:
		do = "name a block of @" + x.Resume.Function
	case layout.NoValue:
		do = "name a parameter or an instruction of @" + x.Resume.Function
	case layout.Twice:
		do = "leave one of them out"
	}
	return what, do
}

// whether is the degree of certainty with which the conditions of an exit hold.
type whether int

const (
	never whether = iota
	maybe
	always
)

// holds evaluates the conditions of an exit at a site, as far as its operands are constants of the module.
func holds(x *layout.Exit, s *ir.Site) whether {
	out := always
	for _, c := range x.When {
		if c.Operand < 0 || c.Operand >= len(s.Live) {
			return never
		}
		number, ok := s.Live[c.Operand].(*ir.Const)
		if !ok || number.Kind != ir.ConstInt {
			out = min(out, maybe)
			continue
		}
		modulus := new(big.Int).Lsh(big.NewInt(1), uint(number.Typ.Bits))
		want := big.NewInt(c.Equals)
		if number.Int.Cmp(want) != 0 && new(big.Int).Sub(number.Int, modulus).Cmp(want) != 0 {
			return never
		}
	}
	return out
}

// taken is an exit that a frame at a site may take.
type taken struct {
	*layout.Exit
	layout *layout.Layout
	number int
}

// path returns the path in the layout of a part of the exit.
func (x *taken) path(part string) string {
	return fmt.Sprintf("%s: exits[%d]%s", x.layout.Name, x.number, part)
}

// exitsOf returns the exits that a frame at a site may take, in the order of evaluation.
func (l *linter) exitsOf(s *ir.Site) []taken {
	var out []taken
	for _, layout := range l.layouts {
		for n := range layout.Exits {
			x := &layout.Exits[n]
			if !x.MayLeave(s) {
				continue
			}
			switch holds(x, s) {
			case always:
				return append(out, taken{x, layout, n})
			case maybe:
				out = append(out, taken{x, layout, n})
			}
		}
	}
	return out
}

// destination returns the function in which a frame of a site resumes by an exit, or nil if [linter.exit] has reported a mistake.
func (l *linter) destination(x *taken, s *ir.Site) *ir.Func {
	to, defined := x.Destination(l.ms, s.Func.Module)
	switch {
	case to != nil && to.Block(x.Resume.Block) != nil:
		return to
	case to == nil && defined > 0:
		l.site(s, Finding{Rule: LayoutMisfit, Severity: CannotResume,
			What: fmt.Sprintf("%s: %d of the modules define @%s, and the module of the site does not", x.path(".resume.function"), defined, x.Resume.Function),
			Do:   "give only one of them"})
	}
	return nil
}

// targetOf returns the values that are live where an exit resumes.
func (l *linter) targetOf(x *taken, to *ir.Func) (*target, error) {
	key := carried{x.Exit, to}
	if t, ok := l.targets[key]; ok {
		return t, nil
	}
	values, err := ir.LiveAt(to.Block(x.Resume.Block), 0)
	if err != nil {
		return nil, err
	}
	t := &target{live: map[string]bool{}}
	given := map[string]bool{}
	for _, s := range x.Slots {
		given[s.Name] = true
	}
	for _, v := range values {
		t.live[v.Ref()] = true
		if !given[v.Ref()] {
			t.missing = append(t.missing, v.Ref())
		}
	}
	l.targets[key] = t
	return t, nil
}

// exitValues compares the slots of an exit with the operands of a site that may take it, and returns the required operands.
func (l *linter) exitValues(s *ir.Site, x *taken) (needed map[int]string, err error) {
	needed = map[int]string{}
	to := l.destination(x, s)
	if to == nil {
		return needed, nil
	}
	t, err := l.targetOf(x, to)
	if err != nil {
		return nil, err
	}
	if len(t.missing) > 0 {
		l.site(s, Finding{Rule: Unrecorded, Severity: CannotResume, Names: t.missing,
			What: fmt.Sprintf("%s: %s %s live at block %%%s of @%s, but no slot sets %s", x.path(".slots"), listed(t.missing), is(len(t.missing)),
				x.Resume.Block, to.Name, map[bool]string{true: "it", false: "them"}[len(t.missing) == 1]),
			Do: "give each a slot, and record the missing values in " + where(s)})
	}
	for k, slot := range x.Slots {
		v := layout.Value(to, slot.Name)
		if v == nil || slot.Operand < 0 || slot.Operand >= len(s.Live) {
			continue // linter.exit reports it, or another site has the operand
		}
		if t.live[v.Ref()] {
			needed[slot.Operand] = slot.Name
		}
		got, want := interp.FrameType(s.Func.Module.Layout, s.Live[slot.Operand].Type()), interp.FrameType(to.Module.Layout, v.Type())
		if !layout.Fits(got, want) && !slot.Widens(got, want) {
			l.site(s, Finding{Rule: LayoutMisfit, Severity: CannotResume, Names: []string{slot.Name},
				What: fmt.Sprintf("%s: %s of @%s is %s, and operand %d is %s", x.path(fmt.Sprintf(".slots[%d]", k)), slot.Name, to.Name, want.Source, slot.Operand, got.Source),
				Do:   "record a value of that type"})
		}
	}
	return needed, nil
}
