package interp

import (
	"fmt"
	"math/big"
	mathrand "math/rand/v2"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
)

// edges returns numbers of width bits. For at most 4 bits these are all numbers, else the powers of two, their neighbours and negatives, and random
// numbers.
func edges(width int, r *mathrand.Rand) (list []uint64) {
	if width <= 4 {
		for v := range uint64(1) << width {
			list = append(list, v)
		}
		return list
	}
	m := maskAt(width, 0)
	for _, shift := range []int{0, 1, width / 2, width - 2, width - 1} {
		v := uint64(1) << shift
		list = append(list, v-1, v, v+1, -v&m)
	}
	for range 12 {
		list = append(list, r.Uint64()&m, r.Uint64()&m>>r.IntN(width))
	}
	return append(list, uint64(width)&m, m-1)
}

// TestIntShortsAreExact compares the fast paths of integer intrinsics with arithmetic on big integers. For small widths it tests all values, and for
// others the edges.
func TestIntShortsAreExact(t *testing.T) {
	r := mathrand.New(mathrand.NewPCG(1, 2))
	require.Len(t, intShorts, len(intIntrinsics))
	for name, x := range intIntrinsics {
		for _, w := range []int{1, 2, 3, 4, 8, 16, 31, 32, 33, 63, 64} {
			if name == "bswap" && w%16 != 0 || x.flag && w == 2 || (name == "ucmp" || name == "scmp") && w == 1 {
				continue
			}
			f, list, counts := intShorts[name](w, w), edges(w, r), []uint64{0}
			second, third := counts, counts
			if x.flag {
				second = []uint64{0, 1}
			}
			if x.args > 1 {
				second = list
			}
			if x.args > 2 {
				third = []uint64{0, 1, uint64(w) - 1, uint64(w), uint64(w) + 1, ^uint64(0), 1 << (w - 1)}
			}
			for _, a := range list {
				for _, b := range second {
					for _, c := range third {
						c &= maskAt(w, 0)
						v := []*big.Int{new(big.Int).SetUint64(a), new(big.Int).SetUint64(b), new(big.Int).SetUint64(c)}
						n := x.args
						if x.flag {
							n++
						}
						want, poison := x.f(w, v[:n])
						got, ok := f(a, b, c)
						if !ok && poison {
							continue
						}
						masked := new(big.Int).And(want, ones(uint(w)))
						if !ok || poison || got != masked.Uint64() {
							require.Fail(t, "differs", "%s of i%d: %#x %#x %#x: %#x %v, want %#x poison %v", name, w, a, b, c, got, ok, masked, poison)
						}
					}
				}
			}
		}
	}
}

func TestOverflowShortsAreExact(t *testing.T) {
	r := mathrand.New(mathrand.NewPCG(1, 2))
	for name, x := range overflowIntrinsics {
		for _, w := range []int{1, 2, 3, 4, 8, 31, 32, 33, 63, 64} {
			f := x.short(w)
			for _, a := range edges(w, r) {
				for _, b := range edges(w, r) {
					p, q := new(big.Int).SetUint64(a), new(big.Int).SetUint64(b)
					if x.isSigned {
						p, q = signed(p, w), signed(q, w)
					}
					z := x.op(new(big.Int), p, q)
					over := clamp(z, w, x.isSigned).Cmp(z) != 0
					got, gotOver := f(a, b)
					want := new(big.Int).And(z, ones(uint(w))).Uint64()
					if got != want || over != gotOver {
						require.Fail(t, "differs", "%s of i%d: %#x %#x: %#x %v, want %#x %v", name, w, a, b, got, gotOver, want, over)
					}
				}
			}
		}
	}
}

