package interp_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"example.com/reframe/test/livetest"
)

// opaque returns the type that an IR text names, without lanes and with this size in memory.
func opaque(text string, bytes int) typ { return typ{text, 8 * bytes, 0} }

// bytesOf returns n rows of random bytes. The bytes in unused, which a store does not write, have the initial content of the result.
func bytesOf(n int, size int, unused ...int) [][]byte {
	r := rand.New(rand.NewPCG(5, 6))
	var rows [][]byte
	for range n {
		row := make([]byte, size)
		for k := range row {
			row[k] = byte(r.Uint32())
		}
		for _, k := range unused {
			row[k] = 0xaa // initial content of the result
		}
		rows = append(rows, row)
	}
	return rows
}

func TestLoadsAndStoresAreAsNative(t *testing.T) {
	var g table
	list := append([]typ{}, tableInts...)
	for _, f := range tableFloats {
		list = append(list, f.lanesOf()...)
	}
	list = append(list, typ{"ptr", 64, 0}, typ{"ptr", 64, 0}.vector(2), typ{"ptr", 64, 0}.vector(3))
	for _, x := range list {
		rows := mixed([]typ{x}, [][]*big.Int{edges(x.bits)}, nil, 12)
		body := fmt.Sprintf("  %%m = alloca [3 x %s], align 64\n  %%p = getelementptr [3 x %s], ptr %%m, i64 0, i64 1\n", x.ir, x.ir)
		body += fmt.Sprintf("  store %s %%a, ptr %%p\n  %%r = load %s, ptr %%p\n", x.ir, x.ir)
		g.add("store and load "+x.ir, []typ{x}, x, body, rows)
		g.add("volatile "+x.ir, []typ{x}, x, strings.ReplaceAll(strings.ReplaceAll(body, "store ", "store volatile "), "load ", "load volatile "), rows)
	}
	g.check(t, "19", "22")
}

// aggregates lists types, with the indices of their padding bytes, which a store leaves unchanged.
var aggregates = []struct {
	typ
	padding []int
}{
	{opaque("{ i8, i32 }", 8), []int{1, 2, 3}}, {opaque("<{ i8, i32 }>", 5), nil}, {opaque("{ i8, i16, i8, double, i1 }", 32), []int{1, 5, 6, 7, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}},
	{opaque("<{ i8, { i16, i64 }, <2 x i16> }>", 21), []int{3, 4, 5, 6, 7, 8}}, {opaque("[3 x i16]", 6), nil}, {opaque("[2 x { i8, i16 }]", 8), []int{1, 5}},
	{opaque("{ x86_fp80, i8 }", 32), []int{10, 11, 12, 13, 14, 15, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31}},
}

func TestAggregatesAreAsNative(t *testing.T) {
	var g table
	for _, a := range aggregates {
		x := a.typ
		one := []typ{x}
		rows := bytesOf(12, x.bytes(), a.padding...)
		if strings.Contains(x.ir, "i1 ") || strings.Contains(x.ir, "fp80") {
			for _, r := range rows {
				r[16] &= 1
				if strings.Contains(x.ir, "fp80") {
					r[7] |= 0x80 // the leading one of a normal number
				}
			}
		}
		g.add("move "+x.ir, one, x, fmt.Sprintf("  %%r = freeze %s %%a\n", x.ir), rows)
		second := append([][]byte{}, rows[1:]...)
		var both [][]byte
		for k, r := range second {
			both = append(both, append(append([]byte{byte(k & 1)}, rows[k]...), r...))
		}
		i1 := intType(1)
		three := []typ{i1, x, x}
		g.add("select "+x.ir, three, x, fmt.Sprintf("  %%r = select i1 %%a, %s %%b, %s %%c\n", x.ir, x.ir), both)
		g.add("phi "+x.ir, three, x, fmt.Sprintf("  br i1 %%a, label %%yes, label %%no\nyes:\n  br label %%end\nno:\n  br label %%end\nend:\n  %%r = phi %s [ %%b, %%yes ], [ %%c, %%no ]\n", x.ir), both)
	}
	s := aggregates[2]
	g.add("extractvalue", []typ{s.typ}, intType(16), "  %r = extractvalue "+s.ir+" %a, 1\n", fixed(bytesOf(5, s.bytes()), 16))
	g.add("insertvalue", []typ{s.typ, intType(16)}, s.typ, "  %r = insertvalue "+s.ir+" %a, i16 %b, 1\n", fixed(bytesOf(5, s.bytes()+2, s.padding...), 16))
	n := aggregates[3]
	g.add("extractvalue inside", []typ{n.typ}, intType(64), "  %r = extractvalue "+n.ir+" %a, 1, 1\n", bytesOf(5, n.bytes()))
	g.add("insertvalue inside", []typ{n.typ, intType(64)}, n.typ, "  %r = insertvalue "+n.ir+" %a, i64 %b, 1, 1\n", bytesOf(5, n.bytes()+8, n.padding...))
	g.check(t, "19", "22")
}

