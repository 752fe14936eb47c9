package interp

import (
	"math/big"

	"example.com/reframe/internal/llvm/ir"
)

// intIntrinsic is a function of integers that is applied lane by lane. f receives the operands as unsigned numbers, and returns any integer, which is
// then reduced to the width. It also returns whether the result is poison. args is the number of integer operands; if flag is set, the last element
// of v is a constant i1 that follows them.
type intIntrinsic struct {
	args int
	flag bool // a constant i1 follows the integers and applies to all lanes
	f    func(width int, v []*big.Int) (*big.Int, bool)
}

var intIntrinsics = map[string]intIntrinsic{
	"ctpop":      {1, false, plainInt(func(w int, v []*big.Int) *big.Int { return big.NewInt(int64(population(v[0]))) })},
	"ctlz":       {1, true, leadingZeros},
	"cttz":       {1, true, trailingZeros},
	"bitreverse": {1, false, plainInt(func(w int, v []*big.Int) *big.Int { return reverse(v[0], w, 1) })},
	"bswap":      {1, false, plainInt(func(w int, v []*big.Int) *big.Int { return reverse(v[0], w, 8) })},
	"abs":        {1, true, absolute},
	"umin":       {2, false, plainInt(func(w int, v []*big.Int) *big.Int { return lesser(v[0], v[1]) })},
	"umax":       {2, false, plainInt(func(w int, v []*big.Int) *big.Int { return greater(v[0], v[1]) })},
	"smin":       {2, false, plainInt(func(w int, v []*big.Int) *big.Int { return lesser(signed(v[0], w), signed(v[1], w)) })},
	"smax":       {2, false, plainInt(func(w int, v []*big.Int) *big.Int { return greater(signed(v[0], w), signed(v[1], w)) })},
	"ucmp":       {2, false, plainInt(func(w int, v []*big.Int) *big.Int { return big.NewInt(int64(v[0].Cmp(v[1]))) })},
	"scmp":       {2, false, plainInt(func(w int, v []*big.Int) *big.Int { return big.NewInt(int64(signed(v[0], w).Cmp(signed(v[1], w)))) })},
	"uadd.sat":   {2, false, saturating((*big.Int).Add, false)},
	"sadd.sat":   {2, false, saturating((*big.Int).Add, true)},
	"usub.sat":   {2, false, saturating((*big.Int).Sub, false)},
	"ssub.sat":   {2, false, saturating((*big.Int).Sub, true)},
	"ushl.sat":   {2, false, shiftSaturating(false)},
	"sshl.sat":   {2, false, shiftSaturating(true)},
	"fshl":       {3, false, plainInt(func(w int, v []*big.Int) *big.Int { return funnel(w, v, false) })},
	"fshr":       {3, false, plainInt(func(w int, v []*big.Int) *big.Int { return funnel(w, v, true) })},
}

func plainInt(f func(width int, v []*big.Int) *big.Int) func(int, []*big.Int) (*big.Int, bool) {
	return func(width int, v []*big.Int) (*big.Int, bool) { return f(width, v), false }
}

func signed(v *big.Int, width int) *big.Int {
	if v.Bit(width-1) == 0 {
		return v
	}
	return new(big.Int).Sub(v, new(big.Int).Lsh(big.NewInt(1), uint(width)))
}

func lesser(a, b *big.Int) *big.Int {
	if a.Cmp(b) < 0 {
		return a
	}
	return b
}

func greater(a, b *big.Int) *big.Int {
	if a.Cmp(b) > 0 {
		return a
	}
	return b
}

func population(v *big.Int) int {
	n := 0
	for k := range v.BitLen() {
		n += int(v.Bit(k))
	}
	return n
}

// leadingZeros and trailingZeros implement ctlz and cttz. For zero they return poison if the flag is set.
func leadingZeros(w int, v []*big.Int) (*big.Int, bool) {
	return big.NewInt(int64(w - v[0].BitLen())), v[0].Sign() == 0 && v[1].Sign() != 0
}

func trailingZeros(w int, v []*big.Int) (*big.Int, bool) {
	if v[0].Sign() == 0 {
		return big.NewInt(int64(w)), v[1].Sign() != 0
	}
	return big.NewInt(int64(v[0].TrailingZeroBits())), false
}

