package cfi

import (
	"bytes"
	"errors"
	"slices"
	"sync"

	"example.com/reframe/internal/machine"
)

// Call frame instructions (DWARF 5 §7.24, table 7.29; GNU_* from the Linux Standard Base, Core 5.0 §10.5.1.1; AARCH64_* from "DWARF for the Arm
// 64-bit Architecture", section "Call frame instructions"). The first three have an operand in their low six bits.
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

	cfaAArch64NegateRAStateWithPC = 0x2c // for the feature FEAT_PAuth_LR
	cfaAArch64NegateRAState       = 0x2d

	cfaGNUArgsSize               = 0x2e
	cfaGNUNegativeOffsetExtended = 0x2f
)

// Limits on the work of one program.
const (
	// maxRemembered bounds the stack of DW_CFA_remember_state. Compilers use a depth of one.
	maxRemembered = 64
	// maxInstructions is about fifty times the instructions of the largest functions of libLLVM.
	maxInstructions = 100_000
)

// state is the state that call frame instructions change.
type state struct {
	cfa     CFARule
	columns columns
	signed  bool
}

// remembered is a state saved by DW_CFA_remember_state. Its columns are in program.saved, from index from up to the first column of the next
// state.
type remembered struct {
	cfa    CFARule
	signed bool
	from   int
}

// program runs the call frame instructions of one CIE or FDE.
type program struct {
	state
	cie        *cie
	inCIE      bool
	bases      bases
	remembered []remembered
	saved      columns
	args       uint64
	loc        machine.Addr // start of the row that is being built
	steps      int
}

// programs is a pool of used programs. Reusing their buffers leaves the returned row as the only allocation of a lookup.
var programs = sync.Pool{New: func() any { return new(program) }}

// run executes the instructions of a CIE.
func (e *cie) run(c *cursor) error {
	p := program{cie: e, inCIE: true}
	for c.more() {
		at := c.pos
		p.step(c, at, p.opcode(c))
	}
	e.initial = state{p.cfa, p.columns.clone(), p.signed}
	return c.err
}

// Rules returns the row for pc, or a [*FormatError]. pc must be in the FDE.
func (f *FDE) Rules(pc machine.Addr) (*Row, error) {
	if !f.Contains(pc) {
		return nil, ErrNoFDE
	}
	p := f.begin()
	defer programs.Put(p)
	end := f.End
	c := f.program
	for c.more() {
		at := c.pos
		op := p.opcode(&c)
		next, advanced := p.advance(&c, op)
		if !advanced {
			p.step(&c, at, op)
			continue
		}
		if next < p.loc {
			c.failf("the code location goes back from %v to %v", p.loc, next)
			break
		}
		if next > pc {
			end = min(next, f.End)
			break
		}
		p.loc = next
	}
	if c.err != nil {
		return nil, c.err
	}
	return &Row{Range: machine.Range{Start: p.loc, End: end}, CFA: p.cfa, ReturnAddress: f.cie.returnColumn,
		ArgsSize: p.args, Signed: p.signed, columns: p.columns.clone()}, nil
}

// begin returns a program from the pool for f's instructions, with the initial row of f's CIE.
func (f *FDE) begin() *program {
	p := programs.Get().(*program)
	initial := f.cie.initial
	initial.columns = append(p.columns[:0], initial.columns...)
	*p = program{state: initial, cie: f.cie, bases: f.bases, loc: f.Start, remembered: p.remembered[:0], saved: p.saved[:0]}
	return p
}

// Unnamed returns the registers in regs that have a rule in no row of f; none if f is malformed.
func (f *FDE) Unnamed(regs []machine.DWARFReg) []machine.DWARFReg {
	p := f.begin()
	defer programs.Put(p)
	drop := func() {
		regs = slices.DeleteFunc(regs, func(reg machine.DWARFReg) bool { _, is := p.columns.find(reg); return is })
	}
	regs = slices.Clone(regs)
	drop()
	for c := f.program; len(regs) > 0 && c.more(); drop() {
		at := c.pos
		op := p.opcode(&c)
		if _, advanced := p.advance(&c, op); !advanced {
			p.step(&c, at, op)
		}
		if c.err != nil {
			return nil
		}
	}
	return regs
}

