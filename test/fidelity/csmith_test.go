package fidelity_test

import (
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// A variant is a release of clang with its optimization level.
type variant struct {
	release int
	level   string
}

func (v variant) String() string { return fmt.Sprintf("clang-%d%s", v.release, v.level) }

var (
	releases = []int{14, 19}
	levels   = []string{"-O0", "-O1", "-O2", "-Os"}
)

// short is the number of seeds that are used without FIDELITY=all. Program n is compiled in two of the eight ways: by clang 14 at level n modulo 4,
// and by clang 19 at level n + n/4 modulo 4, so that all pairs of levels occur.
const short = 24

func variantsOf(n int) []variant {
	if !all {
		return []variant{{14, levels[n%4]}, {19, levels[(n+n/4)%4]}}
	}
	var list []variant
	for _, release := range releases {
		for _, level := range levels {
			list = append(list, variant{release, level})
		}
	}
	return list
}

// csmithSeeds returns the seeds in testdata/csmith.seeds: the first 300 whose programs end within a second as native code. testdata/csmith_seeds.sh
// applies this rule and writes the file. Without FIDELITY=all it returns the first short of them.
func csmithSeeds(t *testing.T, short int) []string {
	t.Helper()
	text, err := os.ReadFile("testdata/csmith.seeds")
	require.NoError(t, err)
	seeds := strings.Fields(string(text))
	require.Len(t, seeds, 300)
	if !all {
		seeds = seeds[:short]
	}
	return seeds
}

// TestCsmithProgramsOn32Bits requires the same results from the interpreter as from native code for 32-bit x86, where long has 32 bits. Each program
// is compiled once with each clang, at a level that depends on the program.
func TestCsmithProgramsOn32Bits(t *testing.T) {
	livetest.Slow(t)
	for n, seed := range csmithSeeds(t, 12) {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			number, err := strconv.Atoi(seed)
			require.NoError(t, err)
			source := livetest.Csmith(t, number)
			dir := filepath.Dir(source)
			for _, v := range []variant{{14, levels[n%4]}, {19, levels[(n+n/4)%4]}} {
				t.Run(v.String(), func(t *testing.T) {
					module, program := filepath.Join(dir, v.String()+".ll"), filepath.Join(dir, v.String())
					clang := livetest.LLVM(t, v.release, "clang")
					tool(t, clang, slices.Concat(livetest.I686, []string{v.level, "-w", "-I/usr/include/csmith", "-S", "-emit-llvm", "-o", module, source})...)
					tool(t, clang, slices.Concat(livetest.I686, []string{"-w", "-o", program, module})...)
					command := livetest.RunI686(t, program)
					if endless(t, command[0], command[1:]...) {
						return // only the 64-bit program is known to end
					}
					require.Equal(t, native(t, nil, command[0], command[1:]...), interpreted(t, module, nil, "program"))
				})
			}
		})
	}
}

// TestCsmithVectorsAreAsNative requires the same results from the interpreter as from native code for a processor with AVX2, BMI and FMA, for which
// LLVM vectorizes more loops than for baseline x86-64. Each program is compiled at -O3 with one clang in turn, or with both. If this processor lacks
// the features, the native program runs in QEMU.
func TestCsmithVectorsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	for n, seed := range csmithSeeds(t, 6) {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			number, err := strconv.Atoi(seed)
			require.NoError(t, err)
			source := livetest.Csmith(t, number)
			dir := filepath.Dir(source)
			for k, release := range releases {
				if !all && k != n%len(releases) {
					continue
				}
				v := variant{release, "-O3"}
				t.Run(v.String(), func(t *testing.T) {
					module, program := filepath.Join(dir, v.String()+".haswell.ll"), filepath.Join(dir, v.String()+".haswell")
					clang := livetest.LLVM(t, release, "clang")
					tool(t, clang, v.level, "-march=haswell", "-w", "-I/usr/include/csmith", "-S", "-emit-llvm", "-o", module, source)
					tool(t, clang, "-march=haswell", "-w", "-o", program, module)
					command := livetest.RunHaswell(t, program)
					require.Equal(t, native(t, nil, command[0], command[1:]...), interpreted(t, module, nil, "program"))
				})
			}
		})
	}
}

// TestCsmithProgramsAreAsNative requires the same results from the interpreter as from native code. Each program is compiled in two ways, or with
// FIDELITY=all in all ways.
func TestCsmithProgramsAreAsNative(t *testing.T) {
	livetest.Slow(t)
	for n, seed := range csmithSeeds(t, short) {
		t.Run(seed, func(t *testing.T) {
			t.Parallel()
			number, err := strconv.Atoi(seed)
			require.NoError(t, err)
			source := livetest.Csmith(t, number)
			dir := filepath.Dir(source)
			for _, v := range variantsOf(n) {
				t.Run(v.String(), func(t *testing.T) {
					module, program := filepath.Join(dir, v.String()+".ll"), filepath.Join(dir, v.String())
					clang := livetest.LLVM(t, v.release, "clang")
					// csmith's checks of its own arithmetic include comparisons that are always true, about which clang warns.
					tool(t, clang, v.level, "-w", "-I/usr/include/csmith", "-S", "-emit-llvm", "-o", module, source)
					tool(t, clang, "-w", "-o", program, module)
					require.Equal(t, native(t, nil, program), interpreted(t, module, nil, "program"))
				})
			}
		})
	}
}
