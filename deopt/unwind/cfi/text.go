package cfi

import (
	"fmt"
	"strings"

	"example.com/reframe/internal/machine"
)

// Text formats the rule with register names: rsp+16, or the operations of an expression.
func (r CFARule) Text(arch *machine.Arch) string {
	switch r.Kind {
	case CFARegister:
		return fmt.Sprintf("%s%+d", arch.RegisterName(r.Register), r.Offset)
	case CFAExpression:
		return r.Expression.Text(arch)
	}
	return "undefined"
}

// Text describes the place of the caller's value of reg: "rbx at [CFA-16]", "rsp = CFA+0".
func (r RegisterRule) Text(arch *machine.Arch, reg machine.DWARFReg) string {
	name := arch.RegisterName(reg)
	switch r.Kind {
	case RuleUndefined:
		return name + " not kept"
	case RuleSameValue:
		return name + " unchanged"
	case RuleOffset:
		return fmt.Sprintf("%s at [CFA%+d]", name, r.Offset)
	case RuleValOffset:
		return fmt.Sprintf("%s = CFA%+d", name, r.Offset)
	case RuleRegister:
		return name + " in " + arch.RegisterName(r.Register)
	case RuleExpression:
		return fmt.Sprintf("%s at [%s]", name, r.Expression.Text(arch))
	case RuleValExpression:
		return fmt.Sprintf("%s = %s", name, r.Expression.Text(arch))
	}
	return name + " by the calling convention"
}

// Text formats an expression as readelf does: "DW_OP_breg7 (rsp): 8; DW_OP_deref". The text of a malformed expression ends with the error, and
// that of an expression that is too long with "...".
func (e Expression) Text(arch *machine.Arch) string {
	if e.ops == nil {
		return ""
	}
	order := e.ops.order
	if order == nil { // an expression that was not read from a section has no byte order, and needs none
		order = arch.Order
	}
	c := cursor{section: e.ops.section, offset: e.ops.offset, order: order, data: e.ops.code}
	var out []string
	for c.more() {
		if len(out) == maxSteps {
			out = append(out, "...")
			break
		}
		text := c.operation(arch)
		if c.err != nil {
			text = "(" + c.err.Error() + ")"
		}
		out = append(out, text)
	}
	return strings.Join(out, "; ")
}

// operation formats the next operation.
func (c *cursor) operation(arch *machine.Arch) string {
	op := c.u8()
	switch {
	case op >= opLit0 && op <= opLit31:
		return fmt.Sprintf("DW_OP_lit%d", op-opLit0)
	case op >= opBreg0 && op <= opBreg31:
		return fmt.Sprintf("DW_OP_breg%d (%s): %d", op-opBreg0, arch.RegisterName(machine.DWARFReg(op-opBreg0)), c.sleb())
	case op == opBregx:
		reg := c.register()
		return fmt.Sprintf("DW_OP_bregx: %d (%s) %d", reg, arch.RegisterName(reg), c.sleb())
	}
	name, known := operationNames[op]
	if !known {
		c.pos--
		c.failf("operation %#02x is not allowed in call frame information", op)
		return ""
	}
	switch op {
	case opAddr:
		return fmt.Sprintf("%s: %x", name, c.u64())
	case opConst8u:
		return fmt.Sprintf("%s: %d", name, c.u64())
	case opConst8s:
		return fmt.Sprintf("%s: %d", name, int64(c.u64()))
	case opConst1u, opPick, opDerefSize:
		return fmt.Sprintf("%s: %d", name, c.u8())
	case opConst1s:
		return fmt.Sprintf("%s: %d", name, int8(c.u8()))
	case opConst2u:
		return fmt.Sprintf("%s: %d", name, c.u16())
	case opConst2s, opSkip, opBra:
		return fmt.Sprintf("%s: %d", name, int16(c.u16()))
	case opConst4u:
		return fmt.Sprintf("%s: %d", name, c.u32())
	case opConst4s:
		return fmt.Sprintf("%s: %d", name, int32(c.u32()))
	case opConstu, opPlusUconst:
		return fmt.Sprintf("%s: %d", name, c.uleb())
	case opConsts:
		return fmt.Sprintf("%s: %d", name, c.sleb())
	}
	return name
}

// operationNames holds the names of DWARF 5 §7.7.1, table 7.9.
var operationNames = map[uint8]string{
	opAddr: "DW_OP_addr", opDeref: "DW_OP_deref", opConst1u: "DW_OP_const1u", opConst1s: "DW_OP_const1s",
	opConst2u: "DW_OP_const2u", opConst2s: "DW_OP_const2s", opConst4u: "DW_OP_const4u", opConst4s: "DW_OP_const4s",
	opConst8u: "DW_OP_const8u", opConst8s: "DW_OP_const8s", opConstu: "DW_OP_constu", opConsts: "DW_OP_consts",
	opDup: "DW_OP_dup", opDrop: "DW_OP_drop", opOver: "DW_OP_over", opPick: "DW_OP_pick", opSwap: "DW_OP_swap",
	opRot: "DW_OP_rot", opAbs: "DW_OP_abs", opAnd: "DW_OP_and", opDiv: "DW_OP_div", opMinus: "DW_OP_minus",
	opMod: "DW_OP_mod", opMul: "DW_OP_mul", opNeg: "DW_OP_neg", opNot: "DW_OP_not", opOr: "DW_OP_or",
	opPlus: "DW_OP_plus", opPlusUconst: "DW_OP_plus_uconst", opShl: "DW_OP_shl", opShr: "DW_OP_shr",
	opShra: "DW_OP_shra", opXor: "DW_OP_xor", opBra: "DW_OP_bra", opEq: "DW_OP_eq", opGe: "DW_OP_ge", opGt: "DW_OP_gt",
	opLe: "DW_OP_le", opLt: "DW_OP_lt", opNe: "DW_OP_ne", opSkip: "DW_OP_skip", opDerefSize: "DW_OP_deref_size", opNop: "DW_OP_nop",
}
