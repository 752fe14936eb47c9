package lint

import (
	"fmt"

	"reframe/deopt/ir"
	"reframe/deopt/sites"
)

// behindCall reports a stackmap right behind a call that records what is computed of the call's result: instructions for that
// stand between the two, so that a frame which waits for the call has no record. Copies are followed ([matcher.behindCall]).
func (l *linter) behindCall(s *ir.Site) {
	call := sites.CallBefore(s)
	if call == nil || call.Block != s.Instr.Block {
		return
	}
	made := map[ir.Value]bool{call: false} // what comes of the result, and whether it takes an instruction
	for _, i := range s.Instr.Block.Instrs[call.Index+1 : s.Instr.Index] {
		for _, v := range i.Args {
			if work, of := made[v]; of {
				made[i] = made[i] || work || !copied(i)
			}
		}
	}
	for _, v := range s.Live {
		if i, ok := v.(*ir.Instr); ok && made[v] {
			l.between(s, call, i)
			return
		}
	}
}

func (l *linter) between(s *ir.Site, call, of *ir.Instr) {
	l.site(s, Finding{Rule: BehindCall, Severity: LintWarning, Names: []string{of.Ref()},
		What: fmt.Sprintf("%s takes more than a copy of what the call of line %d returns, as a rule: a frame that waits for that call has no record then", of.Ref(), call.Line),
		Do:   "record what the call returns, and compute behind the stackmap, or give the call a deopt bundle"})
}

// copied says whether the result of an instruction is its operand, or a part of it.
func copied(i *ir.Instr) bool {
	switch i.Op {
	case ir.OpExtractValue, ir.OpBitCast, ir.OpTrunc, ir.OpIntToPtr, ir.OpPtrToInt, ir.OpAddrSpaceCast, ir.OpFreeze:
		return true
	}
	return false
}
