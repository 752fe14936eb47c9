package interp

import (
	"math/big"

	"example.com/reframe/internal/llvm/ir"
)

// fixedPoint is a product or quotient of fixed-point numbers: integers in units of 2^-scale, where scale is the constant last operand (LangRef,
// "Fixed Point Arithmetic Intrinsics"). It rounds down; LLVM allows either direction.
type fixedPoint struct {
	divides, isSigned, saturates bool
}

var fixedPoints = map[string]fixedPoint{
	"smul.fix": {false, true, false}, "umul.fix": {false, false, false},
	"smul.fix.sat": {false, true, true}, "umul.fix.sat": {false, false, true},
	"sdiv.fix": {true, true, false}, "udiv.fix": {true, false, false},
	"sdiv.fix.sat": {true, true, true}, "udiv.fix.sat": {true, false, true},
}

func (x fixedPoint) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	lane, _ := out.s.lane()
	if len(args) != 3 || !alike(args[0].s, out.s) || !alike(args[1].s, out.s) || lane.typ.Kind != ir.IntKind {
		return nil, wrongUse(i)
	}
	scale, ok := constantIndex(i.Args[2])
	if !ok || scale > uint64(lane.bits) {
		return nil, wrongUse(i)
	}
	return lanes2(out, args[0], args[1], func(dst, a, b []word) error {
		if x.divides && !defined(b) {
			return notKnown(b, "the divisor")
		}
		if !defined(a) || !defined(b) {
			unknownWords(dst, lane.bits, a, b)
			return nil
		}
		p, q := toBig(a), toBig(b)
		if x.isSigned {
			p, q = signed(p, lane.bits), signed(q, lane.bits)
		}
		r := new(big.Int)
		switch {
		case x.divides && q.Sign() == 0:
			return troublef(KindDivision, "division by zero")
		case x.divides:
			rem := new(big.Int)
			r.QuoRem(p.Lsh(p, uint(scale)), q, rem)
			if rem.Sign() != 0 && rem.Sign() != q.Sign() {
				r.Sub(r, big.NewInt(1))
			}
		default:
			r.Rsh(r.Mul(p, q), uint(scale))
		}
		switch fits := clamp(r, lane.bits, x.isSigned); {
		case x.saturates:
			r = fits
		case fits.Cmp(r) != 0:
			undefWords(dst, lane.bits)
			return nil
		}
		setBig(dst, r, lane.bits)
		return nil
	})
}
