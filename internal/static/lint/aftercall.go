package lint

import (
	"fmt"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
)

// afterCall reports a stackmap right after a call that records values computed from the call's result. The instructions that compute these values lie
// between the call and the stackmap, so a frame that waits for the call has no record. Copies are followed ([matcher.afterCall]).
func (l *linter) afterCall(s *ir.Site) {
	call := sites.CallBefore(s)
	if call == nil || call.Block != s.Instr.Block {
		return
	}
	if of := sites.ComputedOfCall(s, call); of != nil {
		l.between(s, call, of)
	}
}

func (l *linter) between(s *ir.Site, call, of *ir.Instr) {
	l.site(s, Finding{Rule: AfterCall, Severity: LintWarning, Names: []string{of.Ref()},
		What: fmt.Sprintf("%s is computed from the result of the call of line %d, usually with more than a copy: then a frame that waits for that call has no record", of.Ref(), call.Line),
		Do:   "record the result of the call and compute after the stackmap, or give the call a deopt bundle"})
}
