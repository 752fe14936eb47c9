package unwind

import (
	"errors"
	"slices"

	"reframe/deopt/machine"
)

// Call frame instructions (DWARF 5 §7.24, table 7.29; GNU_* from the Linux
// Standard Base, Core 5.0 §10.5.1.1). The first three hold an operand in
// their low six bits.
const (
	cfaAdvanceLoc = 0x40
	cfaOffset     = 0x80
	cfaRestore    = 0xc0
	cfaOperand    = 0x3f

	cfaNop              = 0x00
	cfaSetLoc           = 0x01
	cfaAdvanceLoc1      = 0x02
	cfaAdvanceLoc2      = 0x03
	cfaAdvanceLoc4      = 0x04
	cfaOffsetExtended   = 0x05
	cfaRestoreExtended  = 0x06
	cfaUndefined        = 0x07
	cfaSameValue        = 0x08
	cfaRegister         = 0x09
	cfaRememberState    = 0x0a
	cfaRestoreState     = 0x0b
	cfaDefCFA           = 0x0c
	cfaDefCFARegister   = 0x0d
	cfaDefCFAOffset     = 0x0e
	cfaDefCFAExpression = 0x0f
	cfaExpression       = 0x10
	cfaOffsetExtendedSF = 0x11
	cfaDefCFASF         = 0x12
	cfaDefCFAOffsetSF   = 0x13
	cfaValOffset        = 0x14
	cfaValOffsetSF      = 0x15
	cfaValExpression    = 0x16

	cfaGNUArgsSize               = 0x2e
	cfaGNUNegativeOffsetExtended = 0x2f
)

// maxRemembered bounds the stack of DW_CFA_remember_state. Compilers nest one deep.
const maxRemembered = 64

// state is what call frame instructions change.
type state struct {
	cfa     CFARule
	columns columns
}

func (s state) clone() state { return state{s.cfa, slices.Clone(s.columns)} }

// program runs the call frame instructions of one FDE, up to one pc.
type program struct {
	state
	cie        *cie
	bases      bases
	initial    state // after the CIE's instructions: what DW_CFA_restore goes back to
	inCIE      bool
	remembered []state
	args       uint64
	loc        machine.Addr // where the row that is being built starts
}

// Rules returns the row that holds at pc, or a [*FormatError]. pc must lie in the FDE.
func (f *FDE) Rules(pc machine.Addr) (*Row, error) {
	if pc < f.Start || pc >= f.End {
		return nil, ErrNoFDE
	}
	p := program{cie: f.cie, bases: f.bases, loc: f.Start, inCIE: true}
	c := f.cie.initial
	for c.more() {
		p.step(&c)
	}
	if c.err != nil {
		return nil, c.err
	}
	p.initial, p.inCIE = p.state.clone(), false
	row := Row{Start: f.Start, End: f.End, ReturnAddress: f.cie.returnColumn}
	c = f.program
	for c.more() {
		before := p.loc
		instruction := c
		next, advanced := p.advance(&c)
		if !advanced {
			c = instruction
			p.step(&c)
			continue
		}
		if next < before {
			c.failf("the code location goes back from %v to %v", before, next)
			break
		}
		if next > pc {
			row.End = min(next, f.End)
			break
		}
		p.loc = next
	}
	if c.err != nil {
		return nil, c.err
	}
	row.Start, row.CFA, row.columns, row.ArgsSize = p.loc, p.cfa, p.columns, p.args
	return &row, nil
}

// advance reads an instruction that starts a new row, and returns where that
// row starts; false for any other instruction.
func (p *program) advance(c *cursor) (machine.Addr, bool) {
	op := c.u8()
	var delta uint64
	switch {
	case op&^cfaOperand == cfaAdvanceLoc:
		delta = uint64(op & cfaOperand)
	case op == cfaSetLoc:
		return c.pointer(p.cie.encoding, p.bases), true
	case op == cfaAdvanceLoc1:
		delta = uint64(c.u8())
	case op == cfaAdvanceLoc2:
		delta = uint64(c.u16())
	case op == cfaAdvanceLoc4:
		delta = uint64(c.u32())
	default:
		return 0, false
	}
	if p.cie.codeAlign > 1<<31 {
		c.failf("code alignment factor %#x", p.cie.codeAlign)
	}
	return p.loc + machine.Addr(delta*p.cie.codeAlign), true
}

