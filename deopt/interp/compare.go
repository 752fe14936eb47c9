package interp

import (
	"cmp"
	"math"

	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/internal/llvm/ir"
)

func (d *decoder) icmp(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 2)
	if err != nil {
		return nil, err
	}
	a, b := args[0], args[1]
	lane, n := a.s.lane()
	test, ok := intPredicates[i.Pred]
	if !ok || !alike(a.s, b.s) || lane.bits == 0 || lane.typ.Float() {
		return nil, troublef(KindModule, "icmp %s of %v and %v", i.Pred, a.s.typ, b.s.typ)
	}
	// With the sign bits flipped, signed numbers compare like unsigned ones.
	flip := uint64(0)
	if test.signed && lane.bits > 0 {
		flip = 1 << uint((lane.bits-1)%64)
	}
	sameSign := i.Flags&ir.SameSign != 0
	compare := func(x, y []word) word {
		u := uint64(0)
		if anyPoison(x, y) {
			return poisonOf(1)
		}
		for k := len(x) - 1; k >= 0; k-- {
			// If a known bit differs, the values are unequal for any value of the undefined bits.
			if test.equality && (x[k].v^y[k].v)&^(x[k].u|y[k].u) != 0 {
				return bit(test.holds(-1))
			}
			u |= x[k].u | y[k].u
		}
		top := len(x) - 1
		if sign := uint((lane.bits - 1) % 64); sameSign {
			if (x[top].u|y[top].u)>>sign&1 == 1 {
				return word{u: 1}
			}
			if (x[top].v^y[top].v)>>sign&1 == 1 {
				return poisonOf(1)
			}
		}
		if u == 0 {
			return bit(test.holds(intOrder(x, y, flip, 0, 0)))
		}
		if test.equality {
			return word{u: 1}
		}
		// The result is known if the lowest x and the highest y give the same result as the highest x and the lowest y. Compiled code depends on this: it
		// compares a field of a struct together with the undefined padding bits below it.
		holds := test.holds(intOrder(x, y, flip, 0, ^uint64(0)))
		if holds != test.holds(intOrder(x, y, flip, ^uint64(0), 0)) {
			return word{u: 1}
		}
		return bit(holds)
	}
	if n == 1 && out.s.bits == 1 && a.s.words == 1 {
		return func(fr *frame) error {
			fr.w[out.at] = compare(fr.w[a.at:a.at+1], fr.w[b.at:b.at+1])
			return nil
		}, nil
	}
	return lanes2(out, a, b, func(dst, x, y []word) error {
		dst[0] = compare(x, y)
		return nil
	})
}

// intOrder compares two integers as unsigned numbers: negative for x<y, zero, or positive. It first flips the bits of flip in the highest word of
// each; flipping the sign bits gives the signed order. xu and yu are the values to use for undefined bits of x and y.
func intOrder(x, y []word, flip, xu, yu uint64) int {
	for k := len(x) - 1; k >= 0; k-- {
		p, q := (x[k].v^flip)&^x[k].u|xu&x[k].u, (y[k].v^flip)&^y[k].u|yu&y[k].u
		if p != q {
			return cmp.Compare(p, q)
		}
		flip = 0 // only the highest word has the sign bit
	}
	return 0
}

func bit(set bool) word {
	if set {
		return word{v: 1}
	}
	return word{}
}

// intPredicate holds the outcomes for which an integer comparison is true.
type intPredicate struct {
	less, equal, more bool
	signed, equality  bool
}

func (p intPredicate) holds(order int) bool {
	switch {
	case order < 0:
		return p.less
	case order > 0:
		return p.more
	}
	return p.equal
}

var intPredicates = map[string]intPredicate{
	"eq":  {equal: true, equality: true},
	"ne":  {less: true, more: true, equality: true},
	"ult": {less: true}, "ule": {less: true, equal: true},
	"ugt": {more: true}, "uge": {more: true, equal: true},
	"slt": {less: true, signed: true}, "sle": {less: true, equal: true, signed: true},
	"sgt": {more: true, signed: true}, "sge": {more: true, equal: true, signed: true},
}

// floatPredicate holds the outcomes for which a float comparison is true; unordered is the outcome for a pair with a NaN.
type floatPredicate struct{ less, equal, more, unordered bool }

func (p floatPredicate) holds(order int) bool {
	return intPredicate{less: p.less, equal: p.equal, more: p.more}.holds(order)
}

var floatPredicates = map[string]floatPredicate{
	"false": {}, "oeq": {equal: true}, "ogt": {more: true}, "oge": {more: true, equal: true},
	"olt": {less: true}, "ole": {less: true, equal: true}, "one": {less: true, more: true},
	"ord": {less: true, equal: true, more: true}, "uno": {unordered: true},
	"ueq": {equal: true, unordered: true}, "ugt": {more: true, unordered: true},
	"uge": {more: true, equal: true, unordered: true}, "ult": {less: true, unordered: true},
	"ule": {less: true, equal: true, unordered: true}, "une": {less: true, more: true, unordered: true},
	"true": {true, true, true, true},
}

func (d *decoder) fcmp(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 2)
	if err != nil {
		return nil, err
	}
	a, b := args[0], args[1]
	lane, _ := a.s.lane()
	test, ok := floatPredicates[i.Pred]
	if !ok || !alike(a.s, b.s) || !lane.typ.Float() {
		return nil, troublef(KindModule, "fcmp %s of %v and %v", i.Pred, a.s.typ, b.s.typ)
	}
	kind := lane.typ.Kind
	wide, r := !narrowFloat(lane.typ), d.rulesOf(kind)
	return lanes2(out, a, b, func(dst, x, y []word) error {
		if !defined(x) || !defined(y) {
			unknownWords(dst, 1, x, y)
			return nil
		}
		if !promised(i.Flags, kind, x, y) {
			poisonWords(dst, 1)
			return nil
		}
		if wide || r != nil {
			p, q := r.number(kind, x), r.number(kind, y)
			if p.Class == softfloat.NaN || q.Class == softfloat.NaN {
				dst[0] = bit(test.unordered)
				return nil
			}
			dst[0] = bit(test.holds(softfloat.Cmp(p, q)))
			return nil
		}
		f, g := floatOf(kind, x[0].v), floatOf(kind, y[0].v)
		switch {
		case math.IsNaN(f) || math.IsNaN(g):
			dst[0] = bit(test.unordered)
		case f < g:
			dst[0] = bit(test.less)
		case f > g:
			dst[0] = bit(test.more)
		default:
			dst[0] = bit(test.equal)
		}
		return nil
	})
}
