package interp_test

import (
	"fmt"
	"math/big"
	"strings"
	"testing"

	"example.com/reframe/test/livetest"
)

// call returns the text of a call of an intrinsic. Its operands are %a, %b, ... of the types in, followed by constants. call also declares the
// intrinsic, once.
func (g *table) call(intrinsic string, in []typ, result string, constants ...string) string {
	var params, args []string
	for k, t := range in {
		params = append(params, t.ir)
		args = append(args, fmt.Sprintf("%s %%%c", t.ir, 'a'+k))
	}
	for _, c := range constants {
		params = append(params, strings.Fields(c)[0])
		args = append(args, c)
	}
	declared := fmt.Sprintf("declare %s @%s(%s)\n", result, intrinsic, strings.Join(params, ", "))
	if !strings.Contains(g.text.String(), declared) {
		g.text.WriteString(declared)
	}
	return fmt.Sprintf("call %s @%s(%s)\n", result, intrinsic, strings.Join(args, ", "))
}

var intrinsicInts = []typ{
	intType(1), intType(7), intType(8), intType(16), intType(24), intType(32), intType(33), intType(64), intType(65), intType(128), intType(256),
	intType(8).vector(3), intType(16).vector(8), intType(32).vector(4), intType(64).vector(2), intType(7).vector(5),
}

func TestIntegerIntrinsicTableIsAsNative(t *testing.T) {
	livetest.Slow(t)
	var g table
	for _, x := range intrinsicInts {
		e := fewEdges(x.bits)
		one, two, three := []typ{x}, []typ{x, x}, []typ{x, x, x}
		add := func(name string, in []typ, rows [][]byte, constants ...string) {
			g.add(name+" "+x.ir, in, x, "  %r = "+g.call("llvm."+name+"."+x.suffix(), in, x.ir, constants...), rows)
		}
		single := rowsOf(one, [][]*big.Int{e}, nil)
		pairs := rowsOf(two, [][]*big.Int{e, e}, nil)
		for _, name := range []string{"ctpop", "bitreverse"} {
			add(name, one, single)
		}
		if x.bits%16 == 0 {
			add("bswap", one, single)
		}
		for _, name := range []string{"ctlz", "cttz", "abs"} {
			add(name, one, single, "i1 false")
		}
		for _, name := range []string{"umin", "umax", "smin", "smax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat"} {
			add(name, two, pairs)
		}
		for _, name := range []string{"ushl.sat", "sshl.sat"} {
			add(name, two, rowsOf(two, [][]*big.Int{e, {big.NewInt(0), big.NewInt(1), big.NewInt(int64(x.bits - 1))}}, definedInt("shl", x.bits)))
		}
		// Any amount is valid: it is taken modulo the width.
		for _, name := range []string{"fshl", "fshr"} {
			amounts := []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(int64(x.bits)), big.NewInt(int64(x.bits - 1)), big.NewInt(-3)}
			add(name, three, rowsOf(three, [][]*big.Int{e[:4], e[1:5], amounts}, nil))
		}
		flag := x.with(intType(1))
		for _, name := range []string{"sadd", "uadd", "ssub", "usub", "smul", "umul"} {
			if x.bits > 128 && strings.HasSuffix(name, "mul") || x.lanes > 0 && x.bits == 7 {
				continue
			}
			pair := "{ " + x.ir + ", " + flag.ir + " }"
			call := g.call("llvm."+name+".with.overflow."+x.suffix(), two, pair)
			g.add(name+".with.overflow "+x.ir, two, x, fmt.Sprintf("  %%o = %s  %%r = extractvalue %s %%o, 0\n", call, pair), pairs)
			g.add(name+".with.overflow flag "+x.ir, two, flag, fmt.Sprintf("  %%o = %s  %%r = extractvalue %s %%o, 1\n", call, pair), pairs)
		}
		if x.lanes > 0 {
			elem := intType(x.bits)
			for _, name := range []string{"add", "mul", "and", "or", "xor", "umin", "umax", "smin", "smax"} {
				g.add("vector.reduce."+name+" "+x.ir, one, elem, "  %r = "+g.call("llvm.vector.reduce."+name+"."+x.suffix(), one, elem.ir), single)
			}
		}
	}
	g.check(t, "19")
}

