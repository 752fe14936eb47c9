package unwind

import (
	"slices"

	"reframe/deopt/machine"
)

// Expression is a DWARF expression with the place that it stands in.
type Expression struct {
	code cursor
}

// CFARule says how to compute the canonical frame address: a register plus an
// offset, or an expression.
type CFARule struct {
	Kind       CFAKind
	Register   machine.DWARFReg // CFARegister
	Offset     int64            // CFARegister, bytes
	Expression Expression       // CFAExpression
}

// CFAKind tells the forms of a [CFARule] apart.
type CFAKind uint8

// The forms of a CFA rule.
const (
	CFAUndefined CFAKind = iota // no instruction has defined it
	CFARegister
	CFAExpression
)

// RegisterRule says where the caller's value of one register is (DWARF 5 §6.4.1).
type RegisterRule struct {
	Kind       RuleKind
	Offset     int64            // RuleOffset, RuleValOffset: bytes from the CFA
	Register   machine.DWARFReg // RuleRegister
	Expression Expression       // RuleExpression, RuleValExpression
}

// RuleKind tells the forms of a [RegisterRule] apart.
type RuleKind uint8

// The forms of a register rule.
const (
	RuleNone          RuleKind = iota // the table says nothing: the calling convention does
	RuleUndefined                     // it is not kept
	RuleSameValue                     // it was not changed
	RuleOffset                        // saved at CFA + Offset
	RuleValOffset                     // it is CFA + Offset
	RuleRegister                      // it is in another register
	RuleExpression                    // saved at the address that an expression computes
	RuleValExpression                 // it is what an expression computes
)

// Row is one row of the table that an FDE describes: the rules that hold from
// Start up to End, which is not in it.
type Row struct {
	Start, End    machine.Addr
	CFA           CFARule
	ReturnAddress machine.DWARFReg // the column of the return address
	ArgsSize      uint64           // bytes of arguments pushed, where the code says (DW_CFA_GNU_args_size)

	columns columns
}

// Rule returns the rule of a register, of kind [RuleNone] where there is none.
func (r *Row) Rule(reg machine.DWARFReg) RegisterRule { return r.columns.get(reg) }

// Columns lists the registers that have a rule, in the order of their numbers.
func (r *Row) Columns() []machine.DWARFReg {
	var regs []machine.DWARFReg
	for _, c := range r.columns {
		if c.rule.Kind != RuleNone {
			regs = append(regs, c.reg)
		}
	}
	slices.Sort(regs)
	return regs
}

// maxColumns bounds the registers of one row. An architecture has fewer that
// its callees keep.
const maxColumns = 128

// columns are the register rules of a row. They are few: a search beats a map.
type columns []column

type column struct {
	reg  machine.DWARFReg
	rule RegisterRule
}

func (c columns) get(reg machine.DWARFReg) RegisterRule {
	for _, x := range c {
		if x.reg == reg {
			return x.rule
		}
	}
	return RegisterRule{}
}

// set gives reg a rule, and says whether there was room.
func (c *columns) set(reg machine.DWARFReg, rule RegisterRule) bool {
	for i, x := range *c {
		if x.reg == reg {
			(*c)[i].rule = rule
			return true
		}
	}
	if len(*c) == maxColumns {
		return false
	}
	*c = append(*c, column{reg, rule})
	return true
}