// fixed sets byte k of each row to a valid i1.
func fixed(rows [][]byte, k int) [][]byte {
	for _, r := range rows {
		r[k] &= 1
	}
	return rows
}

func TestElementsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	var g table
	for _, elem := range []typ{intType(1), intType(7), intType(8), intType(32), intType(64), intType(100), {"half", 16, 0}, {"float", 32, 0}, {"double", 64, 0}, {"ptr", 64, 0}} {
		for _, n := range []int{2, 3, 4, 7} {
			x := elem.vector(n)
			e := edges(elem.bits)
			places := intType(32)
			var inRange []*big.Int
			for k := range n {
				inRange = append(inRange, big.NewInt(int64(k)))
			}
			in := []typ{x, places}
			g.add("extractelement "+x.ir, in, elem, fmt.Sprintf("  %%r = extractelement %s %%a, i32 %%b\n", x.ir), mixed(in, [][]*big.Int{e, inRange}, nil, 12))
			in = []typ{x, elem, places}
			g.add("insertelement "+x.ir, in, x, fmt.Sprintf("  %%r = insertelement %s %%a, %s %%b, i32 %%c\n", x.ir, elem.ir), mixed(in, [][]*big.Int{e, e, inRange}, nil, 12))
			in = []typ{x, x}
			rows := mixed(in, [][]*big.Int{e, e}, nil, 8)
			for _, size := range []int{1, 3, n, 2 * n} {
				var reversed, spread []string
				for k := range size {
					reversed = append(reversed, fmt.Sprintf("i32 %d", (2*n-1-k)%(2*n)))
					spread = append(spread, fmt.Sprintf("i32 %d", 3*k%(2*n)))
				}
				for name, mask := range map[string][]string{"reversed": reversed, "spread": spread} {
					g.add(fmt.Sprintf("shufflevector %s %d %s", name, size, x.ir), in, elem.vector(size),
						fmt.Sprintf("  %%r = shufflevector %s %%a, %s %%b, <%d x i32> <%s>\n", x.ir, x.ir, size, strings.Join(mask, ", ")), rows)
				}
			}
		}
	}
	g.check(t, "19")
}

// TestAddressesAreAsNative compares getelementptr on structs and arrays with native code, with clang's default layout for x86-64 and with packed
// structs.
func TestAddressesAreAsNative(t *testing.T) {
	var g table
	p := typ{"ptr", 64, 0}
	bases := []*big.Int{big.NewInt(0), big.NewInt(4096), new(big.Int).Lsh(big.NewInt(0x7fff), 32), big.NewInt(-64)}
	for _, c := range []struct{ source, path string }{
		{"i8", ", INDEX"}, {"i1", ", INDEX"}, {"i24", ", INDEX"}, {"i128", ", INDEX"}, {"x86_fp80", ", INDEX"}, {"<3 x i32>", ", INDEX"},
		{"{ i8, i64, [3 x { i16, i32 }] }", ", INDEX, i32 2, i64 1, i32 1"}, {"<{ i8, i64, [3 x { i16, i32 }] }>", ", INDEX, i32 2, INDEX, i32 1"},
		{"[5 x [7 x i16]]", ", INDEX, INDEX, INDEX"}, {"<4 x i16>", ", i64 1, INDEX"}, {"{ i8, <2 x i33>, i65 }", ", INDEX, i32 2"}, {"[0 x i32]", ", i64 0, INDEX"},
	} {
		for _, bits := range []int{8, 16, 32, 64, 100} {
			in := []typ{p, intType(bits)}
			index := []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(-1), big.NewInt(-128), big.NewInt(100)}
			g.add(fmt.Sprintf("getelementptr i%d %s", bits, c.source), in, p,
				fmt.Sprintf("  %%r = getelementptr %s, ptr %%a%s\n", c.source, strings.ReplaceAll(c.path, "INDEX", fmt.Sprintf("i%d %%b", bits))),
				cross(in, [][]*big.Int{bases, index}, nil))
		}
	}
	v := p.vector(3)
	in := []typ{v, intType(32).vector(3)}
	g.add("getelementptr of vectors", in, v, "  %r = getelementptr { i8, i64 }, <3 x ptr> %a, <3 x i32> %b, i32 1\n", mixed(in, [][]*big.Int{bases, edges(32)}, nil, 20))
	in = []typ{p, intType(64).vector(3)}
	g.add("getelementptr from one base", in, v, "  %r = getelementptr i16, ptr %a, <3 x i64> %b\n", mixed(in, [][]*big.Int{bases, edges(64)}, nil, 20))
	for _, bits := range []int{8, 32, 64, 100} {
		x := intType(bits)
		g.add("ptrtoint "+x.ir, []typ{p}, x, fmt.Sprintf("  %%r = ptrtoint ptr %%a to %s\n", x.ir), cross([]typ{p}, [][]*big.Int{bases}, nil))
		g.add("inttoptr "+x.ir, []typ{x}, p, fmt.Sprintf("  %%r = inttoptr %s %%a to ptr\n", x.ir), cross([]typ{x}, [][]*big.Int{edges(bits)}, nil))
	}
	for _, pred := range []string{"eq", "ne", "ult", "sge"} {
		g.add("icmp "+pred+" ptr", []typ{p, p}, intType(1), "  %r = icmp "+pred+" ptr %a, %b\n", cross([]typ{p, p}, [][]*big.Int{bases, bases}, nil))
	}
	g.check(t, "19", "22")
}

