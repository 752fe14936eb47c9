package cfi

import (
	"errors"

	"example.com/reframe/internal/machine"
)

// Operations of DWARF expressions (DWARF 5 §7.7.1, table 7.9) that call frame information permits: those that need neither a compilation unit nor the
// CFA (§6.4.2).
const (
	opAddr       = 0x03
	opDeref      = 0x06
	opConst1u    = 0x08
	opConst1s    = 0x09
	opConst2u    = 0x0a
	opConst2s    = 0x0b
	opConst4u    = 0x0c
	opConst4s    = 0x0d
	opConst8u    = 0x0e
	opConst8s    = 0x0f
	opConstu     = 0x10
	opConsts     = 0x11
	opDup        = 0x12
	opDrop       = 0x13
	opOver       = 0x14
	opPick       = 0x15
	opSwap       = 0x16
	opRot        = 0x17
	opAbs        = 0x19
	opAnd        = 0x1a
	opDiv        = 0x1b
	opMinus      = 0x1c
	opMod        = 0x1d
	opMul        = 0x1e
	opNeg        = 0x1f
	opNot        = 0x20
	opOr         = 0x21
	opPlus       = 0x22
	opPlusUconst = 0x23
	opShl        = 0x24
	opShr        = 0x25
	opShra       = 0x26
	opXor        = 0x27
	opBra        = 0x28
	opEq         = 0x29
	opGe         = 0x2a
	opGt         = 0x2b
	opLe         = 0x2c
	opLt         = 0x2d
	opNe         = 0x2e
	opSkip       = 0x2f
	opLit0       = 0x30
	opLit31      = 0x4f
	opBreg0      = 0x70
	opBreg31     = 0x8f
	opBregx      = 0x92
	opDerefSize  = 0x94
	opNop        = 0x96
)

const (
	maxStack = 256
	maxSteps = 1000 // an expression may loop (DW_OP_bra, DW_OP_skip)
)

// evaluation evaluates one expression over the registers of a frame. Its values have 64 bits.
type evaluation struct {
	cursor // reads the expression; its err is the error of the evaluation
	regs   *machine.Registers
	memory machine.Memory
	stack  []uint64
}

// Evaluate evaluates an expression with initial values on its stack, and returns the top of the stack at the end, or a [*FormatError].
func (e Expression) Evaluate(regs *machine.Registers, memory machine.Memory, start ...uint64) (uint64, error) {
	v := evaluation{regs: regs, memory: memory, stack: start}
	if b := e.ops; b != nil {
		v.cursor = cursor{section: b.section, offset: b.offset, order: b.order, data: b.code}
	}
	for steps := 0; v.more(); steps++ {
		if steps == maxSteps {
			v.failf("an expression of more than %d steps", maxSteps)
			break
		}
		v.step()
	}
	x := v.pop()
	return x, v.err
}

func (v *evaluation) pop() uint64 {
	last := len(v.stack) - 1
	if last < 0 {
		v.fail(errors.New("the expression takes a value from an empty stack"))
		return 0
	}
	x := v.stack[last]
	v.stack = v.stack[:last]
	return x
}

func (v *evaluation) push(x uint64) {
	if len(v.stack) == maxStack {
		v.failf("the expression stacks more than %d values", maxStack)
		return
	}
	v.stack = append(v.stack, x)
}

// pick pushes a copy of the value n positions below the top.
func (v *evaluation) pick(n int) {
	if n >= len(v.stack) {
		v.failf("the expression picks the value %d below the top of a stack of %d", n, len(v.stack))
		return
	}
	v.push(v.stack[len(v.stack)-1-n])
}

// register pushes a register plus an offset (DWARF 5 §2.5.1.2).
func (v *evaluation) register(reg machine.DWARFReg, offset int64) {
	if v.err != nil {
		return
	}
	x, err := v.regs.Uint(reg)
	if err != nil {
		v.fail(err)
		return
	}
	v.push(x + uint64(offset))
}

// load replaces the address on top of the stack by the size bytes of memory at that address.
func (v *evaluation) load(size int) {
	addr := v.pop()
	if v.err != nil {
		return
	}
	x, err := machine.ReadUint(v.memory, v.regs.Arch(), machine.Addr(addr), size)
	if err != nil {
		v.fail(err)
		return
	}
	v.push(x)
}

