package cfi

import (
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// bodies maps names to function bodies. SAVE stands for an instruction that traps and clobbers the registers to save. Values are named by their
// types.
var bodies = map[string]string{
	"leaf":    "SAVE",
	"call":    "SAVE\n call void @f(i64 %n)\n call void @f(i64 %n)",
	"slots":   "%p = alloca [40 x i8]\n SAVE\n call void @g(ptr %p)",
	"almost":  "%p = alloca [1936 x i8]\n SAVE\n call void @g(ptr %p)",
	"page":    "%p = alloca [4096 x i8]\n SAVE\n call void @g(ptr %p)\n call void @f(i64 %n)",
	"large":   "%p = alloca [200000 x i8]\n SAVE\n call void @g(ptr %p)",
	"dynamic": "%p = alloca i8, i64 %n\n SAVE\n call void @g(ptr %p)",
	"aligned": "%p = alloca [32 x i8], align 64\n SAVE\n call void @g(ptr %p)",
	"both":    "%p = alloca [32 x i8], align 64\n %q = alloca i8, i64 %n\n SAVE\n call void @g(ptr %p)\n call void @g(ptr %q)",
	"pushed":  "SAVE\n call void @h(i64 %n, i64 1, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9, i64 10, i64 11)\n call void @f(i64 1)",
	"stays":   "call void @f(i64 %n)\n SAVE\n call void @f(i64 %n)\n %c = icmp eq i64 %n, 3\n br i1 %c, label %a, label %b\na:\n call void @f(i64 %n)\n ret void\nb:",
}

// framesModule returns a module with a function for each body and each set of registers. A trap clobbers the registers, so that they are saved. keep
// is the attribute that controls frame pointers.
func framesModule(trap string, sets [][]string, keep string) string {
	var b strings.Builder
	b.WriteString("declare void @f(i64)\ndeclare void @g(ptr)\n" +
		"declare void @h(i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64, i64)\n")
	for _, name := range slices.Sorted(maps.Keys(bodies)) {
		body := bodies[name]
		for i, set := range sets {
			save := fmt.Sprintf("call void asm sideeffect %q, %q()", trap, join(set, "~{$}"))
			fmt.Fprintf(&b, "define void @%s%d(i64 %%n) %s {\n %s\n ret void\n}\n", name, i, keep, strings.Replace(body, "SAVE", save, 1))
		}
	}
	return b.String() + needsFDE
}

// needsFDE is a function that compact unwind for arm64 cannot describe. Without one, LLVM omits the whole __eh_frame for arm64, regardless of flags.
const needsFDE = "declare void @elsewhere_()\ndefine void @needs_fde_() {\n call void @elsewhere_()\n call void @elsewhere_()\n ret void\n}\n"

// subsets returns all subsets of names with at most most elements.
func subsets(names []string, most int) [][]string {
	sets := [][]string{nil}
	for _, name := range names {
		for _, set := range sets {
			if len(set) < most {
				sets = append(sets, append(append([]string{}, set...), name))
			}
		}
	}
	return sets
}

// framePointers lists llc's modes for frame pointers; without the attribute, only functions that need one have one.
var framePointers = map[string]string{"none": "", "all": `"frame-pointer"="all"`, "non-leaf": `"frame-pointer"="non-leaf"`}

// cfiFlags make llc write __eh_frame for every function. LLVM 14 always does.
func cfiFlags(version int) []string {
	if version == 14 {
		return nil
	}
	return []string{"--emit-dwarf-unwind=always"}
}

// TestCompactAgainstCFI requires that compact unwind and __eh_frame agree at each call of the test's functions, as llc compiles them for macOS.
func TestCompactAgainstCFI(t *testing.T) {
	livetest.Slow(t)
	amd64 := []string{"rbx", "r12", "r13", "r14", "r15", "rbp"}
	var arm64 [][]string
	for _, pairs := range subsets([]string{"x19 x20", "x21 x22", "x23 x24", "x25 x26", "x27 x28", "d8 d9", "d10 d11", "d12 d13", "d14 d15"}, 9) {
		if len(pairs) < 3 || len(pairs) > 7 {
			arm64 = append(arm64, strings.Fields(strings.Join(pairs, " ")))
		}
	}
	arm64 = append(arm64, subsets([]string{"x19", "x20", "x21", "x28", "d8", "d9", "d15"}, 2)...)
	targets := []struct {
		triples []string
		trap    string
		sets    func(keep string) [][]string
		modes   []string
	}{
		{[]string{"x86_64-apple-macosx10.15", "x86_64-apple-macosx11"}, "int3", func(keep string) [][]string {
			if keep != "none" {
				return subsets(amd64[:5], 5) // rbp is the frame pointer, and no asm may clobber it
			}
			return subsets(amd64, 6)
		}, []string{"frame", "immediate", "indirect", "DWARF"}},
		{[]string{"arm64-apple-macosx11"}, "brk #0x7b", func(string) [][]string { return arm64 },
			[]string{"frame", "frameless", "DWARF"}},
	}
	for _, target := range targets {
		var mu sync.Mutex
		functions, sites := map[string]int{}, map[string]int{}
		t.Cleanup(func() {
			for _, mode := range target.modes {
				require.GreaterOrEqual(t, functions[mode], 100)
				require.GreaterOrEqual(t, sites[mode], 100)
			}
			t.Logf("%s: all agree; functions %v, sites %v", target.triples[0], functions, sites)
		})
		for keep, attribute := range framePointers {
			module := module(t, "frames.ll", framesModule(target.trap, target.sets(keep), attribute))
			for _, version := range []int{14, 19, 22} {
				for _, triple := range target.triples {
					for _, level := range []string{"-O0", "-O2"} {
						t.Run(fmt.Sprintf("%s/%s/%d%s", triple, keep, version, level), func(t *testing.T) {
							t.Parallel()
							flags := append(cfiFlags(version), "-mtriple="+triple, level)
							m := openMachO(t, livetest.Object(t, version, module, flags...))
							mu.Lock()
							defer mu.Unlock()
							m.sameAtSites(t, functions, sites)
							require.Zero(t, sites["nothing known"])
						})
					}
				}
			}
		}
	}
}

// TestCompactOfProbedStacks requires an error from AtCalls for prologues that call __chkstk_darwin. LLVM encodes them in the mode for large
// frames, although they have no subq with the size.
func TestCompactOfProbedStacks(t *testing.T) {
	module := module(t, "probe.ll", `
declare void @g(ptr)
define void @large(i64 %n) "probe-stack"="__chkstk_darwin" {
 %p = alloca [20000 x i8]
 call void @g(ptr %p)
 ret void
}`)
	for _, version := range []int{14, 19, 22} {
		m := openMachO(t, livetest.Object(t, version, module, "-mtriple=x86_64-apple-macosx11"))
		sites := m.sites(t)
		require.Len(t, sites, 2, "__chkstk_darwin, g")
		e, err := m.compact.Find(sites[1])
		require.NoError(t, err)
		require.Equal(t, "indirect", m.mode(e))
		_, err = e.AtCalls(m.code)
		require.ErrorContains(t, err, "encoding 0x03032000: no subq $imm32, %rsp is at +0 of 0x1000")
		fde, err := m.table.Find(sites[1])
		require.NoError(t, err)
		row, err := fde.Rules(sites[1])
		require.NoError(t, err)
		require.Equal(t, CFARule{Kind: CFARegister, Register: machine.AMD64.SP, Offset: 20016}, row.CFA)
	}
}

// TestCompactOfPrograms requires the same as TestCompactAgainstCFI for the programs of other tests.
func TestCompactOfPrograms(t *testing.T) {
	livetest.Slow(t)
	programs, err := filepath.Glob(filepath.Join(livetest.Testdata(t, "programs"), "*.ll"))
	require.NoError(t, err)
	functions, sites := map[string]int{}, map[string]int{}
	objects := 0
	for _, program := range programs {
		text, err := os.ReadFile(program)
		require.NoError(t, err)
		program = module(t, filepath.Base(program), string(text)+needsFDE)
		for _, triple := range []string{"x86_64-apple-macosx10.15", "x86_64-apple-macosx11", "arm64-apple-macosx11"} {
			for _, version := range livetest.ShareOf([]int{14, 19, 22}, filepath.Base(program), triple) {
				path := livetest.TryObject(t, version, program, append(cfiFlags(version), "-mtriple="+triple)...)
				if path == "" {
					continue
				}
				m := openMachO(t, path)
				objects++
				m.sameAtSites(t, functions, sites)
			}
		}
	}
	require.GreaterOrEqual(t, objects, 50)
	t.Logf("%d objects: all agree; functions %v, sites %v", objects, functions, sites)
}