func TestVectorIntrinsicTableIsAsNative(t *testing.T) {
	var g table
	for _, elem := range []typ{intType(8), intType(32), intType(64), {"float", 32, 0}, {"double", 64, 0}} {
		e := edges(elem.bits)
		// Use whole registers: llc 19 cannot insert smaller vectors into each other.
		n := 128 / elem.bits
		two, four, eight := elem.vector(n), elem.vector(2*n), elem.vector(4*n)
		rows := func(list ...typ) [][]byte {
			var values [][]*big.Int
			for range list {
				values = append(values, e)
			}
			return mixed(list, values, nil, 10)
		}
		add := func(name, intrinsic string, in []typ, out typ, constants ...string) {
			g.add(name+" "+out.ir, in, out, "  %r = "+g.call(intrinsic, in, out.ir, constants...), rows(in...))
		}
		add("vector.extract", "llvm.vector.extract."+two.suffix()+"."+eight.suffix(), []typ{eight}, two, fmt.Sprintf("i64 %d", 2*n))
		add("vector.insert", "llvm.vector.insert."+eight.suffix()+"."+four.suffix(), []typ{eight, four}, eight, fmt.Sprintf("i64 %d", 2*n))
		add("vector.reverse", "llvm.vector.reverse."+four.suffix(), []typ{four}, four)
		add("vector.splice up", "llvm.vector.splice."+four.suffix(), []typ{four, four}, four, "i32 1")
		add("vector.splice down", "llvm.vector.splice."+four.suffix(), []typ{four, four}, four, "i32 -3")
		add("vector.interleave2", "llvm.vector.interleave2."+eight.suffix(), []typ{four, four}, eight)
		pair := "{ " + two.ir + ", " + two.ir + " }"
		call := g.call("llvm.vector.deinterleave2."+four.suffix(), []typ{four}, pair)
		for k := range 2 {
			g.add(fmt.Sprintf("vector.deinterleave2 %d %s", k, four.ir), []typ{four}, two, fmt.Sprintf("  %%o = %s  %%r = extractvalue %s %%o, %d\n", call, pair, k), rows(four))
		}
	}
	for _, x := range []typ{intType(8).vector(16), intType(32).vector(4), intType(64).vector(5)} {
		g.add("stepvector "+x.ir, []typ{x}, x, "  %s = "+g.call("llvm.experimental.stepvector."+x.suffix(), nil, x.ir)+fmt.Sprintf("  %%r = add %s %%s, %%a\n", x.ir), mixed([]typ{x}, [][]*big.Int{edges(x.bits)}, nil, 5))
	}
	for _, n := range []int{2, 4, 8} {
		i32, out := intType(32), intType(1).vector(n)
		g.add("get.active.lane.mask "+out.ir, []typ{i32, i32}, out, "  %r = "+g.call("llvm.get.active.lane.mask."+out.suffix()+".i32", []typ{i32, i32}, out.ir),
			cross([]typ{i32, i32}, [][]*big.Int{edges(32), edges(32)[1:]}, func(v []*big.Int) bool { return v[1].Sign() != 0 }))
	}
	// Masked loads and stores access the memory of an operand.
	for _, x := range []typ{intType(8).vector(4), intType(32).vector(4), intType(64).vector(3), typ{"double", 64, 0}.vector(4)} {
		mask := intType(1).vector(x.lanes)
		in := []typ{x, x, mask}
		list := mixed(in, [][]*big.Int{edges(x.bits), edges(x.bits), {big.NewInt(0), big.NewInt(1)}}, nil, 16)
		spill := fmt.Sprintf("  %%p = alloca [2 x %s], align 16\n  store %s %%a, ptr %%p, align 16\n", x.ir, x.ir)
		masked := func(name, result string, args ...string) string {
			var params []string
			for _, a := range args {
				params = append(params, a[:strings.LastIndexByte(a, ' ')])
			}
			declared := fmt.Sprintf("declare %s @llvm.masked.%s(%s)\n", result, name, strings.Join(params, ", "))
			if !strings.Contains(g.text.String(), declared) {
				g.text.WriteString(declared)
			}
			return fmt.Sprintf("call %s @llvm.masked.%s(%s)\n", result, name, strings.Join(args, ", "))
		}
		b, c := x.ir+" %b", mask.ir+" %c"
		g.add("masked.load "+x.ir, in, x, spill+"  %r = "+masked("load."+x.suffix()+".p0", x.ir, "ptr %p", "i32 1", c, b), list)
		g.add("masked.expandload "+x.ir, in, x, spill+"  %r = "+masked("expandload."+x.suffix(), x.ir, "ptr %p", c, b), list)
		back := fmt.Sprintf("  %%r = load %s, ptr %%p, align 16\n", x.ir)
		g.add("masked.store "+x.ir, in, x, spill+"  "+masked("store."+x.suffix()+".p0", "void", b, "ptr %p", "i32 1", c)+back, list)
		g.add("masked.compressstore "+x.ir, in, x, spill+"  "+masked("compressstore."+x.suffix(), "void", b, "ptr %p", c)+back, list)
		pointers := fmt.Sprintf("<%d x ptr>", x.lanes)
		// Use indices in descending order, so that elements change places.
		indices := make([]string, x.lanes)
		for k := range indices {
			indices[k] = fmt.Sprintf("i64 %d", x.lanes-1-k)
		}
		at := fmt.Sprintf("  %%q = getelementptr %s, ptr %%p, <%d x i64> <%s>\n", x.element(), x.lanes, strings.Join(indices, ", "))
		g.add("masked.gather "+x.ir, in, x, spill+at+"  %r = "+masked("gather."+x.suffix()+"."+fmt.Sprintf("v%dp0", x.lanes), x.ir, pointers+" %q", "i32 1", c, b), list)
		g.add("masked.scatter "+x.ir, in, x, spill+at+"  "+masked("scatter."+x.suffix()+"."+fmt.Sprintf("v%dp0", x.lanes), "void", b, pointers+" %q", "i32 1", c)+back, list)
	}
	g.check(t, "19")
}
