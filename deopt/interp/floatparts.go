package interp

import (
	"math/big"

	"example.com/reframe/deopt/interp/internal/libm"
	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

type powi struct{}

// decode decodes powi. It multiplies in the type's precision and in the order of compiler-rt's __powidf2, so that rounding is the same.
func (powi) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	lane, n := out.s.lane()
	if len(args) != 2 || !alike(args[0].s, out.s) || args[1].s.typ.Kind != ir.IntKind || args[1].s.words != 1 || !lane.typ.Float() {
		return nil, wrongUse(i)
	}
	kind := lane.typ.Kind
	if r := d.rulesOf(kind); r != nil {
		return nil, r.unlike("llvm.powi")
	}
	multiply, divide := floatLanes(ir.OpFMul, kind), floatLanes(ir.OpFDiv, kind)
	one := make([]word, lane.words)
	setFloat(kind, one, softfloat.FromInt(big.NewInt(1)))
	base := make([]word, lane.words)
	return func(fr *frame) error {
		e := args[1].in(fr)
		for k := range n {
			x := fr.w[args[0].at+k*lane.words : args[0].at+(k+1)*lane.words]
			r := fr.w[out.at+k*lane.words : out.at+(k+1)*lane.words]
			if !defined(x) || !defined(e) {
				unknownWords(r, lane.bits, x, e)
				continue
			}
			power := int64(signExtend(e[0].v, args[1].s.bits))
			copy(base, x)
			copy(r, one)
			for p := power; ; {
				if p&1 != 0 {
					multiply(r, r, base)
				}
				if p /= 2; p == 0 {
					break
				}
				multiply(base, base, base)
			}
			if power < 0 {
				divide(r, one, r)
			}
			if !promised(i.Flags, kind, x, r) {
				poisonWords(r, lane.bits)
			}
		}
		return nil
	}, nil
}

type scaling struct{}

// decode decodes ldexp, of a float and an integer of any width, lane by lane.
func (scaling) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if err := d.unlikeOperand(i, args); err != nil {
		return nil, err
	}
	lane, _ := out.s.lane()
	if len(args) != 2 || !alike(args[0].s, out.s) || !lane.typ.Float() {
		return nil, wrongUse(i)
	}
	exponent, _ := args[1].s.lane()
	if exponent.typ.Kind != ir.IntKind {
		return nil, wrongUse(i)
	}
	return lanes2(out, args[0], args[1], func(dst, x, e []word) error {
		if !defined(x) || !defined(e) {
			unknownWords(dst, lane.bits, x, e)
			return nil
		}
		setFloat(lane.typ.Kind, dst, floatNumber(lane.typ.Kind, x).Scale(toSigned(e, exponent.bits)))
		if !promised(i.Flags, lane.typ.Kind, x, dst) {
			poisonWords(dst, lane.bits)
		}
		return nil
	})
}

// pair decodes an intrinsic of a float whose result is a struct of two values, each with as many lanes as the float.
func pair(i *ir.Instr, args []slot, out slot, fits func(first, second *shape) bool, f func(first, second, x []word)) (step, error) {
	if len(args) != 1 || out.s.field == nil || out.s.n != 2 {
		return nil, wrongUse(i)
	}
	lane, n := args[0].s.lane()
	p, pn := out.s.field[0].lane()
	q, qn := out.s.field[1].lane()
	if !lane.typ.Float() || !alike(args[0].s, out.s.field[0]) || pn != n || qn != n || !fits(p, q) {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		for k := range n {
			x := fr.w[args[0].at+k*lane.words : args[0].at+(k+1)*lane.words]
			at := out.at + out.s.at[1]
			first, second := fr.w[out.at+k*p.words:out.at+(k+1)*p.words], fr.w[at+k*q.words:at+(k+1)*q.words]
			if !defined(x) {
				unknownWords(first, p.bits, x)
				unknownWords(second, q.bits, x)
				continue
			}
			f(first, second, x)
		}
		return nil
	}, nil
}

func twoFloats(p, q *shape) bool { return alike(p, q) }

type splitExponent struct{}