// TestShortWays requires that the instructions which clang emits at -O1 to -O3 for scalars of at most 64 bits have a fast path. It tests one
// instruction of each form.
func TestShortWays(t *testing.T) {
	var forms []string
	form := func(format string, args ...any) { forms = append(forms, fmt.Sprintf(format, args...)) }
	for _, w := range []int{8, 16, 32, 64} {
		for _, op := range []string{"add", "sub", "mul", "shl"} {
			for _, flags := range []string{"", " nuw", " nsw", " nuw nsw"} {
				form("%s%s i%d %%a%d, %%b%d", op, flags, w, w, w)
			}
		}
		for _, op := range []string{"udiv", "sdiv", "lshr", "ashr"} {
			form("%s i%d %%a%d, %%b%d", op, w, w, w)
			form("%s exact i%d %%a%d, %%b%d", op, w, w, w)
		}
		for _, op := range []string{"urem", "srem", "and", "or", "or disjoint", "xor"} {
			form("%s i%d %%a%d, %%b%d", op, w, w, w)
		}
		for _, p := range []string{"eq", "ne", "ult", "ule", "ugt", "uge", "slt", "sle", "sgt", "sge"} {
			form("icmp %s i%d %%a%d, %%b%d", p, w, w, w)
			form("icmp samesign %s i%d %%a%d, %%b%d", p, w, w, w)
		}
		for _, to := range []int{8, 16, 32, 64} {
			switch {
			case to < w:
				for _, flags := range []string{"", " nuw", " nsw", " nuw nsw"} {
					form("trunc%s i%d %%a%d to i%d", flags, w, w, to)
				}
			case to > w:
				form("zext i%d %%a%d to i%d", w, w, to)
				form("zext nneg i%d %%a%d to i%d", w, w, to)
				form("sext i%d %%a%d to i%d", w, w, to)
			}
		}
		for _, f := range []string{"float", "double"} {
			form("sitofp i%d %%a%d to %s", w, w, f)
			form("uitofp i%d %%a%d to %s", w, w, f)
			form("uitofp nneg i%d %%a%d to %s", w, w, f)
			form("fptosi %s %%a.%s to i%d", f, f, w)
			form("fptoui %s %%a.%s to i%d", f, f, w)
		}
		for _, name := range []string{"umin", "umax", "smin", "smax", "uadd.sat", "sadd.sat", "usub.sat", "ssub.sat", "ushl.sat", "sshl.sat"} {
			form("call i%d @llvm.%s.i%d(i%d %%a%d, i%d %%b%d)", w, name, w, w, w, w, w)
		}
		for _, name := range []string{"ctlz", "cttz", "abs"} {
			form("call i%d @llvm.%s.i%d(i%d %%a%d, i1 true)", w, name, w, w, w)
		}
		for _, name := range []string{"ctpop", "bitreverse"} {
			form("call i%d @llvm.%s.i%d(i%d %%a%d)", w, name, w, w, w)
		}
		for _, name := range []string{"fshl", "fshr"} {
			form("call i%d @llvm.%s.i%d(i%d %%a%d, i%d %%b%d, i%d %%b%d)", w, name, w, w, w, w, w, w, w)
		}
		for _, name := range []string{"uadd", "sadd", "usub", "ssub", "umul", "smul"} {
			form("call { i%d, i1 } @llvm.%s.with.overflow.i%d(i%d %%a%d, i%d %%b%d)", w, name, w, w, w, w, w)
		}
		form("call i8 @llvm.scmp.i8.i%d(i%d %%a%d, i%d %%b%d)", w, w, w, w, w)
		form("call i8 @llvm.ucmp.i8.i%d(i%d %%a%d, i%d %%b%d)", w, w, w, w, w)
		form("load i%d, ptr %%p", w)
		form("freeze i%d %%a%d", w, w)
		form("select i1 %%c, i%d %%a%d, i%d %%b%d", w, w, w, w)
		form("extractvalue { i%d, i1 } { i%d 5, i1 true }, 1", w, w)
		for _, flags := range []string{"", " inbounds", " nuw", " nusw nuw", " inbounds nuw"} {
			form("getelementptr%s i%d, ptr %%p, i64 %%a64", flags, w)
			form("getelementptr%s { i64, i%d }, ptr %%p, i64 0, i32 1", flags, w)
			form("getelementptr%s [7 x i%d], ptr %%p, i64 %%a64, i64 %%b64", flags, w)
		}
	}
	for _, w := range []int{16, 32, 64} {
		form("call i%d @llvm.bswap.i%d(i%d %%a%d)", w, w, w, w)
	}
	for f, suffix := range map[string]string{"float": "f32", "double": "f64"} {
		for _, op := range []string{"fadd", "fsub", "fmul", "fdiv", "fcmp olt", "fcmp une", "fcmp uno"} {
			form("%s %s %%a.%s, %%b.%s", op, f, f, f)
		}
		form("fneg %s %%a.%s", f, f)
		form("load %s, ptr %%p", f)
		form("select i1 %%c, %s %%a.%s, %s %%b.%s", f, f, f, f)
		for _, name := range []string{"sqrt", "floor", "ceil", "trunc", "rint", "nearbyint", "roundeven", "round", "fabs"} {
			form("call %s @llvm.%s.%s(%s %%a.%s)", f, name, suffix, f, f)
		}
		for _, name := range []string{"minnum", "maxnum", "minimum", "maximum", "minimumnum", "maximumnum", "copysign"} {
			form("call %s @llvm.%s.%s(%s %%a.%s, %s %%b.%s)", f, name, suffix, f, f, f, f)
		}
		for _, name := range []string{"fma", "fmuladd"} {
			form("call %s @llvm.%s.%s(%s %%a.%s, %s %%b.%s, %s %%b.%s)", f, name, suffix, f, f, f, f, f, f)
		}
	}
	form("fpext float %%a.float to double")
	form("fptrunc double %%a.double to float")
	form("ptrtoint ptr %%p to i64")
	form("inttoptr i64 %%a64 to ptr")
	form("load ptr, ptr %%p")
	form("bitcast double %%a.double to i64")
	form("bitcast i32 %%a32 to float")

	text, declared := "", map[string]bool{}
	for k, f := range forms {
		text += fmt.Sprintf("  %%v%d = %s\n", k, f)
		if d := declarationOf(f); d != "" && !declared[d] {
			declared[d] = true
		}
	}
	src := ""
	for d := range declared {
		src += d
	}
	src += `declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.dbg.value(metadata, metadata, metadata)
define void @f(i8 %a8, i8 %b8, i16 %a16, i16 %b16, i32 %a32, i32 %b32, i64 %a64, i64 %b64, float %a.float, float %b.float, double %a.double, double %b.double, i1 %c, ptr %p) {
` + text + `  switch i32 %a32, label %x [ i32 3, label %y ]
x:
  indirectbr ptr %p, [label %y]
y:
  ret void
}
`
	m, err := parseModule(src)
	require.NoError(t, err, src)
	in, err := New(m, Options{})
	require.NoError(t, err)
	fn, err := in.function(m.Func("f"))
	require.NoError(t, err)
	for k, c := range fn.code {
		if c.op == opStep || c.op == opCall || c.op == opEnd {
			i := fn.src[k]
			require.LessOrEqual(t, i.Index, len(forms))
			t.Errorf("no shorter way: %s", forms[i.Index])
		}
	}
}

