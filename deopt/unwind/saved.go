package unwind

import (
	"fmt"

	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// SavedAt returns the address at which an inner frame has saved a register of frame n of a stack, by the rules with which the stack was unwound. The
// content of the address becomes the register's value when the frames below n return.
func (s *Stack) SavedAt(n int, reg machine.DWARFReg, arch *machine.Arch) (machine.Addr, error) {
	for k := n - 1; k >= 0; k-- {
		f := &s.Frames[k]
		if f.left == nil || f.left.signal || f.NoCFA != "" {
			break
		}
		rule := f.left.row.Rule(reg)
		switch {
		case rule.Kind == cfi.RuleOffset:
			return f.CFA + machine.Addr(rule.Offset), nil
		case rule.Kind == cfi.RuleSameValue, rule.Kind == cfi.RuleNone && !f.left.partial && arch.Kept(reg) > 0:
		default:
			return 0, fmt.Errorf("the unwind information of frame #%d does not show where %s is saved", k, arch.RegisterName(reg))
		}
	}
	return 0, fmt.Errorf("no inner frame is known to save %s", arch.RegisterName(reg))
}