// decode decodes frexp. The exponent of a value that is not finite is undefined (LangRef, "llvm.frexp").
func (splitExponent) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if err := d.unlikeOperand(i, args); err != nil {
		return nil, err
	}
	isInt := func(_, q *shape) bool { return q.typ.Kind == ir.IntKind }
	return pair(i, args, out, isInt, func(first, second, x []word) {
		lane, _ := args[0].s.lane()
		exponent, _ := out.s.field[1].lane()
		n, e := floatNumber(lane.typ.Kind, x).Frexp()
		setFloat(lane.typ.Kind, first, n)
		setBig(second, big.NewInt(int64(e)), exponent.bits)
		if n.Class == softfloat.Inf || n.Class == softfloat.NaN {
			undefWords(second, exponent.bits)
		}
	})
}

type splitFraction struct{}

// decode decodes modf, which yields the fraction and the whole part, both with the sign of the operand. The fraction of an infinity is zero (C17
// F.10.3.12).
func (splitFraction) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if err := d.unlikeOperand(i, args); err != nil {
		return nil, err
	}
	return pair(i, args, out, twoFloats, func(first, second, x []word) {
		lane, _ := args[0].s.lane()
		n := floatNumber(lane.typ.Kind, x)
		whole := n.Round(softfloat.ToZero)
		rest := softfloat.Number{}
		if n.Class != softfloat.Inf {
			rest = softfloat.Sub(n, whole)
		}
		rest.Neg = n.Neg
		setFloat(lane.typ.Kind, first, rest)
		setFloat(lane.typ.Kind, second, whole)
	})
}

type sinCos struct{}

func (sinCos) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if err := d.unlikeOperand(i, args); err != nil {
		return nil, err
	}
	return pair(i, args, out, twoFloats, func(first, second, x []word) {
		lane, _ := args[0].s.lane()
		n := floatNumber(lane.typ.Kind, x)
		setFloat(lane.typ.Kind, first, libm.Sin.Call(formats[lane.typ.Kind], n))
		setFloat(lane.typ.Kind, second, libm.Cos.Call(formats[lane.typ.Kind], n))
	})
}

// toInteger rounds a float to an integer. A result that does not fit is unspecified (LangRef, "llvm.lrint"), so it is undefined here.
type toInteger struct{ to softfloat.Rounding }

func (x toInteger) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) > 0 {
		lane, _ := args[0].s.lane()
		if r := d.rulesOf(lane.typ.Kind); r != nil && r.refusal != nil {
			return nil, r.refusal
		}
	}
	return integerOfFloat(d, i, args, out, func(dst []word, n softfloat.Number, bits int) {
		if v, ok := n.Round(x.to).Int(); ok && fitsSigned(v, bits) {
			setBig(dst, v, bits)
		} else {
			undefWords(dst, bits)
		}
	})
}

// classTest is llvm.is.fpclass: it reports whether a float is of one of the classes in a constant mask.
type classTest struct{}

func (classTest) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	to, n := out.s.lane()
	if !(len(args) == 2 && args[1].s.bits == 32 && to.bits == 1) {
		return nil, wrongUse(i)
	}
	from, m := args[0].s.lane()
	if !from.typ.Float() || n != m {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		mask := fr.w[args[1].at]
		for k := range n {
			x := fr.w[args[0].at+k*from.words : args[0].at+(k+1)*from.words]
			dst := fr.w[out.at+k : out.at+k+1]
			if !defined(x) || mask.u != 0 {
				unknownWords(dst, 1, x, []word{mask})
				continue
			}
			dst[0] = bit(mask.v>>floatClass(formats[from.typ.Kind], x)&1 == 1)
		}
		return nil
	}, nil
}

// floatClass returns the number of the mask bit for a float's class (LangRef, "llvm.is.fpclass").
func floatClass(f softfloat.Format, w []word) uint {
	bits := toBig(w)
	n := f.Decode(bits)
	distance := uint(0) // number of classes away from the zero of the same sign
	switch {
	case f.Signaling(bits):
		return 0
	case n.Class == softfloat.NaN:
		return 1
	case n.Class == softfloat.Inf:
		distance = 3
	case f.Subnormal(bits):
		distance = 1
	case n.Class == softfloat.Finite:
		distance = 2
	}
	if n.Neg {
		return 5 - distance
	}
	return 6 + distance
}
