package interp

import (
	"math/bits"

	"example.com/reframe/internal/llvm/ir"
)

// intShorts holds the fast paths of integer intrinsics, for operands of width bits and a result of to bits. An i1 constant may follow the integers.
var intShorts = map[string]func(width, to int) shortWay{
	"ctpop":      bitsOf(func(w int, a uint64) uint64 { return uint64(bits.OnesCount64(a)) }),
	"bitreverse": bitsOf(func(w int, a uint64) uint64 { return bits.Reverse64(a) >> (64 - w) }),
	"bswap":      bitsOf(func(w int, a uint64) uint64 { return bits.ReverseBytes64(a) >> (64 - w) }),
	"ctlz": func(w, _ int) shortWay {
		return func(a, zeroIsPoison, _ uint64) (uint64, bool) {
			return uint64(bits.LeadingZeros64(a) - (64 - w)), a != 0 || zeroIsPoison == 0
		}
	},
	"cttz": func(w, _ int) shortWay {
		return func(a, zeroIsPoison, _ uint64) (uint64, bool) {
			return uint64(min(bits.TrailingZeros64(a), w)), a != 0 || zeroIsPoison == 0
		}
	},
	"abs": func(w, _ int) shortWay {
		sign, m := uint64(1)<<(w-1), maskAt(w, 0)
		return func(a, leastIsPoison, _ uint64) (uint64, bool) {
			if a&sign == 0 {
				return a, true
			}
			return -a & m, a != sign || leastIsPoison == 0
		}
	},
	"umin": chosen(false, func(less bool) bool { return less }), "umax": chosen(false, func(less bool) bool { return !less }),
	"smin": chosen(true, func(less bool) bool { return less }), "smax": chosen(true, func(less bool) bool { return !less }),
	"ucmp":     threeWay(false),
	"scmp":     threeWay(true),
	"uadd.sat": saturated(ir.OpAdd, false), "sadd.sat": saturated(ir.OpAdd, true),
	"usub.sat": saturated(ir.OpSub, false), "ssub.sat": saturated(ir.OpSub, true),
	"ushl.sat": shiftSaturated(false), "sshl.sat": shiftSaturated(true),
	"fshl": funnelled(false), "fshr": funnelled(true),
}

func bitsOf(f func(w int, a uint64) uint64) func(int, int) shortWay {
	return func(w, _ int) shortWay { return func(a, _, _ uint64) (uint64, bool) { return f(w, a), true } }
}

// flipped returns the sign bit if isSigned is set, else 0. With that bit flipped in both numbers, an unsigned comparison gives their order.
func flipped(w int, isSigned bool) uint64 {
	if isSigned {
		return 1 << (w - 1)
	}
	return 0
}

// chosen returns the fast path of a minimum if first(true) is true, else of a maximum.
func chosen(isSigned bool, first func(less bool) bool) func(int, int) shortWay {
	return func(w, _ int) shortWay {
		flip := flipped(w, isSigned)
		if first(true) {
			return func(a, b, _ uint64) (uint64, bool) { return min(a^flip, b^flip) ^ flip, true }
		}
		return func(a, b, _ uint64) (uint64, bool) { return max(a^flip, b^flip) ^ flip, true }
	}
}

// threeWay returns the fast path of scmp or ucmp: -1, 0 or 1 in the width of the result.
func threeWay(isSigned bool) func(int, int) shortWay {
	return func(w, to int) shortWay {
		flip, less := flipped(w, isSigned), maskAt(to, 0)
		return func(a, b, _ uint64) (uint64, bool) {
			switch a, b := a^flip, b^flip; {
			case a < b:
				return less, true
			case a > b:
				return 1, true
			}
			return 0, true
		}
	}
}

// saturated returns the fast path of a sum or difference that is clamped to the range of the type.
func saturated(op ir.Op, isSigned bool) func(int, int) shortWay {
	return func(w, _ int) shortWay {
		m, sign := maskAt(w, 0), uint64(1)<<(w-1)
		if !isSigned {
			end := uint64(0)
			if op == ir.OpAdd {
				end = m
			}
			return func(a, b, _ uint64) (uint64, bool) {
				if r := wrap(op, a, b) & m; !overflowsUnsigned(op, w, a, b, r) {
					return r, true
				}
				return end, true
			}
		}
		return func(a, b, _ uint64) (uint64, bool) {
			r := wrap(op, a, b) & m
			switch {
			case !overflowsSigned(op, w, a, b, r):
				return r, true
			case a&sign != 0:
				return sign, true
			}
			return sign - 1, true
		}
	}
}

func shiftSaturated(isSigned bool) func(int, int) shortWay {
	return func(w, _ int) shortWay {
		m, sign, cut := maskAt(w, 0), uint64(1)<<(w-1), uint8(64-w)
		return func(a, b, _ uint64) (uint64, bool) {
			if b >= uint64(w) {
				return 0, false
			}
			r := a << b & m
			switch {
			case !isSigned && r>>b == a, isSigned && extended(r, cut)>>b == extended(a, cut):
				return r, true
			case !isSigned:
				return m, true
			case a&sign != 0:
				return sign, true
			}
			return sign - 1, true
		}
	}
}

// funnelled returns the fast path of a funnel shift of the double word a:b by c modulo the width.
func funnelled(right bool) func(int, int) shortWay {
	return func(w, _ int) shortWay {
		m, n := maskAt(w, 0), uint64(w)
		return func(a, b, c uint64) (uint64, bool) {
			left := c % n
			switch {
			case left == 0 && right:
				return b, true
			case left == 0:
				return a, true
			case right:
				left = n - left
			}
			return (a<<left | b>>(n-left)) & m, true
		}
	}
}

// short returns the fast path of the intrinsic for operands of w bits.
func (x overflowIntrinsic) short(w int) shortPair {
	m, over := maskAt(w, 0), overflowsUnsigned
	if x.isSigned {
		over = overflowsSigned
	}
	return func(a, b uint64) (uint64, bool) {
		r := wrap(x.kind, a, b) & m
		return r, over(x.kind, w, a, b, r)
	}
}

// exactShort returns the fast path of a division or right shift with the flag exact, whose result is poison if a remainder or bit is lost.
func exactShort(op ir.Op, w int) shortWay {
	cut, m, n := uint8(64-w), maskAt(w, 0), uint64(w)
	switch op {
	case ir.OpLShr, ir.OpAShr:
		return func(a, b, _ uint64) (uint64, bool) {
			if b >= n || a>>b<<b != a {
				return 0, false
			}
			if op == ir.OpLShr {
				return a >> b, true
			}
			return uint64(extended(a, cut)>>b) & m, true
		}
	case ir.OpUDiv:
		return func(a, b, _ uint64) (uint64, bool) {
			if b == 0 || a%b != 0 {
				return 0, false
			}
			return a / b, true
		}
	}
	return func(a, b, _ uint64) (uint64, bool) {
		x, y := extended(a, cut), extended(b, cut)
		if uint64(y+1) <= 1 || x%y != 0 { // the divisor is 0 or -1
			return 0, false
		}
		return uint64(x/y) & m, true
	}
}
