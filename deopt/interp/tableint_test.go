package interp_test

import (
	"fmt"
	"math/big"
	"testing"

	"example.com/reframe/test/livetest"
)

var tableWidths = []int{1, 7, 8, 13, 16, 24, 32, 33, 63, 64, 65, 100, 127, 128, 200, 256, 1000, 4096}

var tableInts = func() []typ {
	var list []typ
	for _, w := range tableWidths {
		list = append(list, intType(w))
	}
	for _, n := range []int{2, 3, 4, 5} {
		for _, w := range []int{1, 7, 8, 16, 32, 64, 100} {
			list = append(list, intType(w).vector(n))
		}
	}
	return append(list, intType(1).vector(17), intType(8).vector(16), intType(32).vector(8), intType(128).vector(2))
}()

// fewEdges returns edges, but only some of them for wide types, because their rows are long.
func fewEdges(bits int) []*big.Int {
	list := edges(bits)
	if bits > 256 {
		return append(list[:5:5], list[len(list)-2:]...)
	}
	return list
}

// definedInt returns a function that reports whether an integer operation has a defined result.
func definedInt(op string, bits int) func(v []*big.Int) bool {
	mod := new(big.Int).Lsh(big.NewInt(1), uint(bits))
	lowest := new(big.Int).Rsh(mod, 1)
	last := new(big.Int).Sub(mod, big.NewInt(1))
	return func(v []*big.Int) bool {
		a, b := new(big.Int).Mod(v[0], mod), new(big.Int).Mod(v[1], mod)
		switch op {
		case "udiv", "urem":
			return b.Sign() != 0
		case "sdiv", "srem":
			return b.Sign() != 0 && !(a.Cmp(lowest) == 0 && b.Cmp(last) == 0)
		case "shl", "lshr", "ashr":
			return b.Cmp(big.NewInt(int64(bits))) < 0
		}
		return true
	}
}

func TestIntegersAreAsNative(t *testing.T) {
	livetest.Slow(t)
	var g table
	for _, x := range tableInts {
		e := fewEdges(x.bits)
		shifts := append(e[:len(e):len(e)], big.NewInt(int64(x.bits-1)), big.NewInt(int64(x.bits/2)))
		pair := []typ{x, x}
		for _, op := range []string{"add", "sub", "mul", "and", "or", "xor", "udiv", "urem", "sdiv", "srem", "shl", "lshr", "ashr"} {
			if op == "mul" && x.bits > 1000 {
				continue // llc expands one of these to 4096 multiplications
			}
			g.add(op+" "+x.ir, pair, x, fmt.Sprintf("  %%r = %s %s %%a, %%b\n", op, x.ir), rowsOf(pair, [][]*big.Int{e, shifts}, definedInt(op, x.bits)))
		}
		one := x.with(intType(1))
		for _, pred := range []string{"eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"} {
			g.add("icmp "+pred+" "+x.ir, pair, one, fmt.Sprintf("  %%r = icmp %s %s %%a, %%b\n", pred, x.ir), rowsOf(pair, [][]*big.Int{e, e}, nil))
		}
		bits := []*big.Int{big.NewInt(0), big.NewInt(1)}
		three := []typ{one, x, x}
		g.add("select "+x.ir, three, x, fmt.Sprintf("  %%r = select %s %%a, %s %%b, %s %%c\n", one.ir, x.ir, x.ir), rowsOf(three, [][]*big.Int{bits, e[:3], e[1:4]}, nil))
		g.add("freeze "+x.ir, []typ{x}, x, fmt.Sprintf("  %%r = freeze %s %%a\n", x.ir), rowsOf([]typ{x}, [][]*big.Int{e}, nil))
	}
	g.check(t, "19")
}

func TestIntegerCastsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	var g table
	for _, x := range tableInts {
		for _, y := range tableInts {
			if x.lanes != y.lanes || x.bits == y.bits {
				continue
			}
			ops := []string{"zext", "sext"}
			if x.bits > y.bits {
				ops = []string{"trunc"}
			}
			for _, op := range ops {
				g.add(op+" "+x.ir+" to "+y.ir, []typ{x}, y, fmt.Sprintf("  %%r = %s %s %%a to %s\n", op, x.ir, y.ir), rowsOf([]typ{x}, [][]*big.Int{fewEdges(x.bits)}, nil))
			}
		}
	}
	// A vector can be cast to an integer of the same size.
	for _, pair := range [][2]typ{
		{intType(1).vector(8), intType(8)}, {intType(1).vector(17), intType(17)}, {intType(8).vector(3), intType(24)},
		{intType(7).vector(3), intType(21)}, {intType(4).vector(2), intType(8)}, {intType(16).vector(4), intType(64)},
		{intType(8).vector(16), intType(128)}, {intType(32).vector(3), intType(96)}, {intType(16).vector(4), intType(32).vector(2)},
		{intType(4).vector(8), intType(8).vector(4)}, {intType(1).vector(16), intType(8).vector(2)}, {intType(64), typ{"double", 64, 0}},
		{intType(32), typ{"float", 32, 0}}, {intType(16), typ{"half", 16, 0}}, {intType(16), typ{"bfloat", 16, 0}},
		{intType(128), typ{"fp128", 128, 0}}, {intType(80), typ{"x86_fp80", 80, 0}}, {intType(16).vector(4), typ{"half", 16, 0}.vector(4)},
		{intType(64), typ{"float", 32, 0}.vector(2)},
	} {
		for _, p := range [][2]typ{pair, {pair[1], pair[0]}} {
			x, y := p[0], p[1]
			g.add("bitcast "+x.ir+" to "+y.ir, []typ{x}, y, fmt.Sprintf("  %%r = bitcast %s %%a to %s\n", x.ir, y.ir), mixed([]typ{x}, [][]*big.Int{edges(x.bits)}, nil, 20))
		}
	}
	g.check(t, "19")
}