// step runs one instruction that changes the row (DWARF 5 §6.4.2).
func (p *program) step(c *cursor) {
	at := *c
	op := c.u8()
	switch op &^ cfaOperand {
	case cfaOffset:
		p.offset(c, machine.DWARFReg(op&cfaOperand), int64(c.unsigned()), RuleOffset)
		return
	case cfaRestore:
		p.restore(&at, c, machine.DWARFReg(op&cfaOperand))
		return
	}
	switch op {
	case cfaNop:
	case cfaGNUArgsSize:
		p.args = c.uleb()
	case cfaRememberState:
		if len(p.remembered) == maxRemembered {
			c.failf("more than %d remembered states", maxRemembered)
			return
		}
		p.remembered = append(p.remembered, p.state.clone())
	case cfaRestoreState:
		last := len(p.remembered) - 1
		if last < 0 {
			c.fail(errors.New("a state is restored that was not remembered"))
			return
		}
		p.state, p.remembered = p.remembered[last], p.remembered[:last]
	case cfaDefCFA, cfaDefCFASF, cfaDefCFARegister, cfaDefCFAOffset, cfaDefCFAOffsetSF, cfaDefCFAExpression:
		p.define(c, op)
	case cfaUndefined:
		p.set(c, c.register(), RegisterRule{Kind: RuleUndefined})
	case cfaSameValue:
		p.set(c, c.register(), RegisterRule{Kind: RuleSameValue})
	case cfaRegister:
		reg := c.register()
		p.set(c, reg, RegisterRule{Kind: RuleRegister, Register: c.register()})
	case cfaOffsetExtended:
		reg := c.register()
		p.offset(c, reg, int64(c.unsigned()), RuleOffset)
	case cfaOffsetExtendedSF:
		reg := c.register()
		p.offset(c, reg, c.sleb(), RuleOffset)
	case cfaGNUNegativeOffsetExtended:
		reg := c.register()
		p.offset(c, reg, -int64(c.unsigned()), RuleOffset)
	case cfaValOffset:
		reg := c.register()
		p.offset(c, reg, int64(c.unsigned()), RuleValOffset)
	case cfaValOffsetSF:
		reg := c.register()
		p.offset(c, reg, c.sleb(), RuleValOffset)
	case cfaExpression:
		reg := c.register()
		p.set(c, reg, RegisterRule{Kind: RuleExpression, Expression: c.expression()})
	case cfaValExpression:
		reg := c.register()
		p.set(c, reg, RegisterRule{Kind: RuleValExpression, Expression: c.expression()})
	case cfaRestoreExtended:
		p.restore(&at, c, c.register())
	default:
		at.failf("call frame instruction %#02x", op)
		c.err = at.err
	}
}

// define runs an instruction that defines the CFA (DWARF 5 §6.4.2.2).
func (p *program) define(c *cursor, op uint8) {
	if p.cfa.Kind != CFARegister && (op == cfaDefCFARegister || op == cfaDefCFAOffset || op == cfaDefCFAOffsetSF) {
		c.fail(errors.New("part of the CFA rule changes, but the rule is no register and offset"))
		return
	}
	switch op {
	case cfaDefCFA:
		p.cfa = CFARule{Kind: CFARegister, Register: c.register(), Offset: int64(c.unsigned())}
	case cfaDefCFASF:
		p.cfa = CFARule{Kind: CFARegister, Register: c.register(), Offset: c.times(c.sleb(), p.cie.dataAlign)}
	case cfaDefCFARegister:
		p.cfa.Register = c.register()
	case cfaDefCFAOffset:
		p.cfa.Offset = int64(c.unsigned())
	case cfaDefCFAOffsetSF:
		p.cfa.Offset = c.times(c.sleb(), p.cie.dataAlign)
	case cfaDefCFAExpression:
		p.cfa = CFARule{Kind: CFAExpression, Expression: c.expression()}
	}
}

// offset sets a rule whose operand is factored by the data alignment.
func (p *program) offset(c *cursor, reg machine.DWARFReg, factored int64, kind RuleKind) {
	p.set(c, reg, RegisterRule{Kind: kind, Offset: c.times(factored, p.cie.dataAlign)})
}

// restore gives reg the rule that the CIE gave it.
func (p *program) restore(at, c *cursor, reg machine.DWARFReg) {
	if p.inCIE {
		at.fail(errors.New("a CIE restores a rule that it should itself define"))
		c.err = at.err
		return
	}
	p.set(c, reg, p.initial.columns.get(reg))
}

func (p *program) set(c *cursor, reg machine.DWARFReg, rule RegisterRule) {
	if c.err == nil && !p.columns.set(reg, rule) {
		c.failf("more than %d registers", maxColumns)
	}
}

// unsigned reads an unsigned operand that counts as a signed one from then on.
func (c *cursor) unsigned() uint64 {
	v := c.uleb()
	if v > 1<<62 {
		c.failf("offset %#x", v)
		return 0
	}
	return v
}

// expression reads the block that a DWARF expression is in.
func (c *cursor) expression() Expression { return Expression{c.sub(c.uleb())} }
