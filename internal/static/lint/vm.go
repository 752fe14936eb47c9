package lint

import (
	"errors"
	"fmt"
	"slices"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/vmlayout"
)

// readByVM runs layouts of virtual machines for a site, and reports whether one of them is for it.
func (l *linter) readByVM(s *ir.Site) bool {
	if len(l.vms) == 0 || len(s.Live) == 0 {
		return false
	}
	site := vmlayout.OfModule(s)
	r := vmlayout.First(l.vms, site)
	if r.Layout == nil {
		return false
	}
	var wrong *vmlayout.Error
	if errors.As(r.Err, &wrong) && wrong.NeedsTarget {
		l.unread(r.Layout)
		return true
	}
	if r.Err != nil {
		l.site(s, Finding{Rule: VMLayout, Severity: CannotResume, What: fmt.Sprintf("%s does not read its operands: %v", r.Layout.Name, r.Err),
			Do: "correct the layout, or the operands that the compiler writes"})
		return true
	}
	for _, what := range r.Shape.Misfits(site) {
		l.site(s, Finding{Rule: VMLayout, Severity: CannotResume, What: fmt.Sprintf("%s: %s", r.Layout.Name, what),
			Do: "correct the layout, or the operands that the compiler writes"})
	}
	return true
}

// unread reports, once for each layout, that the layout makes frames from memory, which only a process has.
func (l *linter) unread(by *vmlayout.Layout) {
	is := Finding{Rule: VMLayout, Severity: LintWarning, File: by.Name, What: "it reads memory to make frames, so lint cannot check the sites that it is for",
		Do: "check a process: reframe maps --check --layout " + by.Name + " PID"}
	if !slices.ContainsFunc(l.out.Findings, func(f Finding) bool { return f.File == is.File && f.What == is.What }) {
		l.out.Findings = append(l.out.Findings, is)
	}
}