// opcode reads the first byte of an instruction.
func (p *program) opcode(c *cursor) uint8 {
	if p.steps++; p.steps > maxInstructions {
		c.failf("more than %d instructions", maxInstructions)
	}
	return c.u8()
}

// advance returns the start of the row that the instruction op begins, or false for any other instruction.
func (p *program) advance(c *cursor, op uint8) (machine.Addr, bool) {
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
		c.failf("code alignment factor %#x is too large", p.cie.codeAlign)
	}
	return p.loc + machine.Addr(delta*p.cie.codeAlign), true
}

// step executes the instruction op, which starts at c's position at and changes the row (DWARF 5 §6.4.2).
func (p *program) step(c *cursor, at int, op uint8) {
	switch op &^ cfaOperand {
	case cfaOffset:
		p.offset(c, machine.DWARFReg(op&cfaOperand), int64(c.unsigned()), RuleOffset)
		return
	case cfaRestore:
		p.restore(c, at, machine.DWARFReg(op&cfaOperand))
		return
	}
	switch op {
	case cfaNop:
	case cfaGNUArgsSize:
		p.args = c.uleb()
	case cfaRememberState:
		p.remember(c)
	case cfaRestoreState:
		p.recall(c)
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
		p.restore(c, at, c.register())
	case cfaAArch64NegateRAState, cfaAArch64NegateRAStateWithPC:
		if !p.cie.signs {
			c.failAt(at, "unsupported call frame instruction %#02x", op) // the same number is SPARC's DW_CFA_GNU_window_save
		}
		p.signed = !p.signed
	default:
		c.failAt(at, "unsupported call frame instruction %#02x", op)
	}
}

// remember saves the state of all rules (DW_CFA_remember_state).
func (p *program) remember(c *cursor) {
	if len(p.remembered) == maxRemembered {
		c.failf("more than %d remembered states", maxRemembered)
		return
	}
	p.remembered = append(p.remembered, remembered{p.cfa, p.signed, len(p.saved)})
	p.saved = append(p.saved, p.columns...)
}

// recall restores the state that was saved last (DW_CFA_restore_state).
func (p *program) recall(c *cursor) {
	last := len(p.remembered) - 1
	if last < 0 {
		c.fail(errors.New("DW_CFA_restore_state without DW_CFA_remember_state"))
		return
	}
	r := p.remembered[last]
	p.cfa, p.signed = r.cfa, r.signed
	p.columns = append(p.columns[:0], p.saved[r.from:]...)
	p.remembered, p.saved = p.remembered[:last], p.saved[:r.from]
}

// define executes an instruction that defines the CFA (DWARF 5 §6.4.2.2).
func (p *program) define(c *cursor, op uint8) {
	if p.cfa.Kind == CFAUndefined && op == cfaDefCFARegister {
		// GNU as for RISC-V starts with this instruction: it means an offset of zero.
		p.cfa.Kind = CFARegister
	}
	if p.cfa.Kind != CFARegister && (op == cfaDefCFARegister || op == cfaDefCFAOffset || op == cfaDefCFAOffsetSF) {
		c.fail(errors.New("an instruction changes a part of the CFA rule, which must be a register plus an offset"))
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

// restore sets the rule of reg to that of the CIE. at is the position of the instruction.
func (p *program) restore(c *cursor, at int, reg machine.DWARFReg) {
	if p.inCIE {
		c.failAt(at, "DW_CFA_restore in a CIE")
		return
	}
	p.set(c, reg, p.cie.initial.columns.get(reg))
}

func (p *program) set(c *cursor, reg machine.DWARFReg, rule RegisterRule) {
	if c.err == nil && !p.columns.set(reg, rule) {
		c.failf("more than %d registers", maxColumns)
	}
}

// unsigned reads an unsigned operand that must also fit a signed number.
func (c *cursor) unsigned() uint64 {
	v := c.uleb()
	if v > 1<<62 {
		c.failf("offset %#x is too large", v)
		return 0
	}
	return v
}

// expression reads the block of a DWARF expression.
func (c *cursor) expression() Expression {
	code := c.sub(c.uleb())
	return Expression{&operations{code.section, code.offset, code.order, bytes.Clone(code.data)}}
}