func absolute(w int, v []*big.Int) (*big.Int, bool) {
	r := new(big.Int).Abs(signed(v[0], w))
	return r, r.BitLen() == w && v[1].Sign() != 0
}

// reverse reverses the order of groups of n bits.
func reverse(v *big.Int, width, n int) *big.Int {
	r := new(big.Int)
	for k := range width {
		unit := k / n
		r.SetBit(r, width-(unit+1)*n+k%n, v.Bit(k))
	}
	return r
}

func bounds(width int, isSigned bool) (low, high *big.Int) {
	if !isSigned {
		return new(big.Int), ones(uint(width))
	}
	high = ones(uint(width - 1))
	return new(big.Int).Not(high), high
}

func clamp(v *big.Int, width int, isSigned bool) *big.Int {
	low, high := bounds(width, isSigned)
	return greater(low, lesser(high, v))
}

func saturating(op func(z, a, b *big.Int) *big.Int, isSigned bool) func(int, []*big.Int) (*big.Int, bool) {
	return func(w int, v []*big.Int) (*big.Int, bool) {
		a, b := v[0], v[1]
		if isSigned {
			a, b = signed(a, w), signed(b, w)
		}
		return clamp(op(new(big.Int), a, b), w, isSigned), false
	}
}

func shiftSaturating(isSigned bool) func(int, []*big.Int) (*big.Int, bool) {
	return func(w int, v []*big.Int) (*big.Int, bool) {
		if v[1].Cmp(big.NewInt(int64(w))) >= 0 {
			return new(big.Int), true
		}
		a := v[0]
		if isSigned {
			a = signed(a, w)
		}
		return clamp(new(big.Int).Lsh(a, uint(v[1].Uint64())), w, isSigned), false
	}
}

// funnel shifts the double word v[0]:v[1] left by v[2] modulo the width, and returns the high half. If right is set, it shifts right and returns the
// low half.
func funnel(w int, v []*big.Int, right bool) *big.Int {
	by := uint(new(big.Int).Mod(v[2], big.NewInt(int64(w))).Uint64())
	double := new(big.Int).Or(new(big.Int).Lsh(v[0], uint(w)), v[1])
	if right {
		return double.Rsh(double, by)
	}
	return double.Rsh(double.Lsh(double, by), uint(w))
}

func (x intIntrinsic) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	want := x.args
	if x.flag {
		want++
	}
	if len(args) < want {
		return nil, wrongUse(i)
	}
	in, n := args[0].s.lane()
	to, m := out.s.lane()
	for _, a := range args[:x.args] {
		if !alike(a.s, args[0].s) || in.typ.Kind != ir.IntKind || to.typ.Kind != ir.IntKind || n != m {
			return nil, wrongUse(i)
		}
	}
	if x.flag && args[want-1].s.bits != 1 {
		return nil, wrongUse(i)
	}
	// The loop has a fast path for scalars. Do not use it in the step, so that single-stepping can expose a wrong fast path.
	quick := shortWay(nil)
	if f, _, ok := overloaded(intShorts, i.Call.Callee.(*ir.Func).Name); ok && n > 1 && in.bits <= 64 && to.bits <= 64 {
		quick = f(in.bits, to.bits)
	}
	return func(fr *frame) error {
		for k := range n {
			if quick != nil && quick.lane(fr, out.at, k, args[:want]) {
				continue
			}
			dst := fr.w[out.at+k*to.words : out.at+(k+1)*to.words]
			if err := charge(fr.in, in.words); err != nil {
				return err
			}
			var v []*big.Int
			known, tainted := true, false
			for _, a := range args[:x.args] {
				w := fr.w[a.at+k*in.words : a.at+(k+1)*in.words]
				known, tainted = known && defined(w), tainted || anyPoison(w)
				v = append(v, toBig(w))
			}
			if x.flag {
				w := args[want-1].in(fr)
				known, tainted = known && defined(w), tainted || anyPoison(w)
				v = append(v, toBig(w))
			}
			if !known {
				undefWords(dst, to.bits)
			} else if r, poison := x.f(in.bits, v); poison {
				tainted = true
			} else {
				setBig(dst, r, to.bits)
			}
			if tainted {
				poisonWords(dst, to.bits)
			}
		}
		return nil
	}, nil
}

