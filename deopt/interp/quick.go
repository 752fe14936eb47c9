package interp

import (
	"math"

	"example.com/reframe/internal/llvm/ir"
)

// quick selects the fast path of an instruction. An instruction has none if an operand or the result is not a scalar of one word. It also has none if
// a flag requires a check that the loop does not make.
func (d *decoder) quick(c *inst, i *ir.Instr, out slot) {
	if i.Op == ir.OpAlloca || len(i.Args) == 0 || len(i.Args) > 3 && i.Op != ir.OpGEP {
		return
	}
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return
	}
	if i.Op == ir.OpExtractValue {
		d.quickExtract(c, i, args[0], out)
		return
	}
	for _, a := range append(args, out) {
		if (a.s.bits == 0 || a.s.words != 1) && !(a == out && i.Op == ir.OpStore) {
			return
		}
	}
	c.dst, c.a = int32(out.at), int32(args[0].at)
	if len(args) > 1 {
		c.b = int32(args[1].at)
	}
	bits := args[0].s.bits
	c.cut = uint8(64 - bits)
	if d.unusual(i.Op, args[0].s, out.s) {
		return
	}
	switch i.Op {
	case ir.OpLoad, ir.OpStore:
		d.quickAccess(c, i, args, out)
	case ir.OpGEP:
		d.quickGEP(c, i, args)
	case ir.OpSelect:
		if promises(i.Flags, out) != nil {
			return
		}
		c.op, c.k, c.a, c.b = opSelect, uint64(args[0].at), int32(args[1].at), int32(args[2].at)
	case ir.OpICmp:
		quickICmp(c, i, bits)
	case ir.OpFAdd, ir.OpFSub, ir.OpFMul, ir.OpFDiv, ir.OpFCmp:
		quickFloat(c, i, args[0].s.typ.Kind)
	case ir.OpTrunc, ir.OpZExt, ir.OpSExt, ir.OpPtrToInt, ir.OpIntToPtr, ir.OpBitCast, ir.OpFreeze:
		quickCast(c, i, args[0].s, out.s)
	case ir.OpSIToFP, ir.OpUIToFP, ir.OpFPToSI, ir.OpFPToUI, ir.OpFPTrunc, ir.OpFPExt:
		d.quickConversion(c, i, args[0], out)
	case ir.OpFNeg:
		if i.Flags&(ir.NoNaNs|ir.NoInfs) == 0 && args[0].s.typ.Float() {
			c.op, c.k = opFNeg, 1<<(bits-1)
		}
	default:
		d.quickInt(c, i, args, out)
	}
}

func (d *decoder) quickInt(c *inst, i *ir.Instr, args []slot, out slot) {
	bits := out.s.bits
	m, sign := maskAt(bits, 0), uint64(1)<<(bits-1)
	nsw, nuw := i.Flags&ir.NSW != 0, i.Flags&ir.NUW != 0
	c.k = m
	if nsw {
		c.s = sign
	}
	switch i.Op {
	case ir.OpAdd:
		c.op = pickOp(nuw, opAddNUW, opAdd)
	case ir.OpSub:
		c.op = pickOp(nuw, opSubNUW, opSub)
	case ir.OpMul:
		switch {
		case nuw:
			c.op, c.s = opMulNUW, ^m
			if nsw {
				c.s |= sign
			}
		default:
			c.op = pickOp(nsw, opMulNSW, opMul)
		}
	case ir.OpUDiv, ir.OpSDiv:
		if c.op = pickOp(i.Op == ir.OpUDiv, opUDiv, opSDiv); i.Flags&ir.Exact != 0 {
			d.shorten(c, exactShort(i.Op, bits), out, args...)
		}
	case ir.OpURem, ir.OpSRem:
		c.op = pickOp(i.Op == ir.OpURem, opURem, opSRem)
	case ir.OpAnd:
		c.op = opAnd
	case ir.OpXor:
		c.op = opXor
	case ir.OpOr:
		c.op, c.s = opOr, 0
		if i.Flags&ir.Disjoint != 0 {
			c.s = ^uint64(0)
		}
	case ir.OpShl:
		c.s = uint64(bits)
		c.op = pickOp(nuw, pickOp(nsw, opShlBoth, opShlNUW), pickOp(nsw, opShlNSW, opShl))
	case ir.OpLShr, ir.OpAShr:
		if c.op, c.s = pickOp(i.Op == ir.OpLShr, opLShr, opAShr), uint64(bits); i.Flags&ir.Exact != 0 {
			d.shorten(c, exactShort(i.Op, bits), out, args...)
		}
	}
}

