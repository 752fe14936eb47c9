package unwind

import "reframe/deopt/machine"

// keptRegisters are the general registers that a callee keeps, without the stack pointer, in
// the order of their numbers: what rows of code that was read have rules for.
var keptRegisters = []machine.DWARFReg{3, 6, 12, 13, 14, 15}

// readRow is a row of x86-64 code: the call pushed the return address just below the CFA.
func readRow(at, end machine.Addr, cfa CFARule, rule func(machine.DWARFReg) RegisterRule) *Row {
	row := &Row{Start: at, End: end, CFA: cfa, ReturnAddress: machine.AMD64.PC}
	row.columns.set(machine.AMD64.PC, RegisterRule{Kind: RuleOffset, Offset: -8})
	for _, reg := range keptRegisters {
		if rule := rule(reg); rule.Kind != RuleNone {
			row.columns.set(reg, rule)
		}
	}
	return row
}

// loadedPlus is the expression of eight bytes of memory, at a register plus an offset, with n
// added to them.
func loadedPlus(reg machine.DWARFReg, offset, n int64) Expression {
	return plusRegister(reg, offset, append(appendSLEB([]byte{opDeref, opConsts}, n), opPlus)...)
}
