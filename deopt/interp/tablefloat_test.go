package interp_test

import (
	"fmt"
	"math/big"
	"testing"

	"example.com/reframe/test/livetest"
)

// float is a float type of the tables: the widths of its exponent and fraction, and the IR literal of a quiet NaN.
type float struct {
	typ
	exp, frac int
	nan       string
}

// explicit reports whether the format stores the leading one of the significand.
func (f float) explicit() bool { return f.ir == "x86_fp80" }

var tableFloats = []float{
	{typ{"half", 16, 0}, 5, 10, "0xH7E00"}, {typ{"bfloat", 16, 0}, 8, 7, "0xR7FC0"},
	{typ{"float", 32, 0}, 8, 23, "0x7FF8000000000000"}, {typ{"double", 64, 0}, 11, 52, "0x7FF8000000000000"},
	{typ{"x86_fp80", 80, 0}, 15, 63, "0xK7FFFC000000000000000"}, {typ{"fp128", 128, 0}, 15, 112, "0xL00000000000000007FFF800000000000"},
}

// number returns the bits of a float: its sign, its unbiased exponent, and the first and last bits of its fraction.
func (f float) number(neg bool, exp int, high, low int64) *big.Int {
	bias := 1<<(f.exp-1) - 1
	frac := new(big.Int).Lsh(big.NewInt(high), uint(f.frac-4))
	frac.Or(frac, big.NewInt(low))
	return f.join(neg, exp+bias, frac)
}

func (f float) join(neg bool, biased int, frac *big.Int) *big.Int {
	v := new(big.Int).Set(frac)
	width := f.frac
	if f.explicit() {
		if biased > 0 {
			v.SetBit(v, f.frac, 1)
		}
		width++
	}
	v.Or(v, new(big.Int).Lsh(big.NewInt(int64(biased)), uint(width)))
	if neg {
		v.SetBit(v, f.bits-1, 1)
	}
	return v
}

// values returns zeros, infinities, NaN, the limits of subnormal and normal numbers, and numbers for arithmetic. Among the sums, products and
// quotients of these are exact results, results that are rounded up, down and at ties, cancellation, overflow and underflow.
func (f float) values() []*big.Int {
	top := 1<<f.exp - 1
	bias := top >> 1
	all := new(big.Int).Sub(new(big.Int).Lsh(big.NewInt(1), uint(f.frac)), big.NewInt(1))
	quiet := new(big.Int).Lsh(big.NewInt(1), uint(f.frac-1))
	list := []*big.Int{
		f.join(false, 0, new(big.Int)), f.join(true, 0, new(big.Int)),
		f.join(false, top, new(big.Int)), f.join(true, top, new(big.Int)), f.join(false, top, quiet),
		f.join(false, 0, big.NewInt(1)), f.join(true, 0, big.NewInt(3)), f.join(false, 0, all), f.join(false, 1, new(big.Int)),
		f.join(false, top-1, all), f.join(true, top-1, all),
		f.number(false, 0, 0, 0), f.number(true, 0, 0, 0), f.number(false, 0, 0, 1), f.number(true, 0, 8, 0), f.number(false, 1, 4, 0),
		f.number(false, -1, 0, 0), f.number(false, -1, 15, 7), f.number(true, -2, 5, 1), f.number(false, -f.frac-1, 0, 0), f.number(false, -f.frac-2, 0, 1),
		f.number(false, min(f.frac, bias-1), 3, 1), f.number(true, min(f.frac-1, bias-1), 3, 1), f.number(false, 3, 9, 5), f.number(false, 5, 1, 0),
		f.number(false, -bias/2, 2, 3), f.number(false, bias/2, 2, 3), f.number(false, 6, 14, 0), f.number(true, 6, 15, 1),
	}
	return list
}

// oneNaN returns the end of a body: %r is %x with every NaN replaced by the same NaN.
func oneNaN(t typ, nan string) string {
	constant := nan
	one := t.with(intType(1))
	if t.lanes > 0 {
		constant = "<"
		for k := range t.lanes {
			if k > 0 {
				constant += ", "
			}
			constant += t.element() + " " + nan
		}
		constant += ">"
	}
	return fmt.Sprintf("  %%nan = fcmp uno %s %%x, %%x\n  %%r = select %s %%nan, %s %s, %s %%x\n", t.ir, one.ir, t.ir, constant, t.ir)
}