// quickExtract makes extractvalue of a scalar a move of one word.
func (d *decoder) quickExtract(c *inst, i *ir.Instr, from, out slot) {
	if part, err := inside(from, i.Path); err == nil && out.s.words == 1 && part.s.words == 1 {
		c.op, c.dst, c.a = opMove, int32(out.at), int32(part.at)
	}
}

func pickOp(first bool, a, b opcode) opcode {
	if first {
		return a
	}
	return b
}

// comparisons maps the predicates of icmp to opcodes. For a "greater" predicate, the operands are swapped.
var comparisons = map[string]opcode{
	"eq": opEq, "ne": opNe, "ult": opULT, "ule": opULE, "slt": opSLT, "sle": opSLE,
	"ugt": opULT, "uge": opULE, "sgt": opSLT, "sge": opSLE,
}

func quickICmp(c *inst, i *ir.Instr, bits int) {
	op, ok := comparisons[i.Pred]
	if !ok {
		return
	}
	if i.Pred[1:] == "gt" || i.Pred[1:] == "ge" {
		c.a, c.b = c.b, c.a
	}
	c.op, c.k, c.s = op, 1<<(bits-1), 0
	if i.Flags&ir.SameSign != 0 {
		c.s = c.k
	}
}

// outcomes maps each fcmp predicate to a mask of the outcomes for which it holds. Each outcome is a bit that the function order returns.
var outcomes = map[string]uint64{
	"false": 0, "oeq": 1, "ogt": 2, "oge": 3, "olt": 4, "ole": 5, "one": 6, "ord": 7,
	"uno": 8, "ueq": 9, "ugt": 10, "uge": 11, "ult": 12, "ule": 13, "une": 14, "true": 15,
}

func quickFloat(c *inst, i *ir.Instr, kind ir.TypeKind) {
	if i.Flags&(ir.NoNaNs|ir.NoInfs) != 0 || kind != ir.FloatKind && kind != ir.DoubleKind {
		return
	}
	double := kind == ir.DoubleKind
	switch i.Op {
	case ir.OpFAdd:
		c.op = pickOp(double, opFAdd64, opFAdd32)
	case ir.OpFSub:
		c.op = pickOp(double, opFSub64, opFSub32)
	case ir.OpFMul:
		c.op = pickOp(double, opFMul64, opFMul32)
	case ir.OpFDiv:
		c.op = pickOp(double, opFDiv64, opFDiv32)
	case ir.OpFCmp:
		if mask, ok := outcomes[i.Pred]; ok {
			c.op, c.k = pickOp(double, opFCmp64, opFCmp32), mask
		}
	}
}

func quickCast(c *inst, i *ir.Instr, from, to *shape) {
	c.k, c.s = maskAt(to.bits, 0), 0
	switch {
	case i.Op == ir.OpSExt:
		c.op = opSExt
	case i.Op == ir.OpTrunc && i.Flags&ir.NSW != 0 && i.Flags&ir.NUW != 0:
		c.op, c.s = opTrunc, ^(c.k >> 1) // neither a dropped bit nor the sign bit of the result may be set
	case i.Op == ir.OpTrunc && i.Flags&ir.NSW != 0:
		c.op, c.s = opTruncNSW, uint64(64-to.bits)
	case i.Op == ir.OpTrunc && i.Flags&ir.NUW != 0:
		c.op, c.s = opTrunc, ^c.k
	case i.Op == ir.OpZExt && i.Flags&ir.NNeg != 0:
		c.op, c.s = opTrunc, 1<<(from.bits-1)
	case i.Op == ir.OpBitCast && from.bits != to.bits:
	default:
		c.op = opTrunc
	}
}

