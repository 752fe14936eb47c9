package interp_test

import (
	"fmt"
	"math"
	"math/cmplx"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// differs bounds how many of 100 results of a function may differ from glibc's in a last bit; cpow's, which glibc computes with few
// bits to spare, in several.
var differs = map[string]int{
	"csqrt": 3, "cexp": 3, "clog": 5, "csin": 40, "ccos": 40, "ctan": 40, "csinh": 40, "ccosh": 40, "ctanh": 40, "catan": 10, "catanh": 10,
	"cabs": 2, "carg": 2, "cpow": 5,
}

func TestComplexFunctionsDifferFromGlibcInLastBits(t *testing.T) {
	dir := t.TempDir()
	program, module := filepath.Join(dir, "random"), filepath.Join(dir, "random.ll")
	clang(t, "19", "-w", "-O1", "testdata/complex/random.c", "-o", program, "-lm")
	clang(t, "19", "-w", "-O1", "testdata/complex/random.c", "-S", "-emit-llvm", "-o", module)
	want := strings.Split(native(t, nil, program).Stdout, "\n")
	got := strings.Split(interpretedC(t, module, nil, program).Stdout, "\n")
	require.Equal(t, len(want), len(got))
	count := map[string]int{}
	for k := range want[:len(want)-1] {
		if want[k] == got[k] {
			continue
		}
		var name string
		var parts [4]float64
		for j, line := range []string{want[k], got[k]} {
			_, err := fmt.Sscan(line, &name, &parts[2*j], &parts[2*j+1])
			require.NoError(t, err)
		}
		count[name]++
		a, b := complex(parts[0], parts[1]), complex(parts[2], parts[3])
		require.LessOrEqual(t, cmplx.Abs(a-b), 0x1p-48*math.Max(cmplx.Abs(a), math.SmallestNonzeroFloat64), "%s is %s", want[k], got[k])
	}
	t.Log(count)
	for name, n := range count {
		require.LessOrEqual(t, n, differs[name], name)
	}
}
