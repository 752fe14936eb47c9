package libm_test

import (
	"bytes"
	"context"
	"fmt"
	"math"
	"math/big"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp/internal/libm"
	"example.com/reframe/deopt/interp/internal/softfloat"
	"example.com/reframe/test/livetest"
)

var functions = []struct {
	name string
	f    libm.Func
	// The test draws arguments with magnitudes from 2^low to 2^high.
	low, high int
	// disagree is the maximum number of 1000 results in which glibc may differ.
	disagree int
}{
	{"exp", libm.Exp, -60, 10, 5}, {"exp2", libm.Exp2, -60, 10, 5}, {"exp10", libm.Exp10, -60, 8, 400}, {"expm1", libm.Expm1, -60, 9, 400},
	{"log", libm.Log, -1022, 1023, 5}, {"log2", libm.Log2, -1022, 1023, 20}, {"log10", libm.Log10, -1022, 1023, 400}, {"log1p", libm.Log1p, -60, 60, 400},
	{"sin", libm.Sin, -40, 1023, 100}, {"cos", libm.Cos, -40, 1023, 100}, {"tan", libm.Tan, -40, 1023, 100},
	{"asin", libm.Asin, -40, 0, 100}, {"acos", libm.Acos, -40, 0, 100}, {"atan", libm.Atan, -60, 60, 100},
	{"sinh", libm.Sinh, -60, 9, 400}, {"cosh", libm.Cosh, -60, 9, 400}, {"tanh", libm.Tanh, -60, 5, 400},
	{"asinh", libm.Asinh, -60, 1023, 400}, {"acosh", libm.Acosh, 0, 1023, 400}, {"atanh", libm.Atanh, -60, 0, 400},
	{"cbrt", libm.Cbrt, -1022, 1023, 600}, {"pow", libm.Pow, -5, 5, 20}, {"atan2", libm.Atan2, -30, 30, 100}, {"hypot", libm.Hypot, -300, 300, 400},
}

// edges are arguments that have special results, or at which a function changes its behavior.
var edges = []float64{
	0, math.Copysign(0, -1), 1, -1, 0.5, -0.5, 2, -2, 3, -3, 10, 22, 100, 1024, -1074, -1075, -1076, 709.782712893384, 710, -745.2, 1e22,
	math.Inf(1), math.Inf(-1), math.NaN(), math.Pi, math.Pi / 2, 6381956970095103 * 0x1p797, 0x1p-26, 0x1p-1074, 0x1p-1022, math.MaxFloat64,
	1 + 0x1p-52, 1 - 0x1p-53, 27, 0.001, -0x1p-1074,
}

// TestResultsAreRoundedCorrectly compares the results with those of libquadmath, which have 113 bits, rounded to 53 bits. It also bounds the number
// of results in which glibc differs.
func TestResultsAreRoundedCorrectly(t *testing.T) {
	livetest.NeedsTools(t)
	program := filepath.Join(t.TempDir(), "libm")
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	built, err := exec.CommandContext(ctx, "gcc", "-O0", "-fno-builtin", "-o", program, "testdata/libm.c", "-lquadmath", "-lm").CombinedOutput()
	require.NoError(t, err, "%s", built)
	r := rand.New(rand.NewPCG(1, 2))
	type question struct {
		name string
		x, y float64
	}
	for _, c := range functions {
		t.Run(c.name, func(t *testing.T) {
			var list []question
			draw := func() float64 {
				x := math.Ldexp(1+r.Float64(), c.low+r.IntN(c.high-c.low))
				if r.IntN(2) == 0 && (c.f.Args == 2 || c.name[:2] != "lo") {
					return -x
				}
				return x
			}
			for range 1000 {
				q := question{c.name, draw(), draw()}
				if c.name == "pow" {
					q.x = math.Abs(q.x)
				}
				list = append(list, q)
			}
			random := len(list)
			for _, x := range edges {
				ys := edges
				if c.f.Args == 1 {
					ys = edges[:1]
				}
				for _, y := range ys {
					list = append(list, question{c.name, x, y})
				}
			}
			var in bytes.Buffer
			for _, q := range list {
				fmt.Fprintf(&in, "%s %x %x\n", q.name, math.Float64bits(q.x), math.Float64bits(q.y))
			}
			cmd := exec.CommandContext(ctx, program)
			cmd.Stdin = &in
			out, err := cmd.Output()
			require.NoError(t, err)
			scan := bytes.NewReader(out)
			differ := 0
			for k, q := range list {
				var glibc, quad uint64
				var long string
				_, err := fmt.Fscanf(scan, "%x %x %s\n", &glibc, &quad, &long)
				require.NoError(t, err)
				args := []float64{q.x, q.y}[:c.f.Args]
				got := c.f.Float64(args...)
				if want := math.Float64frombits(quad); !math.IsNaN(want) || !math.IsNaN(got) {
					require.Equal(t, fmt.Sprintf("%016x", quad), fmt.Sprintf("%016x", math.Float64bits(got)), "%s%v = %v, want %v, glibc %v", c.name, args, got, want, math.Float64frombits(glibc))
				}
				if want := math.Float64frombits(quad); !math.IsNaN(want) {
					var wide []softfloat.Number
					for _, a := range args {
						wide = append(wide, softfloat.Double.Decode(new(big.Int).SetUint64(math.Float64bits(a))))
					}
					require.Equal(t, long, fmt.Sprintf("%020x", softfloat.X87.Encode(c.f.Call(softfloat.X87, wide...))), "%s%v as x86_fp80", c.name, args)
				}
				if k < random && glibc != quad {
					differ++
				}
			}
			t.Logf("glibc differs in %d of %d", differ, random)
			require.LessOrEqual(t, differ, c.disagree)
		})
	}
}