func (d *decoder) quickConversion(c *inst, i *ir.Instr, from, to slot) {
	f := conversionShort(i.Op, i.Flags, from.s, to.s)
	switch {
	case f == nil:
	case i.Op == ir.OpFPExt:
		c.op = opFPExt
	case i.Op == ir.OpSIToFP && to.s.typ.Kind == ir.DoubleKind:
		c.op = opSIToFP64
	default:
		d.shorten(c, f, to, from)
	}
}

// loads and stores map the number of bytes to the opcode of the fast path.
var (
	loads  = map[int]opcode{1: opLoad8, 2: opLoad16, 4: opLoad32, 8: opLoad64}
	stores = map[int]opcode{1: opStore8, 2: opStore16, 4: opStore32, 8: opStore64}
)

func (d *decoder) quickAccess(c *inst, i *ir.Instr, args []slot, out slot) {
	if d.in.opt.Strict {
		return
	}
	if i.Op == ir.OpStore {
		if op, ok := stores[d.in.plain(args[0].s)]; ok {
			c.op = op
		}
		return
	}
	if op, ok := loads[d.in.plain(out.s)]; ok {
		c.op = op
	}
}

// maxScale bounds the size of an indexed element. Below it, the sum of two products with small indices and an offset stays below 2^63.
const maxScale = 1 << 30

// quickGEP selects the fast path of a getelementptr with a constant offset and at most two variable indices. If no overflow occurs, inbounds, nusw
// and nuw hold, so the fast path runs only without overflow. With nuw it also leaves a negative index or offset to the step.
func (d *decoder) quickGEP(c *inst, i *ir.Instr, args []slot) {
	offset, indices, err := d.path(i, args)
	if err != nil || args[0].s.bits != 64 && args[0].s.bits != 32 || d.in.opt.Strict {
		return
	}
	var rest []scaled
	at := address{offset: offset}
	for _, x := range indices {
		// Add a constant index, whose value is in the template, to the offset.
		if w := d.fn.template[x.index.at]; d.fixed[x.index.at] && w.u == 0 {
			at.add(word{v: uint64(extended(w.v, uint8(64-x.index.s.bits)))}, x.by)
			continue
		}
		rest = append(rest, x)
	}
	nuw := i.Flags&ir.NUW != 0
	if offset = at.offset; at.signed || nuw && int64(offset) < 0 || int64(offset) >= math.MaxInt32 || int64(offset) <= math.MinInt32 {
		return
	}
	// The loop checks overflow by the address: it must stay in the lower half of the address space. For 32-bit addresses this check suffices only with
	// one index and a small offset.
	if c.top = 63; args[0].s.bits == 32 {
		if c.top = 31; len(rest) > 1 || len(rest) == 1 && (offset >= 1<<20 || rest[0].index.s.bits > 32) {
			return
		}
	}
	switch {
	case len(rest) == 0:
		c.op, c.k = opOffset, offset
	case len(rest) == 1 && rest[0].by < maxScale:
		c.op, c.b, c.k, c.s = pickOp(nuw, opIndexNUW, opIndex), int32(rest[0].index.at), rest[0].by, offset
		c.cut = uint8(64 - rest[0].index.s.bits)
	case len(rest) == 2 && rest[0].by < maxScale && rest[1].by < maxScale && rest[0].index.s.bits == rest[1].index.s.bits:
		c.op, c.b, c.c, c.k, c.s = pickOp(nuw, opIndex2NUW, opIndex2), int32(rest[0].index.at), int32(rest[1].index.at), rest[0].by, rest[1].by|offset<<32
		c.cut = uint8(64 - rest[0].index.s.bits)
	}
}

// fuse merges a comparison and the branch on its result into one instruction, if they end the block.
func (d *decoder) fuse(b *block) {
	n := len(d.fn.code)
	if n-b.start < 2 {
		return
	}
	test, br := &d.fn.code[n-2], &d.fn.code[n-1]
	if br.op == opBranch && test.op >= opEq && test.op <= opSLE && br.a == test.dst {
		test.op += opEqBr - opEq
		test.yes, test.no = br.yes, br.no
	}
}
