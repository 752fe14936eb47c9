package interp

import (
	"math/big"
	"math/bits"

	"example.com/reframe/internal/llvm/ir"
)

// scaled is an index of a getelementptr that is not constant, and the size of the elements that it counts.
type scaled struct {
	index slot
	by    uint64
}

// gep decodes getelementptr: base + constant + the sum of index*scale, modulo 2^width of the pointer (LangRef, "getelementptr").
func (d *decoder) gep(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, len(i.Args))
	if err != nil {
		return nil, err
	}
	lane, n := out.s.lane()
	if len(args) == 0 || i.Elem == nil || lane.typ.Kind != ir.PointerKind || lane.words != 1 {
		return nil, troublef(KindModule, "getelementptr with %d operands", len(args))
	}
	if index := d.in.layout.IndexBits(lane.typ.AddrSpace); index != lane.bits {
		return nil, unsupported("", "an index of %d bits for a pointer of %d", index, lane.bits)
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
	// Compute a 32-bit address in the upper half of 64 bits, where it wraps correctly.
	shift := 64 - lane.bits
	return func(fr *frame) error {
		for k := range n {
			p := pick(fr, base, k)
			at := address{word: word{p.v << shift, p.u}, offset: offset << shift, poison: isPoison(p)}
			for _, x := range indices {
				index := pick(fr, x.index, k)
				if shift > 0 {
					index = at.cut(index, x.index.s, shift)
				}
				at.add(index, x.by)
			}
			switch {
			case at.poison, at.wraps(i.Flags):
				fr.w[out.at+k] = poisonOf(m)
			case at.u != 0:
				fr.w[out.at+k] = word{u: m}
			default:
				fr.w[out.at+k] = word{v: (at.v + at.offset) >> shift}
			}
		}
		return nil
	}, nil
}

// address is the result of a getelementptr: a base and an offset to it.
type address struct {
	word
	offset           uint64
	poison           bool
	signed, unsigned bool // the offset overflowed as a signed number (signed) or as an unsigned one (unsigned)
}

// cut shifts an index left by shift bits. It records an overflow if the index is wider than the pointer and loses bits.
func (a *address) cut(index word, s *shape, shift int) word {
	low := index.v << shift
	if index.u == 0 {
		lane, _ := s.lane()
		a.signed = a.signed || int64(low)>>shift != int64(index.v)
		a.unsigned = a.unsigned || lane.bits > 64-shift && low>>shift != index.v
	}
	index.v = low
	return index
}

// add adds the product of an index and the size of an element to the offset, and records overflow.
func (a *address) add(index word, by uint64) {
	a.poison = a.poison || isPoison(index)
	a.u |= index.u
	hi, lo := bits.Mul64(index.v, by)
	sum, carry := bits.Add64(a.offset, lo, 0)
	a.unsigned = a.unsigned || hi != 0 || carry != 0
	// The high half of the product of unsigned numbers becomes that of signed numbers (Hacker's Delight, §8-3).
	if int64(index.v) < 0 {
		hi -= by
	}
	a.signed = a.signed || int64(by) < 0 || int64(hi) != int64(lo)>>63 || (a.offset^sum)&(lo^sum)>>63 != 0
	a.offset = sum
}

// wraps reports whether the flags make the address poison (LangRef, "getelementptr"). inbounds and nusw do so if the signed offset overflows, or if
// adding it to the base wraps around the address space. nuw does so if the unsigned offset or sum overflows. The bounds of the object are not checked
// for inbounds, because the access checks them.
func (a *address) wraps(flags ir.Flags) bool {
	if a.u != 0 {
		return false
	}
	sum := a.v + a.offset
	if flags&(ir.InBounds|ir.NUSW) != 0 && (a.signed || (int64(a.offset) >= 0) != (sum >= a.v)) {
		return true
	}
	return flags&ir.NUW != 0 && (a.unsigned || sum < a.v)
}

// pick reads lane k of an index, or its only lane. It sign-extends or truncates the index to 64 bits.
func pick(fr *frame, a slot, k int) word {
	lane, n := a.s.lane()
	if n == 1 {
		k = 0
	}
	w := fr.w[a.at+k*lane.words]
	if w.u == 0 && lane.bits < 64 && lane.typ.Kind == ir.IntKind {
		w.v = signExtend(w.v, lane.bits)
	}
	return w
}

// path follows the indices through the source element type. It returns the constant part of the offset, and the indices that are not constant.
func (d *decoder) path(i *ir.Instr, args []slot) (uint64, []scaled, error) {
	var offset uint64
	var indices []scaled
	t := i.Elem
	for k := 1; k < len(args); k++ {
		if k > 1 && t.Kind == ir.StructKind {
			field, ok := constantIndex(i.Args[k])
			if !ok || field >= uint64(len(t.Fields)) {
				return 0, nil, troublef(KindModule, "getelementptr: index of a field that %v does not have", t)
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

// constantIndex returns a constant field number, or the element of a constant splat.
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