// overflowIntrinsic is an intrinsic that yields a result and whether the operation overflowed.
type overflowIntrinsic struct {
	op       func(z, a, b *big.Int) *big.Int
	kind     ir.Op // the instruction that computes the result for at most 64 bits
	isSigned bool
}

var overflowIntrinsics = map[string]overflowIntrinsic{
	"uadd": {(*big.Int).Add, ir.OpAdd, false}, "sadd": {(*big.Int).Add, ir.OpAdd, true},
	"usub": {(*big.Int).Sub, ir.OpSub, false}, "ssub": {(*big.Int).Sub, ir.OpSub, true},
	"umul": {(*big.Int).Mul, ir.OpMul, false}, "smul": {(*big.Int).Mul, ir.OpMul, true},
}

func (x overflowIntrinsic) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 2 || out.s.field == nil || out.s.n != 2 || !alike(args[0].s, args[1].s) || !alike(args[0].s, out.s.field[0]) {
		return nil, wrongUse(i)
	}
	lane, n := args[0].s.lane()
	flag, m := out.s.field[1].lane()
	if lane.typ.Kind != ir.IntKind || flag.bits != 1 || n != m {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		for k := range n {
			a := fr.w[args[0].at+k*lane.words : args[0].at+(k+1)*lane.words]
			b := fr.w[args[1].at+k*lane.words : args[1].at+(k+1)*lane.words]
			dst := fr.w[out.at+k*lane.words : out.at+(k+1)*lane.words]
			over := out.at + out.s.at[1] + k
			if err := charge(fr.in, lane.words); err != nil {
				return err
			}
			if !defined(a) || !defined(b) {
				unknownWords(dst, lane.bits, a, b)
				unknownWords(fr.w[over:over+1], 1, a, b)
				continue
			}
			p, q := toBig(a), toBig(b)
			if x.isSigned {
				p, q = signed(p, lane.bits), signed(q, lane.bits)
			}
			r := x.op(new(big.Int), p, q)
			setBig(dst, r, lane.bits)
			fr.w[over] = bit(clamp(r, lane.bits, x.isSigned).Cmp(r) != 0)
		}
		return nil
	}, nil
}

// reduction folds the elements of a vector of integers.
type reduction struct {
	f func(width int, a, b *big.Int) *big.Int
}

var reductions = map[string]reduction{
	"add":  {func(w int, a, b *big.Int) *big.Int { return new(big.Int).And(new(big.Int).Add(a, b), ones(uint(w))) }},
	"mul":  {func(w int, a, b *big.Int) *big.Int { return new(big.Int).And(new(big.Int).Mul(a, b), ones(uint(w))) }},
	"and":  {func(_ int, a, b *big.Int) *big.Int { return new(big.Int).And(a, b) }},
	"or":   {func(_ int, a, b *big.Int) *big.Int { return new(big.Int).Or(a, b) }},
	"xor":  {func(_ int, a, b *big.Int) *big.Int { return new(big.Int).Xor(a, b) }},
	"umin": {func(_ int, a, b *big.Int) *big.Int { return lesser(a, b) }},
	"umax": {func(_ int, a, b *big.Int) *big.Int { return greater(a, b) }},
	"smin": {func(w int, a, b *big.Int) *big.Int {
		if signed(a, w).Cmp(signed(b, w)) < 0 {
			return a
		}
		return b
	}},
	"smax": {func(w int, a, b *big.Int) *big.Int {
		if signed(a, w).Cmp(signed(b, w)) > 0 {
			return a
		}
		return b
	}},
}

func (x reduction) decode(_ *decoder, i *ir.Instr, args []slot, out slot) (step, error) {
	if len(args) != 1 || args[0].s.typ.Kind != ir.VectorKind || args[0].s.n == 0 || !alike(args[0].s.elem, out.s) || out.s.typ.Kind != ir.IntKind {
		return nil, wrongUse(i)
	}
	return func(fr *frame) error {
		all := args[0].in(fr)
		dst := out.in(fr)
		if !defined(all) {
			unknownWords(dst, out.s.bits, all)
			return nil
		}
		r := toBig(all[:out.s.words])
		for k := 1; k < args[0].s.n; k++ {
			if err := charge(fr.in, out.s.words); err != nil {
				return err
			}
			r = x.f(out.s.bits, r, toBig(all[k*out.s.words:(k+1)*out.s.words]))
		}
		setBig(dst, r, out.s.bits)
		return nil
	}, nil
}
