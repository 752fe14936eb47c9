package interp

import (
	"math"

	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

func (d *decoder) floatArith(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 2)
	if err != nil {
		return nil, err
	}
	a, b := args[0], args[1]
	lane, n := out.s.lane()
	if !lane.typ.Float() || !alike(a.s, out.s) || !alike(b.s, out.s) {
		return nil, troublef(KindModule, "%v of %v and %v", i.Op, a.s.typ, b.s.typ)
	}
	kind := lane.typ.Kind
	r := d.rulesOf(kind)
	if r != nil && i.Op == ir.OpFRem {
		return lanes2(out, a, b, func(dst, x, y []word) error {
			if !defined(x) || !defined(y) {
				unknownWords(dst, lane.bits, x, y)
				return nil
			}
			err := r.remainder(kind, dst, x, y)
			if err == nil && !promised(i.Flags, kind, x, y, dst) {
				poisonWords(dst, lane.bits)
			}
			return err
		})
	}
	f, err := d.floatLanes(i.Op, kind)
	if err != nil {
		return nil, err
	}
	known := func(dst, x, y []word) {
		f(dst, x, y)
		if !promised(i.Flags, kind, x, y, dst) {
			poisonWords(dst, lane.bits)
		}
	}
	if n == 1 && lane.words == 1 {
		return func(fr *frame) error {
			dst, x, y := fr.w[out.at:out.at+1], fr.w[a.at:a.at+1], fr.w[b.at:b.at+1]
			if x[0].u|y[0].u != 0 {
				unknownWords(dst, lane.bits, x, y)
				return nil
			}
			known(dst, x, y)
			return nil
		}, nil
	}
	return lanes2(out, a, b, func(dst, x, y []word) error {
		if !defined(x) || !defined(y) {
			unknownWords(dst, lane.bits, x, y)
			return nil
		}
		known(dst, x, y)
		return nil
	})
}

// floatLanes returns the operation on two floats with all bits known, in the environment of the function.
func (d *decoder) floatLanes(op ir.Op, kind ir.TypeKind) (func(dst, x, y []word), error) {
	r := d.rulesOf(kind)
	if r == nil {
		return floatLanes(op, kind), nil
	}
	return func(dst, x, y []word) {
		r.set(kind, dst, softOp(op, formats[kind], r.number(kind, x), r.number(kind, y)))
	}, r.refusal
}

// floatLanes returns the operation on two floats with all bits known, in the default environment.
func floatLanes(op ir.Op, kind ir.TypeKind) func(dst, x, y []word) {
	if f := formats[kind]; kind == ir.X86FP80Kind || kind == ir.FP128Kind {
		return func(dst, x, y []word) {
			if kind == ir.X86FP80Kind && x87Short(op, dst, x, y) {
				return
			}
			setFloat(kind, dst, softOp(op, f, floatNumber(kind, x), floatNumber(kind, y)))
		}
	}
	return func(dst, x, y []word) { dst[0] = word{v: floatOp(op, kind, x[0].v, y[0].v)} }
}

// softOp computes an operation exactly; the caller rounds the result.
func softOp(op ir.Op, f softfloat.Format, x, y softfloat.Number) softfloat.Number {
	switch op {
	case ir.OpFAdd:
		return softfloat.Add(x, y)
	case ir.OpFSub:
		return softfloat.Sub(x, y)
	case ir.OpFMul:
		return softfloat.Mul(x, y)
	case ir.OpFDiv:
		return softfloat.Div(x, y, f.Prec)
	}
	return softfloat.Rem(x, y)
}

// floatOp computes in the format's own precision. For half and bfloat it computes in float64 and rounds once more. That is exact for + - * and /,
// because 53 is at least 2p+2 for the precision p of either. The remainder is always exact.
func floatOp(op ir.Op, kind ir.TypeKind, a, b uint64) uint64 {
	if kind == ir.FloatKind && op != ir.OpFRem {
		x, y := math.Float32frombits(uint32(a)), math.Float32frombits(uint32(b))
		var r float32
		switch op {
		case ir.OpFAdd:
			r = x + y
		case ir.OpFSub:
			r = x - y
		case ir.OpFMul:
			r = x * y
		default:
			r = x / y
		}
		return single(r, a, b)
	}
	x, y := floatOf(kind, a), floatOf(kind, b)
	var r float64
	switch op {
	case ir.OpFAdd:
		r = x + y
	case ir.OpFSub:
		r = x - y
	case ir.OpFMul:
		r = x * y
	case ir.OpFDiv:
		r = x / y
	default:
		r = math.Mod(x, y)
	}
	if math.IsNaN(r) {
		r = nanOf(x, y)
	}
	return floatBits(kind, r)
}

// unary decodes fneg, which flips the sign bit of any float, and freeze.
func (d *decoder) unary(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	if !alike(a.s, out.s) {
		return nil, troublef(KindModule, "%v of %v to %v", i.Op, a.s.typ, out.s.typ)
	}
	if i.Op == ir.OpFreeze {
		// freeze may choose any value for an undefined bit, if all uses see the same value.
		return func(fr *frame) error {
			for k, w := range a.in(fr) {
				fr.in.frozen = fr.in.frozen || w.u != 0
				fr.w[out.at+k] = word{v: w.v &^ w.u}
			}
			return nil
		}, nil
	}
	lane, _ := out.s.lane()
	if !lane.typ.Float() {
		return nil, troublef(KindModule, "fneg of %v", a.s.typ)
	}
	last, sign := lane.words-1, uint64(1)<<uint((lane.bits-1)%64)
	return lanes1(out, a, func(dst, src []word) error {
		copy(dst, src)
		if dst[last].u&sign == 0 {
			dst[last].v ^= sign
		}
		if defined(src) && !promised(i.Flags, lane.typ.Kind, src) {
			poisonWords(dst, lane.bits)
		}
		return nil
	})
}
