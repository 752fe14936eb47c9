package lint

import (
	"fmt"
	"math/big"
	"slices"
	"strings"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// values compares the operands of a site with the values required where its frame resumes: by one of the exits, or if there are none, after the site.
// live holds the values required after the site.
func (l *linter) values(s *ir.Site, exits []taken, live []ir.Value) error {
	needed := map[int]string{} // the required operands, with their names in the function that resumes
	for n := range exits {
		more, err := l.exitValues(s, &exits[n])
		if err != nil {
			return err
		}
		for k, name := range more {
			needed[k] = name
		}
	}
	switch {
	case len(exits) > 0:
		l.clobbered(s, needed, live)
	case sites.LeavesFunction(s):
		l.noLayout(s)
	case l.onlyForCollector(s):
	default:
		l.unrecorded(s, live)
		wanted := setOf(live)
		for k, v := range s.Live {
			if sites.NameOf(v) != "" && wanted[v] {
				needed[k] = sites.NameOf(v)
			}
		}
	}
	l.operands(s, needed)
	return nil
}

// onlyForCollector reports whether a statepoint is only for the collector: no frame resumes at it unless a layout describes it. One case is a
// statepoint without a deopt bundle, which rewrite-statepoints-for-gc makes for each call that may collect. The other is an empty bundle in a
// function with a collector, if no statepoint of the module has deopt operands. Producers that use statepoints only for the collector write "deopt"()
// on each call.
func (l *linter) onlyForCollector(s *ir.Site) bool {
	if s.Kind != ir.StatepointSite || len(s.Live) > 0 {
		return false
	}
	if s.Instr.Typ.Kind == ir.TokenKind && !slices.ContainsFunc(s.Instr.Call.Bundles, func(b ir.Bundle) bool { return b.Tag == "deopt" }) {
		return true
	}
	return s.Func.GC != "" && !l.deoptimizes(s.Func.Module)
}

// deoptimizes reports whether a statepoint of a module has deopt operands. It ignores bodies that cannot be read: [linter.function] reports them.
func (l *linter) deoptimizes(m *ir.Module) bool {
	known, ok := l.deopts[m]
	if !ok {
		known = slices.ContainsFunc(m.Funcs, func(f *ir.Func) bool {
			all, err := f.Sites()
			return err == nil && slices.ContainsFunc(all, func(s *ir.Site) bool { return s.Kind == ir.StatepointSite && len(s.Live) > 0 })
		})
		l.deopts[m] = known
	}
	return known
}

// noLayout reports a deoptimize for which no layout gives a place to resume. It is only a warning if there are no layouts at all: the rest of the
// module can still be checked.
func (l *linter) noLayout(s *ir.Site) {
	f := Finding{Rule: NoLayout, Severity: LintWarning, What: "its frame never resumes in its own function, and no layout gives the function where it resumes",
		Do: "give a layout with --layout"}
	if len(l.layouts) > 0 {
		f.Severity, f.What, f.Do = CannotResume, "its frame never resumes in its own function, and no exit in a layout matches it", "add an exit for it to a layout"
	}
	l.site(s, f)
}

// behind returns the values that a frame must have to resume after a site: the live ones except the result of the call. After an invoke, the phis of
// the next block have not taken their values yet.
func (l *linter) behind(s *ir.Site, live []ir.Value) ([]ir.Value, error) {
	in := s.Instr
	if in.Op != ir.OpInvoke {
		return slices.DeleteFunc(live, func(v ir.Value) bool { return v == in }), nil
	}
	normal := in.Blocks[0]
	atStart, ok := l.entry[normal]
	if !ok {
		var err error
		if atStart, err = ir.LiveAt(normal, 0); err != nil {
			return nil, err
		}
		l.entry[normal] = atStart
	}
	seen := map[ir.Value]bool{in: true}
	var out []ir.Value
	for _, v := range atStart {
		if phi, ok := v.(*ir.Instr); ok && phi.Op == ir.OpPhi && phi.Block == normal {
			v = incomingFrom(phi, in.Block)
		}
		if v != nil && sites.NameOf(v) != "" && !seen[v] {
			seen[v] = true
			out = append(out, v)
		}
	}
	return out, nil
}

// incomingFrom returns the value that a phi takes from a block.
func incomingFrom(phi *ir.Instr, from *ir.Block) ir.Value {
	for k, b := range phi.Blocks {
		if b == from && k < len(phi.Args) {
			return phi.Args[k]
		}
	}
	return nil
}

// unrecorded reports live values that are not among the operands. A gc pointer in the gc-live bundle has a record too, but LLVM chooses the order of
// these: one pointer can be named, several cannot ([Frame.fillGC]).
func (l *linter) unrecorded(s *ir.Site, live []ir.Value) {
	recorded, inBundle := setOf(s.Live), setOf(s.GCLive)
	for _, t := range ir.Told(s.Live) {
		recorded[t.Value] = true
	}
	var missing, gc []string
	var allocas bool
	for _, v := range live {
		switch {
		case recorded[v]:
		case collected(s, v, inBundle):
			gc = append(gc, v.Ref())
		default:
			missing = append(missing, v.Ref())
			i, ok := v.(*ir.Instr)
			allocas = allocas || ok && i.Op == ir.OpAlloca
		}
	}
	if len(missing) > 0 {
		do := "add the missing values to " + where(s)
		if sites.StatepointLike(s) && len(s.Live) == 0 {
			do += ", which is empty" // rewrite-statepoints-for-gc makes statepoints with empty bundles of plain calls
		}
		if allocas {
			do += "; an alloca is recorded by its address"
		}
		if sites.StatepointLike(s) {
			do += "; or give the place where it resumes instead with --layout"
		}
		place := "after"
		if s.Kind == ir.StackMapSite {
			place = "at"
		}
		l.site(s, Finding{Rule: Unrecorded, Severity: CannotResume, Names: missing,
			What: fmt.Sprintf("%s %s live %s it but not recorded", listed(missing), is(len(missing)), place), Do: do})
	}
	if unnamed := l.unnamed(s, recorded, gc); len(gc) > 0 && unnamed > 1 {
		l.site(s, Finding{Rule: GCLiveUnnamed, Severity: CannotResume, Names: gc,
			What: fmt.Sprintf("%s %s live after it but in no deopt bundle, and a record does not distinguish the %d gc pointers for which this is true", listed(gc), is(len(gc)), unnamed),
			Do:   "add them to its deopt bundle"})
	}
}

// collected reports whether a value is recorded as a gc pointer: it is in the gc-live bundle, or rewrite-statepoints-for-gc will put it there.
func collected(s *ir.Site, v ir.Value, inBundle map[ir.Value]bool) bool {
	if i, ok := v.(*ir.Instr); ok && i.Op == ir.OpAlloca {
		return false
	}
	if inBundle[v] {
		return true
	}
	return toRewrite(s) && v.Type().Kind == ir.PointerKind && v.Type().AddrSpace == 1
}

// toRewrite reports whether rewrite-statepoints-for-gc will process a call. It supports these two strategies, whose gc pointers are in address space
// 1 (LLVM, "Garbage Collection with LLVM", "The Statepoint Example GC").
func toRewrite(s *ir.Site) bool {
	gc := s.Func.GC
	return s.Kind == ir.StatepointSite && s.Instr.Typ.Kind != ir.TokenKind && (gc == "statepoint-example" || gc == "coreclr")
}

// unnamed counts the gc pointers of a site that are not among the deopt values. A value without a name may have a pair of locations too. That pair
// can be distinguished from a pointer's pair only if the value is null and not relocated ([Frame.fillGC]).
func (l *linter) unnamed(s *ir.Site, recorded map[ir.Value]bool, live []string) int {
	if toRewrite(s) {
		return len(live)
	}
	counted := map[ir.Value]bool{}
	for k, v := range s.GCLive {
		if i, ok := v.(*ir.Instr); ok && i.Op == ir.OpAlloca || recorded[v] {
			continue
		}
		c, constant := v.(*ir.Const)
		if constant && c.Kind == ir.ConstNull && !relocatedAt(s, k) {
			continue
		}
		counted[v] = true
	}
	return len(counted)
}

// relocatedAt reports whether a gc pointer of a site is relocated after it, as a base or a derived pointer. k is the index of the pointer in the
// bundle.
func relocatedAt(s *ir.Site, k int) bool {
	blocks, err := s.Func.Body()
	if err != nil {
		return true
	}
	for _, b := range blocks {
		for _, i := range b.Instrs {
			if i.Call == nil || !strings.HasPrefix(sites.CalledName(i)+".", "llvm.experimental.gc.relocate.") || len(i.Args) != 3 || i.Args[0] != ir.Value(s.Instr) {
				continue
			}
			for _, a := range i.Args[1:] {
				if c, ok := a.(*ir.Const); !ok || c.Int == nil || c.Int.Cmp(big.NewInt(int64(k))) == 0 {
					return true
				}
			}
		}
	}
	return false
}

// clobbered reports operands of a patchpoint that a layout needs, but that the patchpoint's own function does not read after the call: they may be in
// registers that the callee overwrites (seen: llc 14 to 22). The compiler preserves only values that are live after the call.
func (l *linter) clobbered(s *ir.Site, needed map[int]string, live []ir.Value) {
	if s.Kind != ir.PatchPointSite {
		return
	}
	var names []string
	kept := setOf(live)
	for k, v := range s.Live {
		i, instr := v.(*ir.Instr)
		if _, ok := needed[k]; ok && sites.NameOf(v) != "" && !(instr && i.Op == ir.OpAlloca) && !kept[v] {
			names = append(names, sites.NameOf(v))
		}
	}
	if len(names) > 0 {
		l.site(s, Finding{Rule: ClobberedOperand, Severity: LintWarning, Names: names,
			What: fmt.Sprintf("%s %s needed by a layout but not live after the call, so %s may be in registers that the callee overwrites",
				listed(names), is(len(names)), map[bool]string{true: "it", false: "they"}[len(names) == 1]),
			Do: "use a statepoint, or resume at the start of the patchpoint"})
	}
}

// setOf returns values as a set.
func setOf(values []ir.Value) map[ir.Value]bool {
	set := make(map[ir.Value]bool, len(values))
	for _, v := range values {
		set[v] = true
	}
	return set
}
