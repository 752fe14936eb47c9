package lint

import (
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/vmlayout"
)

// readByVM runs layouts of virtual machines for a site, and reports whether one of them returned frames.
func (l *linter) readByVM(s *ir.Site) bool {
	if len(l.vms) == 0 || len(s.Live) == 0 {
		return false
	}
	site := vmlayout.OfModule(s)
	r := vmlayout.First(l.vms, site)
	l.offered++
	if r.Layout == nil {
		return false
	}
	l.accepted++
	var wrong *vmlayout.Error
	if errors.As(r.Err, &wrong) && wrong.NeedsTarget {
		l.unread(r.Layout)
		return true
	}
	if r.Err != nil {
		l.vm(s, mistake{layout: r.Layout.Name, of: vmlayout.PositionOf(r.Err)}, fmt.Sprintf("%s does not read its operands: %v", r.Layout.Name, r.Err))
		return true
	}
	seen := map[mistake]int{}
	for _, m := range r.Shape.Misfits(site) {
		key := mistake{layout: r.Layout.Name, fits: true, kind: m.Kind, of: m.Of}
		seen[key]++
		key.nth = seen[key]
		l.vm(s, key, fmt.Sprintf("%s: %s", r.Layout.Name, m.Text))
	}
	return true
}

// mistake identifies a mistake in a layout, or in the operands that it reads, at any site.
type mistake struct {
	layout string
	fits   bool // the layout returned frames; kind and nth are set
	kind   vmlayout.MisfitKind
	of     string // the position of an error in the layout, or [vmlayout.Misfit.Of]
	nth    int    // number among the equal mistakes of a site
}

// vm adds a finding about a layout of a virtual machine.
func (l *linter) vm(s *ir.Site, key mistake, what string) {
	l.site(s, Finding{Rule: VMLayout, Severity: CannotResume, What: what, Do: "correct the layout, or the operands that the compiler writes", key: key})
}

// group merges equal findings of several sites about a mistake in a layout. It reports the layouts if they return frames for no site at all.
func (l *linter) group() {
	first, kept := map[mistake]int{}, l.out.Findings[:0]
	for _, f := range l.out.Findings {
		if at, again := first[f.key]; again && f.key != (mistake{}) {
			kept[at].More++
			continue
		}
		first[f.key] = len(kept)
		kept = append(kept, f)
	}
	l.out.Findings = kept
	if l.accepted > 0 || l.offered == 0 {
		return
	}
	for _, by := range l.vms {
		if !by.MakesFrames() {
			continue
		}
		f := Finding{Rule: VMLayout, Severity: CannotResume, File: by.Name, More: l.offered - 1, What: "frames(site) returned None for each site of the modules",
			Do: "return the frames, or lint the modules that the layout is for"}
		_, _ = fmt.Sscanf(by.Defined(), "%d:", &f.Line) // Line stays 0 for a layout without a position
		l.out.Findings = append(l.out.Findings, f)
	}
}

// unread reports, once for each layout, that the layout makes frames from memory, which only a process has.
func (l *linter) unread(by *vmlayout.Layout) {
	is := Finding{Rule: VMLayout, Severity: LintWarning, File: by.Name, What: "it reads memory to make frames, so lint cannot check the sites that it is for",
		Do: "check a process: reframe maps --check --layout " + by.Name + " PID"}
	if !slices.ContainsFunc(l.out.Findings, func(f Finding) bool { return f.File == is.File && f.What == is.What }) {
		l.out.Findings = append(l.out.Findings, is)
	}
}
