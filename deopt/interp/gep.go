package interp

import (
	"math/big"

	"reframe/deopt/ir"
)

// scaled is one index of a getelementptr that is not constant.
type scaled struct {
	index slot
	by    uint64
}

// gep decodes getelementptr: base + constant + the sum of index*scale, modulo
// the width of the pointer (LangRef, "getelementptr").
func (d *decoder) gep(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	lane, n := out.s.lane()
	if len(args) == 0 || i.Elem == nil || lane.typ.Kind != ir.PointerKind || lane.words != 1 {
		return nil, troublef(KindModule, "getelementptr with %d operands", len(args))
	}
	offset, indices, err := d.path(i, args)
	if err != nil {
		return nil, err
	}
	base := args[0]
	for _, x := range append(indices, scaled{index: base}) {
		if l, k := x.index.s.lane(); l.bits == 0 || k != 1 && k != n {
			return nil, troublef(KindModule, "getelementptr with an operand of type %v", x.index.s.typ)
		}
	}
	m := maskAt(lane.bits, 0)
	return func(fr *frame) error {
		for k := range n {
			sum := pick(fr, base, k)
			sum.v += offset
			for _, x := range indices {
				w := pick(fr, x.index, k)
				sum.u |= w.u
				sum.v += w.v * x.by
			}
			if sum.u != 0 {
				fr.w[out.at+k] = word{u: m}
				continue
			}
			fr.w[out.at+k] = word{v: sum.v & m}
		}
		return nil
	}, nil
}

// pick reads the k-th lane of an index, or its only one, sign-extended or cut to
// 64 bits.
func pick(fr *frame, a slot, k int) word {
	lane, n := a.s.lane()
	if n == 1 {
		k = 0
	}
	w := fr.w[a.at+k*lane.words]
	if lane.bits < 64 && lane.typ.Kind == ir.IntKind {
		w.v = signExtend(w.v, lane.bits)
	}
	return w
}

// path walks the source element type along the indices.
func (d *decoder) path(i *ir.Instr, args []slot) (uint64, []scaled, error) {
	var offset uint64
	var indices []scaled
	t := i.Elem
	for k := 1; k < len(args); k++ {
		if k > 1 && t.Kind == ir.StructKind {
			field, ok := constantIndex(i.Args[k])
			if !ok || field >= uint64(len(t.Fields)) {
				return 0, nil, troublef(KindModule, "getelementptr: no such field of %v", t)
			}
			offset += d.in.layout.FieldOffset(t, int(field))
			t = t.Fields[field]
			continue
		}
		if k > 1 {
			if t.Kind != ir.ArrayKind && t.Kind != ir.VectorKind {
				return 0, nil, troublef(KindModule, "getelementptr into %v", t)
			}
			t = t.Elem
		}
		size := d.in.layout.Size(t)
		if size == ir.NoSize {
			return 0, nil, troublef(KindModule, "getelementptr over %v, which has no size", t)
		}
		indices = append(indices, scaled{args[k], size})
	}
	return offset, indices, nil
}

// constantIndex reads a field number, or the splat of one.
func constantIndex(v ir.Value) (uint64, bool) {
	c, ok := v.(*ir.Const)
	if ok && c.Kind == ir.ConstAggregate && len(c.Elems) > 0 {
		c = c.Elems[0]
	}
	switch {
	case !ok:
		return 0, false
	case c.Kind == ir.ConstZero:
		return 0, true
	case c.Kind != ir.ConstInt || c.Int == nil || c.Int.Cmp(big.NewInt(1<<31)) > 0:
		return 0, false
	}
	return c.Int.Uint64(), true
}
