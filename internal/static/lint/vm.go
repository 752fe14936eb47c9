package lint

import (
	"fmt"

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