func TestAtomicsAreAsNative(t *testing.T) {
	var g table
	// both adds two cases for an atomic operation: the result of one is the old content of the memory, and of the other the new content.
	both := func(name string, x typ, body string, in []typ, rows [][]byte) {
		for _, v := range []string{"old", "new"} {
			g.add(name+" "+x.ir+" "+v, in, x, fmt.Sprintf("  %%p = alloca %s, align 16\n  store %s %%a, ptr %%p, align 16\n%s  %%new = load %s, ptr %%p, align 16\n  %%r = select i1 true, %s %%%s, %s %%%s\n",
				x.ir, x.ir, body, x.ir, x.ir, v, x.ir, v), rows)
		}
	}
	for _, bits := range []int{8, 16, 32, 64} {
		x := intType(bits)
		in := []typ{x, x}
		rows := cross(in, [][]*big.Int{edges(bits), edges(bits)}, nil)
		for _, op := range []string{"xchg", "add", "sub", "and", "nand", "or", "xor", "max", "min", "umax", "umin", "uinc_wrap", "udec_wrap"} {
			both("atomicrmw "+op, x, fmt.Sprintf("  %%old = atomicrmw %s ptr %%p, %s %%b seq_cst\n", op, x.ir), in, rows)
		}
		three := []typ{x, x, x}
		rows = cross(three, [][]*big.Int{edges(bits)[:4], edges(bits)[:4], edges(bits)[2:4]}, nil)
		pair := "{ " + x.ir + ", i1 }"
		swap := fmt.Sprintf("  %%o = cmpxchg ptr %%p, %s %%b, %s %%c seq_cst monotonic\n  %%old = extractvalue %s %%o, 0\n", x.ir, x.ir, pair)
		both("cmpxchg", x, swap, three, rows)
		g.add("cmpxchg success "+x.ir, three, intType(1), fmt.Sprintf("  %%p = alloca %s\n  store %s %%a, ptr %%p\n%s  %%r = extractvalue %s %%o, 1\n", x.ir, x.ir, swap, pair), rows)
	}
	for _, f := range tableFloats[2:4] {
		in := []typ{f.typ, f.typ}
		v := append(f.values()[:4:4], f.values()[5:]...)
		same := func(x []*big.Int) bool { // exclude sums of infinities, which may be NaN
			return !(x[0].Cmp(v[2]) == 0 || x[0].Cmp(v[3]) == 0) || x[1].Cmp(v[2]) != 0 && x[1].Cmp(v[3]) != 0
		}
		for _, op := range []string{"fadd", "fsub"} {
			both("atomicrmw "+op, f.typ, fmt.Sprintf("  %%old = atomicrmw %s ptr %%p, %s %%b seq_cst\n", op, f.ir), in, cross(in, [][]*big.Int{v, v}, same))
		}
		noZeros := cross(in, [][]*big.Int{v[2:], v[2:]}, nil)
		for _, op := range []string{"fmax", "fmin"} {
			both("atomicrmw "+op, f.typ, fmt.Sprintf("  %%old = atomicrmw %s ptr %%p, %s %%b seq_cst\n", op, f.ir), in, noZeros)
		}
	}
	g.check(t, "19")
}