// lanesOf returns the scalar and vector types of a format to test. There are no vectors of x86_fp80, because llc puts their elements at the stride of
// an array in memory, but LangRef says that vectors have no padding.
func (f float) lanesOf() []typ {
	if f.explicit() {
		return []typ{f.typ}
	}
	if f.bits == 128 {
		return []typ{f.typ, f.vector(2)}
	}
	return []typ{f.typ, f.vector(2), f.vector(3), f.vector(5), f.vector(8)}
}

func TestFloatsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	var g table
	for _, f := range tableFloats {
		for _, x := range f.lanesOf() {
			pair := []typ{x, x}
			rows := rowsOf(pair, [][]*big.Int{f.values(), f.values()}, nil)
			for _, op := range []string{"fadd", "fsub", "fmul", "fdiv", "frem"} {
				if op == "frem" && f.ir == "fp128" {
					continue // frem calls fmodl, which takes x86_fp80 on x86-64
				}
				g.add(op+" "+x.ir, pair, x, fmt.Sprintf("  %%x = %s %s %%a, %%b\n", op, x.ir)+oneNaN(x, f.nan), rows)
			}
			one := x.with(intType(1))
			for _, pred := range []string{"false", "oeq", "ogt", "oge", "olt", "ole", "one", "ord", "ueq", "ugt", "uge", "ult", "ule", "une", "uno", "true"} {
				g.add("fcmp "+pred+" "+x.ir, pair, one, fmt.Sprintf("  %%r = fcmp %s %s %%a, %%b\n", pred, x.ir), rows)
			}
			single := rowsOf([]typ{x}, [][]*big.Int{f.values()}, nil)
			g.add("fneg "+x.ir, []typ{x}, x, fmt.Sprintf("  %%x = fneg %s %%a\n", x.ir)+oneNaN(x, f.nan), single)
		}
	}
	g.check(t, "19")
}

func TestFloatCastsAreAsNative(t *testing.T) {
	var g table
	for _, f := range tableFloats {
		for _, to := range tableFloats {
			if f.bits == to.bits || to.ir == "bfloat" && f.bits > 64 || f.ir == "bfloat" && to.bits > 64 {
				continue // llc 19 fails between bfloat and the wide formats, or reads memory that it has not written
			}
			op := "fptrunc"
			if f.bits < to.bits {
				op = "fpext"
			}
			for _, x := range f.lanesOf() {
				y := x.with(to.typ)
				if to.explicit() && x.lanes > 0 || x.lanes > 2 && to.bits == 128 {
					continue
				}
				g.add(op+" "+x.ir+" to "+y.ir, []typ{x}, y, fmt.Sprintf("  %%x = %s %s %%a to %s\n", op, x.ir, y.ir)+oneNaN(y, to.nan),
					rowsOf([]typ{x}, [][]*big.Int{f.values()}, nil))
			}
		}
		for _, bits := range []int{1, 7, 8, 13, 16, 24, 32, 33, 63, 64, 65, 100, 127, 128} {
			for _, op := range []string{"uitofp", "sitofp"} {
				if f.bits == 16 && bits > 64 {
					continue
				}
				g.add(fmt.Sprintf("%s i%d to %s", op, bits, f.ir), []typ{intType(bits)}, f.typ,
					fmt.Sprintf("  %%r = %s i%d %%a to %s\n", op, bits, f.ir), rowsOf([]typ{intType(bits)}, [][]*big.Int{edges(bits)}, nil))
			}
			for _, op := range []string{"fptoui", "fptosi"} {
				var keep []*big.Int
				for _, v := range f.values() {
					if f.inRange(v, bits, op == "fptosi") {
						keep = append(keep, v)
					}
				}
				g.add(fmt.Sprintf("%s %s to i%d", op, f.ir, bits), []typ{f.typ}, intType(bits),
					fmt.Sprintf("  %%r = %s %s %%a to i%d\n", op, f.ir, bits), rowsOf([]typ{f.typ}, [][]*big.Int{keep}, nil))
			}
		}
	}
	g.check(t, "19")
}

// inRange reports whether a float fits an integer type after truncation. It looks only at the exponent, so it excludes some floats that fit.
func (f float) inRange(v *big.Int, bits int, signed bool) bool {
	width := f.frac
	if f.explicit() {
		width++
	}
	exp := int(new(big.Int).And(new(big.Int).Rsh(v, uint(width)), big.NewInt(1<<f.exp-1)).Int64()) - (1<<(f.exp-1) - 1)
	negative := v.Bit(f.bits-1) == 1
	switch {
	case exp > 1<<(f.exp-1)-1:
		return false // infinity or NaN
	case exp < 0:
		return true // the fraction is truncated
	case negative && !signed:
		return false
	case signed:
		return exp < bits-1
	}
	return exp < bits
}
