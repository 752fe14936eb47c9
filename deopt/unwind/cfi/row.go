package cfi

import (
	"encoding/binary"
	"iter"
	"slices"

	"example.com/reframe/internal/machine"
)

// Expression is a DWARF expression. It has its own copy of its bytes.
type Expression struct {
	ops *operations
}

// operations holds the bytes of an expression, and their position in a section.
type operations struct {
	section string
	offset  int64
	order   binary.ByteOrder
	code    []byte
}

// CFARule describes how to compute the canonical frame address: a register plus an offset, or an expression.
type CFARule struct {
	Kind       CFAKind
	Register   machine.DWARFReg // for CFARegister
	Offset     int64            // for CFARegister: in bytes
	Expression Expression       // for CFAExpression
}

// CFAKind is the form of a [CFARule].
type CFAKind uint8

// The forms of a CFA rule.
const (
	CFAUndefined CFAKind = iota // no instruction has defined the CFA
	CFARegister
	CFAExpression
)

// RegisterRule describes where the caller's value of one register is (DWARF 5 §6.4.1).
type RegisterRule struct {
	Kind       RuleKind
	Register   machine.DWARFReg // for RuleRegister
	Offset     int64            // for RuleOffset and RuleValOffset: bytes from the CFA
	Expression Expression       // for RuleExpression and RuleValExpression
}

// RuleKind is the form of a [RegisterRule].
type RuleKind uint8

// The forms of a register rule.
const (
	RuleNone          RuleKind = iota // the table has no rule: the calling convention applies
	RuleUndefined                     // not preserved
	RuleSameValue                     // not changed
	RuleOffset                        // saved at CFA + Offset
	RuleValOffset                     // the value is CFA + Offset
	RuleRegister                      // in another register
	RuleExpression                    // saved at the address that an expression computes
	RuleValExpression                 // the value is the result of an expression
)

// Row is one row of an FDE's table: the rules for a range of code.
type Row struct {
	machine.Range
	CFA           CFARule
	ReturnAddress machine.DWARFReg // the column of the return address
	ArgsSize      uint64           // bytes of pushed arguments, if the code gives them (DW_CFA_GNU_args_size)

	// Signed means that the saved return address is signed (aarch64's pointer authentication; DW_CFA_AARCH64_negate_ra_state).
	Signed bool

	columns columns
}

// Rule returns the rule of a register; its kind is [RuleNone] if the row has none.
func (r *Row) Rule(reg machine.DWARFReg) RegisterRule { return r.columns.get(reg) }

// SetRule sets the rule of a register, and reports whether the row had room.
func (r *Row) SetRule(reg machine.DWARFReg, rule RegisterRule) bool { return r.columns.set(reg, rule) }

// Keep removes the rules of all other registers.
func (r *Row) Keep(regs ...machine.DWARFReg) {
	r.columns = slices.DeleteFunc(r.columns, func(c column) bool { return !slices.Contains(regs, c.reg) })
}

// Rules yields the registers that have a rule, by register number.
func (r *Row) Rules() iter.Seq2[machine.DWARFReg, RegisterRule] {
	return func(yield func(machine.DWARFReg, RegisterRule) bool) {
		for _, c := range r.columns {
			if c.rule.Kind != RuleNone && !yield(c.reg, c.rule) {
				return
			}
		}
	}
}

// Columns returns the registers that have a rule, by register number.
func (r *Row) Columns() []machine.DWARFReg {
	var regs []machine.DWARFReg
	for reg := range r.Rules() {
		regs = append(regs, reg)
	}
	return regs
}

// maxColumns bounds the registers of one row. No architecture has that many callee-saved registers.
const maxColumns = 128

// columns holds the register rules of a row, by register number. There are few, so a binary search is faster than a map.
type columns []column

type column struct {
	reg  machine.DWARFReg
	rule RegisterRule
}

// find returns the index of the column of reg, or the index at which to insert it.
func (c columns) find(reg machine.DWARFReg) (at int, found bool) {
	high := len(c)
	for at < high {
		middle := (at + high) / 2
		if c[middle].reg < reg {
			at = middle + 1
		} else {
			high = middle
		}
	}
	return at, at < len(c) && c[at].reg == reg
}

func (c columns) get(reg machine.DWARFReg) RegisterRule {
	if at, found := c.find(reg); found {
		return c[at].rule
	}
	return RegisterRule{}
}

// set sets the rule of reg, and reports whether there was room.
func (c *columns) set(reg machine.DWARFReg, rule RegisterRule) bool {
	at, found := c.find(reg)
	switch {
	case found:
		(*c)[at].rule = rule
	case len(*c) == maxColumns:
		return false
	case at == len(*c):
		*c = append(*c, column{reg, rule})
	default:
		*c = slices.Insert(*c, at, column{reg, rule})
	}
	return true
}

// clone copies the columns that have a rule.
func (c columns) clone() columns {
	out := make(columns, 0, len(c))
	for _, x := range c {
		if x.rule.Kind != RuleNone {
			out = append(out, x)
		}
	}
	return out
}
