package interp

import (
	"math/big"
	"math/bits"

	"example.com/reframe/internal/llvm/ir"
)

// maxFree is the number of words per lane, and of lanes, up to which arithmetic is charged no more than its own step. Wider arithmetic is charged the
// square of its words, because multiplication and division take quadratic time.
const maxFree = 64

func charge(in *Interp, words int) error {
	if words <= maxFree {
		return nil
	}
	return in.work(uint64(words) * uint64(words))
}

// chargeLanes counts one step for each of n lanes if n is more than maxFree.
func chargeLanes(in *Interp, n int) error {
	if n <= maxFree {
		return nil
	}
	return in.work(64 * uint64(n))
}

// lanes2 returns a step that applies f to each lane of two values.
func lanes2(out, a, b slot, f func(dst, a, b []word) error) (step, error) {
	s, n := out.s.lane()
	as, an := a.s.lane()
	bs, bn := b.s.lane()
	if an != n || bn != n || as.bits == 0 || bs.bits == 0 || s.bits == 0 {
		return nil, troublef(KindModule, "operands of types %v and %v for a result of type %v", a.s.typ, b.s.typ, out.s.typ)
	}
	return func(fr *frame) error {
		if err := chargeLanes(fr.in, n); err != nil {
			return err
		}
		for k := range n {
			if err := charge(fr.in, max(s.words, as.words)); err != nil {
				return err
			}
			o, x, y := out.at+k*s.words, a.at+k*as.words, b.at+k*bs.words
			if err := f(fr.w[o:o+s.words], fr.w[x:x+as.words], fr.w[y:y+bs.words]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

// lanes1 returns a step that applies f to each lane of a value.
func lanes1(out, a slot, f func(dst, a []word) error) (step, error) {
	s, n := out.s.lane()
	as, an := a.s.lane()
	if an != n || as.bits == 0 || s.bits == 0 {
		return nil, troublef(KindModule, "an operand of type %v for a result of type %v", a.s.typ, out.s.typ)
	}
	return func(fr *frame) error {
		if err := chargeLanes(fr.in, n); err != nil {
			return err
		}
		for k := range n {
			if err := charge(fr.in, max(s.words, as.words)); err != nil {
				return err
			}
			o, x := out.at+k*s.words, a.at+k*as.words
			if err := f(fr.w[o:o+s.words], fr.w[x:x+as.words]); err != nil {
				return err
			}
		}
		return nil
	}, nil
}

func (d *decoder) arith(i *ir.Instr, out slot) (step, error) {
	args, err := d.operands(i, 2)
	if err != nil {
		return nil, err
	}
	lane, n := out.s.lane()
	a, b := args[0], args[1]
	if !alike(a.s, out.s) || !alike(b.s, out.s) || lane.typ.Kind != ir.IntKind {
		return nil, troublef(KindModule, "%v of %v and %v", i.Op, a.s.typ, b.s.typ)
	}
	if lane.bits > 64 {
		return lanes2(out, a, b, wideArith(i.Op, lane.bits, i.Flags))
	}
	f := narrowArith(i.Op, lane.bits, i.Flags)
	if n == 1 {
		return func(fr *frame) (err error) {
			fr.w[out.at], err = f(fr.w[a.at], fr.w[b.at])
			return err
		}, nil
	}
	return lanes2(out, a, b, func(dst, x, y []word) (err error) {
		dst[0], err = f(x[0], y[0])
		return err
	})
}

// narrowArith is an operation on integers of at most 64 bits.
func narrowArith(op ir.Op, width int, flags ir.Flags) func(a, b word) (word, error) {
	f, poison := narrowUndef(op, width, flags), poisonOf(maskAt(width, 0))
	return func(a, b word) (word, error) {
		if a.u|b.u != 0 && (isPoison(a) || isPoison(b)) {
			if isPoison(b) && divides(op) {
				return word{}, notKnown([]word{b}, "the divisor")
			}
			return poison, nil
		}
		return f(a, b)
	}
}

// divides reports whether an operation is a division, whose behavior is undefined for an undefined divisor.
func divides(op ir.Op) bool {
	return op == ir.OpUDiv || op == ir.OpSDiv || op == ir.OpURem || op == ir.OpSRem
}

// narrowUndef is narrowArith for operands with undefined bits but no poison.
func narrowUndef(op ir.Op, width int, flags ir.Flags) func(a, b word) (word, error) {
	m := maskAt(width, 0)
	poison := poisonOf(m)
	switch op {
	case ir.OpAnd:
		return func(a, b word) (word, error) {
			return word{a.v & b.v, (a.u | b.u) & (a.v | a.u) & (b.v | b.u)}, nil
		}
	case ir.OpOr:
		return func(a, b word) (word, error) {
			if flags&ir.Disjoint != 0 && a.v&b.v != 0 {
				return poison, nil
			}
			return word{a.v | b.v, (a.u | b.u) &^ (a.v | b.v)}, nil
		}
	case ir.OpXor:
		return func(a, b word) (word, error) {
			u := a.u | b.u
			return word{(a.v ^ b.v) &^ u, u}, nil
		}
	case ir.OpShl, ir.OpLShr, ir.OpAShr:
		return func(a, b word) (word, error) { return narrowShift(op, width, flags, a, b), nil }
	case ir.OpAdd, ir.OpSub, ir.OpMul:
		return func(a, b word) (word, error) {
			r := wrap(op, a.v, b.v) & m
			if u := a.u | b.u; u != 0 {
				// Carries only go upwards: all bits below the lowest undefined bit are known.
				u = -(u & -u) & m
				if op == ir.OpMul && flags == 0 {
					u = productUndef(a, b) & m
				}
				return word{r &^ u, u}, nil
			}
			if flags != 0 && overflows(op, width, flags, a.v, b.v, r) {
				return poison, nil
			}
			return word{v: r}, nil
		}
	}
	return func(a, b word) (word, error) { return narrowDivide(op, width, flags, a, b) }
}

// productUndef returns the undefined bits of a product. An undefined bit at position i affects no bit below i+j, where j is the position of the
// lowest bit of the other factor that may be set.
func productUndef(a, b word) uint64 {
	at := min(bits.TrailingZeros64(a.u)+bits.TrailingZeros64(b.v|b.u), bits.TrailingZeros64(b.u)+bits.TrailingZeros64(a.v|a.u))
	if at >= 64 {
		return 0
	}
	return ^uint64(0) << at
}

func wrap(op ir.Op, a, b uint64) uint64 {
	switch op {
	case ir.OpAdd:
		return a + b
	case ir.OpSub:
		return a - b
	}
	return a * b
}

// overflows reports whether nuw or nsw makes the result poison (LangRef, "add").
func overflows(op ir.Op, width int, flags ir.Flags, a, b, r uint64) bool {
	if flags&ir.NUW != 0 && overflowsUnsigned(op, width, a, b, r) {
		return true
	}
	return flags&ir.NSW != 0 && overflowsSigned(op, width, a, b, r)
}

func overflowsUnsigned(op ir.Op, width int, a, b, r uint64) bool {
	switch op {
	case ir.OpAdd:
		return r < a
	case ir.OpSub:
		return a < b
	}
	hi, lo := bits.Mul64(a, b)
	return hi != 0 || lo != lo&maskAt(width, 0)
}

func overflowsSigned(op ir.Op, width int, a, b, r uint64) bool {
	sa, sb, sr := int64(signExtend(a, width)), int64(signExtend(b, width)), int64(signExtend(r, width))
	switch op {
	case ir.OpAdd:
		return sa < 0 == (sb < 0) && sr < 0 != (sa < 0)
	case ir.OpSub:
		return sa < 0 != (sb < 0) && sr < 0 != (sa < 0)
	}
	hi, lo := bits.Mul64(uint64(sa), uint64(sb))
	// The high half of the product of unsigned numbers becomes that of signed numbers (Hacker's Delight, §8-3).
	if sa < 0 {
		hi -= uint64(sb)
	}
	if sb < 0 {
		hi -= uint64(sa)
	}
	return int64(lo) != sr || int64(hi) != sr>>63
}

func narrowShift(op ir.Op, width int, flags ir.Flags, a, b word) word {
	m := maskAt(width, 0)
	switch {
	case b.v >= uint64(width):
		return poisonOf(m) // undefined bits can only make the shift amount larger
	case b.u != 0:
		return word{u: m}
	}
	switch op {
	case ir.OpShl:
		r := word{a.v << b.v & m, a.u << b.v & m}
		if flags&ir.NUW != 0 && r.v>>b.v != a.v&^a.u || flags&ir.NSW != 0 && a.u == 0 &&
			int64(signExtend(r.v, width))>>b.v != int64(signExtend(a.v, width)) {
			return poisonOf(m)
		}
		return r
	case ir.OpLShr:
		if flags&ir.Exact != 0 && a.v>>b.v<<b.v != a.v {
			return poisonOf(m)
		}
		return word{a.v >> b.v, a.u >> b.v}
	}
	if flags&ir.Exact != 0 && a.v>>b.v<<b.v != a.v {
		return poisonOf(m)
	}
	return word{
		uint64(int64(signExtend(a.v, width))>>b.v) & m,
		uint64(int64(signExtend(a.u, width))>>b.v) & m,
	}
}

func narrowDivide(op ir.Op, width int, flags ir.Flags, a, b word) (word, error) {
	m := maskAt(width, 0)
	switch {
	case b.u != 0:
		return word{}, notKnown([]word{b}, "the divisor")
	case b.v == 0:
		return word{}, troublef(KindDivision, "division by zero")
	case a.u != 0:
		return word{u: m}, nil
	}
	sa, sb := int64(signExtend(a.v, width)), int64(signExtend(b.v, width))
	if (op == ir.OpSDiv || op == ir.OpSRem) && sb == -1 && a.v == 1<<uint(width-1) {
		return word{}, troublef(KindDivision, "division of %d by -1 overflows", sa)
	}
	var q, rem uint64
	switch op {
	case ir.OpUDiv, ir.OpURem:
		q, rem = a.v/b.v, a.v%b.v
	default:
		q, rem = uint64(sa/sb)&m, uint64(sa%sb)&m
	}
	if op == ir.OpURem || op == ir.OpSRem {
		return word{v: rem}, nil
	}
	if flags&ir.Exact != 0 && rem != 0 {
		return poisonOf(m), nil
	}
	return word{v: q}, nil
}

// wideArith is an operation on integers of more than 64 bits.
func wideArith(op ir.Op, width int, flags ir.Flags) func(dst, a, b []word) error {
	f := wideUndef(op, width, flags)
	return func(dst, a, b []word) error {
		switch {
		case divides(op) && !defined(b):
			return notKnown(b, "the divisor")
		case anyPoison(a, b):
			poisonWords(dst, width)
			return nil
		}
		return f(dst, a, b)
	}
}

// wideUndef is wideArith for operands with undefined bits but no poison.
func wideUndef(op ir.Op, width int, flags ir.Flags) func(dst, a, b []word) error {
	switch op {
	case ir.OpAnd, ir.OpOr, ir.OpXor:
		// Bitwise operations treat each word independently, except for poison.
		f := narrowUndef(op, 64, flags)
		return func(dst, a, b []word) error {
			for i := range dst {
				dst[i], _ = f(a[i], b[i])
			}
			if anyPoison(dst) {
				poisonWords(dst, width)
			}
			return nil
		}
	case ir.OpShl, ir.OpLShr, ir.OpAShr:
		return func(dst, a, b []word) error { wideShift(op, width, flags, dst, a, b); return nil }
	}
	return func(dst, a, b []word) error {
		if divides(op) && toBig(b).Sign() == 0 {
			return troublef(KindDivision, "division by zero")
		}
		if !defined(a) || !defined(b) {
			if divides(op) {
				undefWords(dst, width)
				return nil
			}
			wideCarry(op, width, flags, dst, a, b)
			return nil
		}
		r, bad, err := wideResult(op, width, flags, a, b)
		if err != nil {
			return err
		}
		setBig(dst, r, width)
		if bad {
			poisonWords(dst, width)
		}
		return nil
	}
}

// wideCarry adds, subtracts or multiplies values with undefined bits. Carries only go upwards, so all bits below the lowest undefined bit are known.
func wideCarry(op ir.Op, width int, flags ir.Flags, dst, a, b []word) {
	r, _, _ := wideResult(op, width, 0, a, b) // cannot fail without flags and division
	undef := func(w word) uint64 { return w.u }
	set := func(w word) uint64 { return w.v | w.u }
	lowest := min(lowestBit(a, undef), lowestBit(b, undef))
	if op == ir.OpMul && flags == 0 {
		lowest = min(lowestBit(a, undef)+lowestBit(b, set), lowestBit(b, undef)+lowestBit(a, set)) // see productUndef
	}
	setBig(dst, r, width)
	for i := lowest / 64; i < len(dst); i++ {
		u := maskAt(width, i)
		if i == lowest/64 {
			u &= ^uint64(0) << (lowest % 64)
		}
		dst[i] = word{dst[i].v &^ u, u}
	}
}

// lowestBit returns the position of the lowest bit that is set in of(word) for the words of w, or 64*len(w) if no bit is set.
func lowestBit(w []word, of func(word) uint64) int {
	for i := range w {
		if b := of(w[i]); b != 0 {
			return 64*i + bits.TrailingZeros64(b)
		}
	}
	return 64 * len(w)
}

func wideResult(op ir.Op, width int, flags ir.Flags, a, b []word) (r *big.Int, bad bool, err error) {
	ua, ub, sa, sb := toBig(a), toBig(b), toSigned(a, width), toSigned(b, width)
	exact := func(x, y *big.Int) (*big.Int, bool, error) {
		q, rem := new(big.Int).QuoRem(x, y, new(big.Int))
		if op == ir.OpURem || op == ir.OpSRem {
			return rem, false, nil
		}
		return q, flags&ir.Exact != 0 && rem.Sign() != 0, nil
	}
	var u, s *big.Int
	switch op {
	case ir.OpAdd:
		u, s = new(big.Int).Add(ua, ub), new(big.Int).Add(sa, sb)
	case ir.OpSub:
		u, s = new(big.Int).Sub(ua, ub), new(big.Int).Sub(sa, sb)
	case ir.OpMul:
		u, s = new(big.Int).Mul(ua, ub), new(big.Int).Mul(sa, sb)
	case ir.OpUDiv, ir.OpURem:
		return exact(ua, ub)
	default:
		if sb.IsInt64() && sb.Int64() == -1 && sa.Sign() < 0 && !fitsSigned(new(big.Int).Neg(sa), width) {
			return nil, false, troublef(KindDivision, "division of %v by -1 overflows", sa)
		}
		return exact(sa, sb)
	}
	bad = flags&ir.NUW != 0 && (u.Sign() < 0 || u.BitLen() > width) || flags&ir.NSW != 0 && !fitsSigned(s, width)
	return u, bad, nil
}

func fitsSigned(v *big.Int, width int) bool {
	if v.Sign() < 0 {
		v = new(big.Int).Not(v)
	}
	return v.BitLen() < width
}

func wideShift(op ir.Op, width int, flags ir.Flags, dst, a, b []word) {
	n := toBig(b)
	switch {
	case !n.IsUint64() || n.Uint64() >= uint64(width):
		poisonWords(dst, width)
		return
	case !defined(b):
		undefWords(dst, width)
		return
	}
	by := uint(n.Uint64())
	und := make([]word, len(a))
	for i, x := range a {
		und[i].v = x.u
	}
	shift := func(w []word) *big.Int {
		switch op {
		case ir.OpShl:
			return new(big.Int).Lsh(toBig(w), by)
		case ir.OpLShr:
			return new(big.Int).Rsh(toBig(w), by)
		}
		return new(big.Int).Rsh(toSigned(w, width), by)
	}
	r, u := shift(a), shift(und)
	bad := false
	switch {
	case op == ir.OpShl:
		bad = flags&ir.NUW != 0 && r.BitLen() > width ||
			flags&ir.NSW != 0 && defined(a) && !fitsSigned(new(big.Int).Lsh(toSigned(a, width), by), width)
	case flags&ir.Exact != 0:
		bad = toBig(a).TrailingZeroBits() < by && toBig(a).Sign() != 0
	}
	setBig(dst, r, width)
	setBig(und, u, width)
	for i := range dst {
		dst[i].u = und[i].v
		dst[i].v &^= dst[i].u
	}
	if bad {
		poisonWords(dst, width)
	}
}
