package unwind

import (
	"example.com/reframe/deopt/unwind/cfi"
	"example.com/reframe/internal/machine"
)

// keptRegisters lists the callee-saved general registers except the stack pointer, by number. Rows read from code have rules for them.
var keptRegisters = []machine.DWARFReg{3, 6, 12, 13, 14, 15}

// readRow makes a row for x86-64 code, where a call pushes the return address just below the CFA.
func readRow(at, end machine.Addr, cfa cfi.CFARule, rule func(machine.DWARFReg) cfi.RegisterRule) *cfi.Row {
	row := &cfi.Row{Range: machine.Range{Start: at, End: end}, CFA: cfa, ReturnAddress: machine.AMD64.PC}
	row.SetRule(machine.AMD64.PC, cfi.RegisterRule{Kind: cfi.RuleOffset, Offset: -8})
	for _, reg := range keptRegisters {
		if rule := rule(reg); rule.Kind != cfi.RuleNone {
			row.SetRule(reg, rule)
		}
	}
	return row
}