// jump moves by delta bytes from the current position. The target may be the end of the expression.
func (v *evaluation) jump(delta int16) {
	to := v.pos + int(delta)
	if v.err == nil && (to < 0 || to > len(v.data)) {
		v.fail(errors.New("the expression jumps out of itself"))
		return
	}
	v.pos = to
}

// step runs one operation (DWARF 5 §2.5.1).
func (v *evaluation) step() {
	op := v.u8()
	switch {
	case op >= opLit0 && op <= opLit31:
		v.push(uint64(op - opLit0))
		return
	case op >= opBreg0 && op <= opBreg31:
		v.register(machine.DWARFReg(op-opBreg0), v.sleb())
		return
	}
	switch op {
	case opAddr, opConst8u, opConst8s:
		v.push(v.u64())
	case opConst1u:
		v.push(uint64(v.u8()))
	case opConst1s:
		v.push(uint64(int8(v.u8())))
	case opConst2u:
		v.push(uint64(v.u16()))
	case opConst2s:
		v.push(uint64(int16(v.u16())))
	case opConst4u:
		v.push(uint64(v.u32()))
	case opConst4s:
		v.push(uint64(int32(v.u32())))
	case opConstu:
		v.push(v.uleb())
	case opConsts:
		v.push(uint64(v.sleb()))
	case opBregx:
		reg := v.cursor.register()
		v.register(reg, v.sleb())
	case opDeref:
		v.load(8)
	case opDerefSize:
		v.load(int(v.u8()))
	case opDup:
		v.pick(0)
	case opOver:
		v.pick(1)
	case opPick:
		v.pick(int(v.u8()))
	case opDrop:
		v.pop()
	case opSwap:
		top, second := v.pop(), v.pop()
		v.push(top)
		v.push(second)
	case opRot:
		first, second, third := v.pop(), v.pop(), v.pop()
		v.push(first)
		v.push(third)
		v.push(second)
	case opPlusUconst:
		v.push(v.pop() + v.uleb())
	case opAbs, opNeg, opNot:
		v.push(unary(op, v.pop()))
	case opSkip:
		v.jump(int16(v.u16()))
	case opBra:
		delta := int16(v.u16())
		if v.pop() != 0 {
			v.jump(delta)
		}
	case opNop:
	default:
		v.binary(op)
	}
}

func unary(op uint8, x uint64) uint64 {
	switch {
	case op == opNot:
		return ^x
	case op == opNeg || int64(x) < 0:
		return -x
	}
	return x
}

// binary applies an operation to the second value and the top one, in this order.
func (v *evaluation) binary(op uint8) {
	if (op < opAnd || op > opXor) && (op < opEq || op > opNe) {
		v.pos--
		v.failf("operation %#02x is not allowed in call frame information", op)
		return
	}
	y, x := v.pop(), v.pop()
	if v.err != nil {
		return
	}
	if (op == opDiv || op == opMod) && y == 0 {
		v.fail(errors.New("the expression divides by zero"))
		return
	}
	v.push(operate(op, x, y))
}

// operate computes x op y. Division, comparison and shra are signed, mod and
// shr are not (DWARF 5 §2.5.1.4, §2.5.1.5).
func operate(op uint8, x, y uint64) uint64 {
	switch op {
	case opAnd:
		return x & y
	case opDiv:
		return uint64(int64(x) / int64(y))
	case opMinus:
		return x - y
	case opMod:
		return x % y
	case opMul:
		return x * y
	case opOr:
		return x | y
	case opPlus:
		return x + y
	case opShl:
		return x << y
	case opShr:
		return x >> y
	case opShra:
		return uint64(int64(x) >> y)
	case opXor:
		return x ^ y
	}
	a, b := int64(x), int64(y)
	holds := op == opEq && a == b || op == opNe && a != b ||
		op == opGe && a >= b || op == opGt && a > b ||
		op == opLe && a <= b || op == opLt && a < b
	if holds {
		return 1
	}
	return 0
}
