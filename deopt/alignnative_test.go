package deopt_test

import (
	"fmt"
	"math/big"
	"math/rand/v2"
	"os"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// operandProgram writes a program of functions that call one another, each at a site of its own kind with random operands, including x86_fp80. Before
// its site, each prints its operands. registers permits deopt values in registers. A statepoint then has at most one operand of type x86_fp80,
// because the code generator crashes if it omits several.
func operandProgram(rng *rand.Rand, functions int, registers bool) string {
	var b, globals strings.Builder
	types := []string{"i8", "i16", "i32", "i64", "i64", "ptr", "float", "double", "x86_fp80", "x86_fp80", "i48"}
	for f := range functions {
		kind, flags := []string{"statepoint", "statepoint", "stackmap", "patchpoint"}[rng.IntN(4)], 2*rng.IntN(2)
		extended := 3
		if kind == "statepoint" && (registers || flags != 0) {
			extended = 1
		}
		var before, logged, again, operands, kept strings.Builder
		for k := range 2 + rng.IntN(5) {
			typ := types[rng.IntN(len(types))]
			if typ == "x86_fp80" {
				if extended--; extended < 0 {
					typ = "i64"
				}
			}
			if k > 0 {
				operands.WriteString(", ")
			}
			log := func(typ, v string) {
				fmt.Fprintf(&logged, "  %%m%d = alloca [16 x i8], align 16\n  store <2 x i64> zeroinitializer, ptr %%m%d\n  store %s %s, ptr %%m%d\n", k, k, typ, v, k)
				fmt.Fprintf(&logged, "  %%w%d = load i64, ptr %%m%d\n  %%n%d = getelementptr i8, ptr %%m%d, i64 8\n  %%h%d = load i64, ptr %%n%d\n", k, k, k, k, k, k)
				fmt.Fprintf(&logged, "  call i32 (ptr, ...) @printf(ptr @line, i64 %d, i64 %d, i64 %%h%d, i64 %%w%d)\n", f, k, k, k)
			}
			switch rng.IntN(6) {
			case 0:
				n := rng.IntN(3)
				log("i64", fmt.Sprint(n))
				fmt.Fprintf(&operands, "i64 %d", n)
				continue
			case 1:
				fmt.Fprintf(&before, "  %%a%d = alloca i64\n", k)
				log("ptr", fmt.Sprintf("%%a%d", k))
				fmt.Fprintf(&operands, "ptr %%a%d", k)
				continue
			}
			from := fmt.Sprintf("@g%d_%d", f, k)
			bits := rng.Uint64()
			switch typ {
			case "ptr":
				fmt.Fprintf(&globals, "%s = global ptr inttoptr (i64 %d to ptr)\n", from, bits)
			case "x86_fp80":
				fmt.Fprintf(&globals, "%s = global x86_fp80 0xK%04X%016X\n", from, 0x3f00+rng.IntN(0x200), bits|1<<63)
			case "double":
				fmt.Fprintf(&globals, "%s = global double %d.0\n", from, bits>>20)
			case "float":
				fmt.Fprintf(&globals, "%s = global float %d.0\n", from, bits>>42)
			default:
				width, _ := strconv.Atoi(typ[1:])
				fmt.Fprintf(&globals, "%s = global %s %d\n", from, typ, bits>>(64-width))
			}
			fmt.Fprintf(&before, "  %%o%d = load volatile %s, ptr %s\n", k, typ, from)
			log(typ, fmt.Sprintf("%%o%d", k))
			v := fmt.Sprintf("%%o%d", k)
			if rng.IntN(2) == 0 { // load the value again, so that it is not live across the calls that print
				v = fmt.Sprintf("%%v%d", k)
				fmt.Fprintf(&again, "  %s = load volatile %s, ptr %s\n", v, typ, from)
			}
			fmt.Fprintf(&operands, "%s %s", typ, v)
			if kind != "patchpoint" && rng.IntN(3) == 0 {
				fmt.Fprintf(&kept, "  store volatile %s %s, ptr %s\n", typ, v, from)
			}
		}
		callee := fmt.Sprintf("@f%d", f+1)
		if f == functions-1 {
			callee = "@wait"
		}
		site, result := "", "%s"
		switch kind {
		case "statepoint":
			site = fmt.Sprintf(`  %%t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 %d, i32 0, ptr elementtype(i64 (i64)) %s, i32 1, i32 %d, i64 %%s, i32 0, i32 0) [ "deopt"(%s) ]`, f, callee, flags, &operands)
		case "stackmap":
			site = fmt.Sprintf("  %%r = call i64 %s(i64 %%s)\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 %d, i32 0, %s)", callee, f, &operands)
		case "patchpoint":
			site = fmt.Sprintf("  %%r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 %d, i32 32, ptr %s, i32 1, i64 %%s, %s)", f, callee, &operands)
		}
		fmt.Fprintf(&b, "define i64 @f%d(i64 %%s) noinline gc \"statepoint-example\" {\n%s%s%s%s\n%s  ret i64 %s\n}\n", f, &before, &logged, &again, site, &kept, result)
	}
	return prelude + "@line = private constant [28 x i8] c\"L %lld %lld %016llx%016llx\\0A\\00\"\ndeclare i32 @printf(ptr, ...)\n" +
		globals.String() + b.String() + strings.Replace(start, "@work(", "@f0(", 1)
}

var loggedOperand = regexp.MustCompile(`L (\d+) (\d+) ([0-9a-f]{32})`)

// TestOperandsAreAsPrinted requires that the operands shown are those that the program printed, also at sites with operands of type x86_fp80, which
// LLVM omits from the record unless it spills them. With FIDELITY=all it runs more programs, compiled with more options.
func TestOperandsAreAsPrinted(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	const registers = "-use-registers-for-deopt-values"
	options := []string{"-O0 " + registers, "-O2", "-O0", "-O2 " + registers, "-O1 -fast-isel", "-O0 -fast-isel=false " + registers}
	seeds, functions := 1, 24
	if os.Getenv("FIDELITY") == "all" {
		seeds = 12
	} else {
		options = options[:2]
	}
	for _, version := range []int{16, 19, 22} {
		for _, flags := range options {
			t.Run(fmt.Sprintf("lli-%d %s", version, flags), func(t *testing.T) {
				right, dropped, kept, untold := 0, 0, 0, 0
				for seed := range seeds {
					rng := rand.New(rand.NewPCG(17, uint64(seed)))
					text := operandProgram(rng, functions, strings.Contains(flags, registers))
					p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit", append(strings.Fields(flags), "-enable-patchpoint-liveness=false")...)
					printed := map[[2]int]*big.Int{}
					for _, m := range loggedOperand.FindAllStringSubmatch(p.Output(), -1) {
						f, _ := strconv.Atoi(m[1])
						k, _ := strconv.Atoi(m[2])
						printed[[2]int{f, k}], _ = new(big.Int).SetString(m[3], 16)
					}
					v := frametest.Look(t, p, false, frametest.Known(t, p))
					for n := range functions {
						f := frametest.One(t, v, fmt.Sprintf("f%d", n))
						if f.Record == nil {
							continue // the stackmap is not right after the call
						}
						require.EqualValues(t, n, f.Record.ID)
						for k, s := range f.Slots {
							want := printed[[2]int{n, k}]
							extended := s.Type.Source == "x86_fp80"
							switch {
							case s.Status == frame.OK && want != nil:
								got, ok := new(big.Int).SetString(strings.TrimPrefix(string(s.Hex), "0x"), 16)
								require.True(t, ok, "%s", s.Hex)
								require.Zero(t, want.Cmp(got), "@f%d, operand %d, %s %s: printed %x, shown %x\n%s", n, k, s.Type.Source, s.Name, want, got, text)
								right++
								if extended {
									kept++
								}
							case s.Status == frame.OK:
								require.Fail(t, "a value without operand", "@f%d, slot %d", n, k)
							case strings.Contains(s.Reason, "records no location"):
								require.True(t, extended, "%s of type %s", s.Name, s.Type.Source)
								dropped++
							case strings.Contains(s.Reason, "may belong to another value"):
								untold++
							}
						}
					}
					p.Kill()
				}
				t.Logf("%d values are as printed, %d of them x86_fp80; %d have no location, and of %d it is not told", right, kept, dropped, untold)
				require.Greater(t, right, 40*seeds)
				require.Positive(t, kept+dropped)
				if strings.Contains(flags, "-O0 ") && strings.Contains(flags, registers) {
					require.Positive(t, dropped)
				}
			})
		}
	}
}
