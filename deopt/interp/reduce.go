package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// orderedSum adds or multiplies the elements of a vector of floats to a start value, in the order of the elements. LLVM requires that order without
// the flag reassoc, and allows it with the flag (LangRef, "llvm.vector.reduce.fadd").
type orderedSum struct{ op ir.Op }

func (x orderedSum) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 2 || args[1].s.typ.Kind != ir.VectorKind || !alike(args[0].s, out.s) || !alike(args[1].s.elem, out.s) || !out.s.typ.Float() {
		return nil, wrongUse(i)
	}
	f, err := d.floatLanes(x.op, out.s.typ.Kind)
	if err != nil {
		return nil, err
	}
	return fold(i, out, args[0], args[1], f), nil
}

func (x extremum) decode(d *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 1 || args[0].s.typ.Kind != ir.VectorKind || args[0].s.n == 0 || !alike(args[0].s.elem, out.s) || !out.s.typ.Float() {
		return nil, wrongUse(i)
	}
	kind, r := out.s.typ.Kind, d.rulesOf(out.s.typ.Kind).exact()
	start := slot{args[0].at, out.s} // start with the first element; fold applies it twice, which does not change an extremum
	return fold(i, out, start, args[0], func(dst, a, b []word) {
		r.set(kind, dst, x.of(r.number(kind, a), r.number(kind, b)))
	}), nil
}

// fold returns a step that starts with a value and applies f to the intermediate result and each element of a vector in turn.
func fold(i *ir.Instr, out, start, v slot, f func(dst, a, b []word)) step {
	n := out.s.words
	return func(fr *frame) error {
		dst, first, all := out.in(fr), start.in(fr), v.in(fr)
		if !defined(first) || !defined(all) {
			unknownWords(dst, out.s.bits, first, all)
			return nil
		}
		good := promised(i.Flags, out.s.typ.Kind, first)
		copy(dst, first)
		for k := range v.s.n {
			e := all[k*n : (k+1)*n]
			f(dst, dst, e)
			good = good && promised(i.Flags, out.s.typ.Kind, e)
		}
		if !good || !promised(i.Flags, out.s.typ.Kind, dst) {
			poisonWords(dst, out.s.bits)
		}
		return nil
	}
}
