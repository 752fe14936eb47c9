package fidelity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/test/livetest"
)

// stressSeeds returns the number of modules to generate for each size and release.
func stressSeeds() int {
	if all {
		return 50
	}
	return 6
}

var targetLines = regexp.MustCompile(`(?m)^target .*\n`)

// stressed generates a module with llvm-stress, rewrites it with change, and links it with testdata/stress.c.
func stressed(t *testing.T, release, size, seed int, change func(*testing.T, string) string) string {
	t.Helper()
	dir := t.TempDir()
	written := native(t, nil, livetest.LLVM(t, release, "llvm-stress"), fmt.Sprint("-size=", size), fmt.Sprint("-seed=", seed), "-o", "-")
	require.Zero(t, written.Status)
	text := strings.Replace(written.Output, fmt.Sprintf("@autogen_SD%d(", seed), "@autogen(", 1)
	source, err := filepath.Abs("testdata/stress.c")
	require.NoError(t, err)
	caller := livetest.CModule(t, release, []string{"-O1"}, source)
	head, err := os.ReadFile(caller)
	require.NoError(t, err)
	module, program := filepath.Join(dir, "autogen.ll"), filepath.Join(dir, "program.ll")
	target := strings.Join(targetLines.FindAllString(string(head), -1), "") // llvm-stress omits these lines
	require.NoError(t, os.WriteFile(module, []byte(target+change(t, text)), 0o600))
	tool(t, livetest.LLVM(t, release, "llvm-link"), "-S", "-o", program, caller, module)
	return program
}

// linked compiles a module with llc and links an executable.
func linked(t *testing.T, release int, module, level string) string {
	t.Helper()
	program := strings.TrimSuffix(module, ".ll") + level
	tool(t, livetest.LLVM(t, release, "llc"), level, "-filetype=obj", "-relocation-model=pic", "-o", program+".o", module)
	tool(t, livetest.Tool(t, "gcc"), "-o", program, program+".o", "-lm")
	return program
}

func eachStressed(t *testing.T, sizes []int, f func(t *testing.T, release, size, seed int)) {
	for _, release := range releases {
		for _, size := range sizes {
			for seed := 1; seed <= stressSeeds(); seed++ {
				t.Run(fmt.Sprintf("%d/%d/%d", release, size, seed), func(t *testing.T) {
					t.Parallel()
					f(t, release, size, seed)
				})
			}
		}
	}
}

// stop returns the kind of the interpreter's error that ended a run.
func stop(t *testing.T, err error) interp.Kind {
	t.Helper()
	var stopped *interp.RunError
	require.ErrorAs(t, err, &stopped)
	return stopped.Kind
}

// TestDefinedStressModulesAreAsNative requires that each module of llvm-stress has the same result in the interpreter as in native code, after a
// definer has rewritten it.
func TestDefinedStressModulesAreAsNative(t *testing.T) {
	livetest.Slow(t)
	eachStressed(t, []int{30, 100, 300}, func(t *testing.T, release, size, seed int) {
		module := stressed(t, release, size, seed, definer{room: "zeroinitializer"}.define)
		ours := interpreted(t, module, nil, "program")
		for _, level := range []string{"-O0", "-O2"} {
			require.Equal(t, native(t, nil, linked(t, release, module, level)), ours, level)
		}
	})
}

// TestStressModulesAreAsNativeOrRefused requires that the interpreter reports undefined behavior, which nearly all unchanged modules of llvm-stress
// have. If the interpreter runs a module to its end, native code must have the same result.
func TestStressModulesAreAsNativeOrRefused(t *testing.T) {
	livetest.Slow(t)
	asItIs := func(_ *testing.T, module string) string { return module }
	var same atomic.Int32
	t.Run("modules", func(t *testing.T) {
		eachStressed(t, []int{2, 5, 10, 30}, func(t *testing.T, release, size, seed int) {
			module := stressed(t, release, size, seed, asItIs)
			ours, err := run(t, module, nil, 1e6, "program")
			if err != nil {
				t.Log(err)
				switch stop(t, err) {
				case interp.KindSteps:
					require.True(t, endless(t, linked(t, release, module, "-O0")))
				case interp.KindUndef, interp.KindFault, interp.KindDivision:
				default:
					require.NoError(t, err)
				}
				return
			}
			require.Equal(t, native(t, nil, linked(t, release, module, "-O0")), ours)
			same.Add(1)
		})
	})
	t.Logf("%d ran to the end", same.Load())
	require.NotZero(t, same.Load())
}

// TestDivisionStopsWhereTheProcessorDoes requires that native code gets a signal at a division exactly if the interpreter reports an error. The
// modules have the divisors that llvm-stress chose, hidden from llc.
func TestDivisionStopsWhereTheProcessorDoes(t *testing.T) {
	livetest.Slow(t)
	var refused atomic.Int32
	t.Run("modules", func(t *testing.T) {
		eachStressed(t, []int{30, 100}, func(t *testing.T, release, size, seed int) {
			module := stressed(t, release, size, seed, definer{room: "zeroinitializer", divide: true}.define)
			want := native(t, nil, linked(t, release, module, "-O0"))
			ours, err := run(t, module, nil, 1e6, "program")
			if want.Status == 128+int(syscall.SIGFPE) {
				require.Equal(t, interp.KindDivision, stop(t, err), "%v", err)
				refused.Add(1)
				return
			}
			require.NoError(t, err)
			require.Equal(t, want, ours)
		})
	})
	require.NotZero(t, refused.Load())
}

// TestNoResultComesOfWhatIsUndefined requires that the interpreter has no result that depends on undefined memory of allocas. Native code runs with
// two fillings of that memory. If the interpreter runs to the end, both native runs must have its result.
func TestNoResultComesOfWhatIsUndefined(t *testing.T) {
	livetest.Slow(t)
	var refused, same atomic.Int32
	t.Run("modules", func(t *testing.T) {
		eachStressed(t, []int{5, 10, 30}, func(t *testing.T, release, size, seed int) {
			ours, err := run(t, stressed(t, release, size, seed, definer{}.define), nil, 1e6, "program")
			if err != nil {
				require.Equal(t, interp.KindUndef, stop(t, err), "%v", err)
				refused.Add(1)
				return
			}
			for _, room := range []string{"zeroinitializer", "<" + strings.Repeat("i8 165, ", 255) + "i8 165>"} {
				filled := stressed(t, release, size, seed, definer{room: room}.define)
				require.Equal(t, native(t, nil, linked(t, release, filled, "-O0")), ours)
			}
			same.Add(1)
		})
	})
	t.Logf("%d refused, %d the same", refused.Load(), same.Load())
	require.NotZero(t, refused.Load())
	require.NotZero(t, same.Load())
}