func parseModule(src string) (*ir.Module, error) { return ir.Parse("test.ll", []byte(src)) }

// declarationOf returns the declaration of the intrinsic that an instruction calls, "" if it calls none.
func declarationOf(instr string) string {
	m := regexp.MustCompile(`^call (\S+|{ \S+, i1 }) (@llvm\.\S+?)\((.*)\)$`).FindStringSubmatch(instr)
	if m == nil {
		return ""
	}
	types := regexp.MustCompile(` %\S+?(,|$)| true`).ReplaceAllString(m[3], "$1")
	return fmt.Sprintf("declare %s %s(%s)\n", m[1], m[2], types)
}

// TestShortLanesAreAsScalars requires that each lane of a vector operation has the result of the same operation on scalars, computed without fast
// paths. Lanes are known, undefined and poison.
func TestShortLanesAreAsScalars(t *testing.T) {
	lanes := []string{"0", "-1", "2147483647", "-2147483648", "undef", "poison", "7", "31"}
	floats := []string{"0.0", "-0.5", "0x41EFFFFFFFE00000", "0x41DFFFFFFFC00000", "undef", "poison", "0x7FF8000000000000", "-2147483648.0"}
	vector := func(typ string, list []string, shift int) string {
		text := ""
		for k := range list {
			text += fmt.Sprintf(", %s %s", typ, list[(k+shift)%len(list)])
		}
		return "<" + text[2:] + ">"
	}
	const ints, doubles = "<8 x i32>", "<8 x double>"
	for shift := range lanes {
		x, y, f := vector("i32", lanes, 0), vector("i32", lanes, shift), vector("double", floats, shift)
		for _, c := range []struct{ whole, part, declared string }{
			{"call " + ints + " @llvm.usub.sat.v8i32(" + ints + " " + x + ", " + ints + " " + y + ")", "call i32 @llvm.usub.sat.i32(i32 %x, i32 %y)",
				"declare " + ints + " @llvm.usub.sat.v8i32(" + ints + ", " + ints + ")\ndeclare i32 @llvm.usub.sat.i32(i32, i32)"},
			{"call " + ints + " @llvm.fshl.v8i32(" + ints + " " + x + ", " + ints + " " + y + ", " + ints + " " + y + ")", "call i32 @llvm.fshl.i32(i32 %x, i32 %y, i32 %y)",
				"declare " + ints + " @llvm.fshl.v8i32(" + ints + ", " + ints + ", " + ints + ")\ndeclare i32 @llvm.fshl.i32(i32, i32, i32)"},
			{"call " + ints + " @llvm.abs.v8i32(" + ints + " " + y + ", i1 true)", "call i32 @llvm.abs.i32(i32 %y, i1 true)",
				"declare " + ints + " @llvm.abs.v8i32(" + ints + ", i1)\ndeclare i32 @llvm.abs.i32(i32, i1)"},
			{"trunc nuw nsw " + ints + " " + y + " to <8 x i8>", "trunc nuw nsw i32 %y to i8", ""},
			{"fptosi " + doubles + " " + f + " to " + ints, "fptosi double %f to i32", ""},
			{"fptoui " + doubles + " " + f + " to " + ints, "fptoui double %f to i32", ""},
			{"fptrunc " + doubles + " " + f + " to <8 x float>", "fptrunc double %f to float", ""},
			{"uitofp nneg " + ints + " " + y + " to <8 x float>", "uitofp nneg i32 %y to float", ""},
		} {
			result := "i32"
			if at := strings.LastIndex(c.part, " to "); at > 0 {
				result = c.part[at+4:]
			}
			src := fmt.Sprintf("%s\ndefine <8 x %s> @vector() {\n  %%r = %s\n  ret <8 x %s> %%r\n}\n", c.declared, result, c.whole, result)
			src += fmt.Sprintf("define %s @scalar(i32 %%x, i32 %%y, double %%f) {\n  %%r = %s\n  ret %s %%r\n}\n", result, c.part, result)
			for k := range lanes {
				src += fmt.Sprintf("define %s @lane%d() {\n  %%r = call %s @scalar(i32 %s, i32 %s, double %s)\n  ret %s %%r\n}\n",
					result, k, result, lanes[k], lanes[(k+shift)%8], floats[(k+shift)%8], result)
			}
			m, err := parseModule(src)
			require.NoError(t, err, src)
			fast, err := New(m, Options{})
			require.NoError(t, err)
			steps, err := New(m, Options{Trace: func(Traced) {}})
			require.NoError(t, err)
			got, err := fast.Call(t.Context(), m.Func("vector"), nil)
			require.NoError(t, err, src)
			for k := range lanes {
				want, err := steps.Call(t.Context(), m.Func(fmt.Sprint("lane", k)), nil)
				require.NoError(t, err, src)
				lane, _ := got.Value.Elem(k)
				require.True(t, want.Value.Equal(lane), "%s: lane %d is %s, want %s", c.whole, k, lane.Format(), want.Value.Format())
			}
		}
	}
}
