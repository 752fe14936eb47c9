package interp_test

import (
	"fmt"
	"math/big"
	"testing"

	"example.com/reframe/test/livetest"
)

// TestFloatIntrinsicTableIsAsNative compares the functions for which IEEE 754 requires correct rounding, and those that split floats, with native
// code. Functions that C libraries round differently are tested in package libm.
func TestFloatIntrinsicTableIsAsNative(t *testing.T) {
	livetest.Slow(t)
	var g table
	for _, f := range tableFloats {
		if f.ir == "bfloat" {
			continue // llc 19 cannot compile these functions for bfloat
		}
		for _, x := range []typ{f.typ, f.vector(3)} {
			if x.lanes > 0 && (f.explicit() || f.bits == 128) {
				continue
			}
			one, two, three := []typ{x}, []typ{x, x}, []typ{x, x, x}
			v := f.values()
			add := func(name string, in []typ, out typ, rows [][]byte, suffix string, constants ...string) {
				end := oneNaN(out, f.nan)
				if out.element() != f.ir {
					end = fmt.Sprintf("  %%r = freeze %s %%x\n", out.ir)
				}
				g.add(name+" "+x.ir, in, out, "  %x = "+g.call("llvm."+name+suffix, in, out.ir, constants...)+end, rows)
			}
			single, pairs := rowsOf(one, [][]*big.Int{v}, nil), rowsOf(two, [][]*big.Int{v, v}, nil)
			names := []string{"fabs", "sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "round", "roundeven"}
			if f.bits == 128 {
				names = names[:1] // the other functions call sqrtl and so on, which take x86_fp80
			}
			for _, name := range names {
				add(name, one, x, single, "."+x.suffix())
			}
			add("copysign", two, x, pairs, "."+x.suffix())
			// LangRef does not define the sign of a result from two zeros, nor whether a signaling NaN is handled as a NaN.
			if f.bits <= 64 {
				noZeros := func(v []*big.Int) bool {
					return v[0].BitLen() > 0 && v[1].BitLen() > 0 && v[0].Bit(f.bits-1)+v[1].Bit(f.bits-1) < 2
				}
				for _, name := range []string{"minnum", "maxnum"} {
					add(name, two, x, rowsOf(two, [][]*big.Int{v[2:], v[2:]}, noZeros), "."+x.suffix())
				}
				for _, name := range []string{"minimum", "maximum"} {
					add(name, two, x, pairs, "."+x.suffix())
				}
			}
			// If the processor has no fma instruction, llc computes fma of a half as fma of a float, and rounds twice.
			if f.ir == "float" || f.ir == "double" || f.explicit() {
				add("fma", three, x, rowsOf(three, [][]*big.Int{v, v[5:], v[:12]}, nil), "."+x.suffix())
			}
			for _, bits := range []int{8, 16, 32, 64, 100} {
				for _, name := range []string{"fptosi.sat", "fptoui.sat"} {
					to := x.with(intType(bits))
					if f.bits == 128 || x.lanes > 0 && bits == 100 {
						continue // for fp128, llc uses maxnum, which calls fmaxl
					}
					add(name, one, to, single, "."+to.suffix()+"."+x.suffix())
				}
			}
			if x.lanes > 0 {
				continue
			}
			for mask := range 10 {
				add("is.fpclass", one, intType(1), single, "."+x.suffix(), fmt.Sprintf("i32 %d", 1<<mask))
			}
			if f.bits == 32 || f.bits == 64 {
				exponents := []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(-1), big.NewInt(-30), big.NewInt(200), big.NewInt(-1070), big.NewInt(2000), big.NewInt(-2147483648)}
				add("ldexp", []typ{x, intType(32)}, x, cross([]typ{x, intType(32)}, [][]*big.Int{v, exponents}, nil), "."+x.suffix()+".i32")
				powers := []*big.Int{big.NewInt(0), big.NewInt(1), big.NewInt(-1), big.NewInt(5), big.NewInt(-6), big.NewInt(13)}
				add("powi", []typ{x, intType(32)}, x, cross([]typ{x, intType(32)}, [][]*big.Int{v, powers}, nil), "."+x.suffix()+".i32")
				call := g.call("llvm.frexp."+x.suffix()+".i32", one, "{ "+x.ir+", i32 }")
				finite := cross(one, [][]*big.Int{append(v[:2:2], v[5:]...)}, nil)
				g.add("frexp fraction "+x.ir, one, x, fmt.Sprintf("  %%o = %s  %%r = extractvalue { %s, i32 } %%o, 0\n", call, x.ir), finite)
				g.add("frexp exponent "+x.ir, one, intType(32), fmt.Sprintf("  %%o = %s  %%r = extractvalue { %s, i32 } %%o, 1\n", call, x.ir), finite)
				small := cross(one, [][]*big.Int{append(v[11:20:20], v[0], v[1], v[5], v[6])}, nil)
				for _, name := range []string{"lrint", "llrint", "lround", "llround"} {
					add(name, one, intType(64), small, ".i64."+x.suffix())
				}
				for _, name := range []string{"fadd", "fmul"} {
					in := []typ{x, f.vector(5)}
					add("vector.reduce."+name, in, x, mixed(in, [][]*big.Int{v, v}, nil, 80), "."+f.vector(5).suffix())
				}
				for _, name := range []string{"fadd", "fsub", "fmul", "fdiv"} {
					g.text.WriteString(fmt.Sprintf("declare %s @llvm.experimental.constrained.%s.%s(%s, %s, metadata, metadata)\n", x.ir, name, x.suffix(), x.ir, x.ir))
					g.add("constrained "+name+" "+x.ir, two, x, fmt.Sprintf("  %%x = call %s @llvm.experimental.constrained.%s.%s(%s %%a, %s %%b, metadata !\"round.tonearest\", metadata !\"fpexcept.ignore\") strictfp\n",
						x.ir, name, x.suffix(), x.ir, x.ir)+oneNaN(x, f.nan), pairs)
				}
			}
		}
	}
	g.check(t, "19")
}
