package interp

import (
	"math/bits"

	"example.com/reframe/internal/llvm/ir"
)

// x87 is a normal number of x86_fp80: m times a power of two, where the highest bit of m is set (Intel SDM vol. 1, 4.2.2 and 4.4.2). Package
// softfloat computes operations on zeros, subnormals, infinities and NaNs.
type x87 struct {
	neg bool
	exp int // biased exponent
	m   uint64
}

const (
	x87Bias = 1<<14 - 1
	x87Most = 1<<15 - 2
)

// x87Of decodes the words of an x86_fp80 whose bits are all known. It returns false unless the number is normal.
func x87Of(w []word) (x87, bool) {
	e := int(w[1].v & (1<<15 - 1))
	return x87{w[1].v>>15 == 1, e, w[0].v}, w[0].v>>63 == 1 && e >= 1 && e <= x87Most
}

// put rounds the 128-bit significand m:rest to 64 bits, to nearest with ties to even, and stores the number in dst. It returns false if the result is
// not a normal number.
func (x x87) put(dst []word, rest uint64) bool {
	if rest > 1<<63 || rest == 1<<63 && x.m&1 == 1 {
		if x.m++; x.m == 0 {
			x.m, x.exp = 1<<63, x.exp+1
		}
	}
	if x.exp < 1 || x.exp > x87Most {
		return false
	}
	top := uint64(x.exp)
	if x.neg {
		top |= 1 << 15
	}
	dst[0], dst[1] = word{v: x.m}, word{v: top}
	return true
}

// x87Short is the fast path of an operation on two x86_fp80. It returns false if the general step must compute it.
func x87Short(op ir.Op, dst, a, b []word) bool {
	x, ok := x87Of(a)
	y, also := x87Of(b)
	if !ok || !also {
		return false
	}
	switch op {
	case ir.OpFSub:
		y.neg = !y.neg
		return x.sum(y, dst)
	case ir.OpFAdd:
		return x.sum(y, dst)
	case ir.OpFMul:
		hi, lo := bits.Mul64(x.m, y.m) // at least 2^126 and below 2^128
		r := x87{x.neg != y.neg, x.exp + y.exp - x87Bias + 1, hi}
		if hi>>63 == 0 {
			r.m, lo, r.exp = hi<<1|lo>>63, lo<<1, r.exp-1
		}
		return r.put(dst, lo)
	case ir.OpFDiv:
		r := x87{x.neg != y.neg, x.exp - y.exp + x87Bias, 0}
		var rem uint64
		if x.m >= y.m {
			r.m, rem = bits.Div64(x.m>>1, x.m<<63, y.m)
		} else {
			r.m, rem = bits.Div64(x.m, 0, y.m)
			r.exp--
		}
		// put only needs to know whether the remainder is less than, equal to or more than half of the divisor, so rest has one of three values.
		rest := uint64(0)
		switch half := y.m - rem; {
		case rem > half:
			rest = 1<<63 + 1
		case rem == half:
			rest = 1 << 63
		}
		return r.put(dst, rest)
	}
	return false
}

func (x x87) sum(y x87, dst []word) bool {
	if x.exp < y.exp || x.exp == y.exp && x.m < y.m {
		x, y = y, x
	}
	// Shift y right by d bits into hi:lo. If bits of y are shifted out of lo, set its lowest bit.
	var hi, lo uint64
	switch d := uint(x.exp - y.exp); {
	case d < 64:
		hi, lo = y.m>>d, y.m<<(64-d)
	case d < 128:
		if lo = y.m >> (d - 64); lo<<(d-64) != y.m {
			lo |= 1
		}
	default:
		return false
	}
	if x.neg == y.neg {
		m, carry := bits.Add64(x.m, hi, 0)
		if x.m = m; carry == 1 {
			x.m, lo, x.exp = m>>1|1<<63, lo>>1|lo&1|m<<63, x.exp+1
		}
		return x.put(dst, lo)
	}
	lo, borrow := bits.Sub64(0, lo, 0)
	x.m, _ = bits.Sub64(x.m, hi, borrow)
	if x.m == 0 {
		if lo == 0 {
			return false // a zero: the general step computes its sign
		}
		x.m, lo, x.exp = lo, 0, x.exp-64
	}
	n := bits.LeadingZeros64(x.m)
	x.m, lo, x.exp = x.m<<n|lo>>(64-n), lo<<n, x.exp-n
	return x.put(dst, lo)
}
