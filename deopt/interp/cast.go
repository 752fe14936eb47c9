package interp

import (
	"example.com/reframe/internal/llvm/ir"
)

// resize decodes the conversions between integers and pointers, which keep, truncate or extend the bits.
func (d *decoder) resize(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	from, _ := a.s.lane()
	to, _ := out.s.lane()
	if from.typ.Float() || to.typ.Float() {
		return nil, troublef(KindModule, "%v of %v to %v", i.Op, a.s.typ, out.s.typ)
	}
	if i.Op == ir.OpAddrSpaceCast && from.bits != to.bits {
		return nil, unsupported("", "addrspacecast of %v to %v", a.s.typ, out.s.typ)
	}
	// poisons checks the flags with which a result may be poison: trunc nuw and nsw, zext nneg (LangRef).
	poisons := func(a, dst []word) bool {
		if !defined(a) {
			return false
		}
		switch {
		case i.Op == ir.OpTrunc && from.bits <= 64:
			x, y := a[0].v, dst[0].v
			return i.Flags&ir.NUW != 0 && x != y || i.Flags&ir.NSW != 0 && signExtend(x, from.bits) != signExtend(y, to.bits)
		case i.Op == ir.OpZExt && i.Flags&ir.NNeg != 0:
			return a[(from.bits-1)/64].v>>uint((from.bits-1)%64) == 1
		case i.Op != ir.OpTrunc:
			return false
		case i.Flags&ir.NUW != 0 && toBig(a).Cmp(toBig(dst)) != 0:
			return true
		}
		return i.Flags&ir.NSW != 0 && toSigned(a, from.bits).Cmp(toSigned(dst, to.bits)) != 0
	}
	return lanes1(out, a, func(dst, src []word) error {
		if anyPoison(src) {
			poisonWords(dst, to.bits)
			return nil
		}
		extend(dst, src, from.bits, to.bits, i.Op == ir.OpSExt)
		if i.Flags&(ir.NNeg|ir.NUW|ir.NSW) != 0 && poisons(src, dst) {
			poisonWords(dst, to.bits)
		}
		return nil
	})
}

// extend copies an integer to another width. Undefined bits stay undefined, and an undefined sign bit extends to undefined bits.
func extend(dst, src []word, from, to int, signed bool) {
	n := copy(dst, src)
	if to > from {
		top := word{}
		last := (from - 1) / 64
		if signed {
			bit := uint(from-1) % 64
			top = word{-(src[last].v >> bit & 1), -(src[last].u >> bit & 1)}
		}
		for i := n; i < len(dst); i++ {
			dst[i] = top
		}
		keep := maskAt(from, last)
		dst[last].v |= top.v &^ keep
		dst[last].u |= top.u &^ keep
	}
	last := len(dst) - 1
	dst[last].v &= maskAt(to, last)
	dst[last].u &= maskAt(to, last)
}

func (d *decoder) bitcast(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 1)
	if err != nil {
		return nil, err
	}
	a := args[0]
	from, n := a.s.lane()
	to, k := out.s.lane()
	switch {
	case from.bits == 0 || to.bits == 0 || from.bits*n != to.bits*k:
		return nil, troublef(KindModule, "bitcast of %v to %v", a.s.typ, out.s.typ)
	case n == k:
		return func(fr *frame) error {
			copy(out.in(fr), a.in(fr))
			return nil
		}, nil
	case d.in.layout.BigEndian:
		return nil, unsupported("", "a bitcast that changes the number of elements in big-endian order")
	}
	size := (from.bits*n + 7) / 8
	whole := leaf{bits: from.bits, packed: n}
	parts := leaf{bits: to.bits, packed: k}
	return func(fr *frame) error {
		data, shadow := make([]byte, size), make([]byte, size)
		whole.encode(data, shadow, a.in(fr), false)
		parts.decode(out.in(fr), data, shadow, false)
		return nil
	}, nil
}
