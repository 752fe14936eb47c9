package instrument

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

var releases = []int{14, 16, 19, 22}

// file writes a text to a file of the test's own.
func file(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// module writes sites into a file, and returns the new file.
func module(t *testing.T, path string, o Options) (string, *Result) {
	t.Helper()
	m, err := ir.ParseFile(path)
	require.NoError(t, err)
	r, err := Module(m, o)
	require.NoError(t, err)
	added(t, m.Text(), r)
	return file(t, "sites.ll", r.Text), r
}

// TestWhatClangWritesIsCompiled requires that the release of clang compiles its modules with sites, at any level, with a record of each site that it
// keeps. llc runs LLVM's verifier.
func TestWhatClangWritesIsCompiled(t *testing.T) {
	livetest.Slow(t)
	cases := [][]string{
		{"language.c", "-O0"}, {"language.c", "-O2", "-g"}, {"language.c", "-O1", "-ffp-model=strict"}, {"language.c", "-O1", "-fsanitize=address,undefined"},
		{"exceptions.cpp", "-O0"}, {"exceptions.cpp", "-O2", "-g"}, {"exceptions.cpp", "-O1", "--target=x86_64-w64-mingw32"},
		{"vectors.c", "-O0", "-march=skylake-avx512"}, {"vectors.c", "-O3", "-march=skylake-avx512"}, {"vectors.c", "-O1"},
		{"parallel.c", "-O2", "-fopenmp", "-g"}, {"coroutine.cpp", "-O2", "-std=c++20"}, {"asmgoto.c", "-O1"}, {"language.c", "-O2", "--target=aarch64-linux-gnu", "-nostdinc"},
	}
	sites := 0
	for n, c := range cases {
		for _, version := range livetest.ShareOf([]int{14, 19}, "clang", n) {
			if version == 14 && slices.Contains(c, "--target=x86_64-w64-mingw32") {
				continue // for Windows llc 14 writes no stack map for statepoints
			}
			clang := livetest.LLVM(t, version, "clang")
			source, err := filepath.Abs(filepath.Join("../../llvm/ir/testdata/corpus", c[0]))
			require.NoError(t, err)
			plain, failure := livetest.TryMade(t, clang, "plain.ll", append(append([]string{}, c[1:]...), "-w", "-S", "-emit-llvm", source)...)
			if failure != "" { // the file needs headers that exist only for another architecture
				continue
			}
			for _, level := range livetest.ShareOf([]string{"-O0", "-O2"}, version, c) {
				o := Options{Blocks: true, Calls: true, Sites: true, Release: version}
				if level == "-O0" {
					o.Most = 8
				}
				path, r := module(t, plain, o)
				require.NotEmpty(t, r.Sites, "%v", c)
				flags := []string{level, "-filetype=obj", "-relocation-model=pic"}
				for _, flag := range c {
					if cpu, ok := strings.CutPrefix(flag, "-march="); ok {
						flags = append(flags, "-mcpu="+cpu)
					}
				}
				if _, failure := livetest.TryMade(t, livetest.LLVM(t, version, "llc"), "plain.o", append(slices.Clone(flags), plain)...); failure != "" {
					continue // the module cannot be compiled without sites either
				}
				object, failure := livetest.TryMade(t, livetest.LLVM(t, version, "llc"), "sites.o", append(flags, path)...)
				require.Empty(t, failure, "LLVM %d %s: %v", version, level, c)
				require.FileExists(t, object)
				sites += len(r.Sites)
			}
		}
	}
	t.Logf("%d sites", sites)
	require.Greater(t, sites, 200)
}

// TestValuesOfAnyType requires that a value of any type is recorded or left out, and no release of LLVM crashes.
func TestValuesOfAnyType(t *testing.T) {
	livetest.Slow(t)
	types := []string{"i1", "i2", "i7", "i8", "i13", "i16", "i24", "i32", "i33", "i48", "i63", "i64", "i65", "i100", "i128", "i256", "half", "bfloat", "float", "double", "x86_fp80", "fp128",
		"<2 x i32>", "<4 x i32>", "<3 x i32>", "<2 x i1>", "<16 x i1>", "<4 x i24>", "<8 x i32>", "<16 x float>", "<4 x half>", "<8 x half>", "<8 x bfloat>", "<2 x double>", "<1 x i64>", "<2 x i64>", "<1 x i8>", "<32 x i8>", "<2 x i128>",
		"<2 x POINTER>", "POINTER", "[1 x i32]", "[2 x i32]", "{ i32 }", "{ i32, i64 }", "{}", "[0 x i8]", "{ { float } }", "{ {}, double }", "{ x86_fp80 }", "{ i128 }", "{ i1 }"}
	for _, version := range releases {
		pointer := "ptr"
		if version == 14 {
			pointer = "i8*"
		}
		var text strings.Builder
		text.WriteString("target triple = \"x86_64-pc-linux-gnu\"\ndeclare void @g()\n")
		var made []string
		for n, typ := range types {
			typ = strings.ReplaceAll(typ, "POINTER", pointer)
			// The newest releases do not know x86_mmx and others: skip what llc cannot compile without sites.
			one := fmt.Sprintf("define %s @f%d(%s* %%p) {\n  %%v = load %s, %s* %%p\n  br label %%next\nnext:\n  call void @g()\n  ret %s %%v\n}\n", typ, n, typ, typ, typ, typ)
			if version > 14 {
				one = fmt.Sprintf("define %s @f%d(ptr %%p) {\n  %%v = load %s, ptr %%p\n  br label %%next\nnext:\n  call void @g()\n  ret %s %%v\n}\n", typ, n, typ, typ)
			}
			if _, failure := livetest.TryMade(t, livetest.LLVM(t, version, "llc"), "m.o", "-filetype=obj", file(t, "m.ll", text.String()[:strings.Index(text.String(), "declare")]+"declare void @g()\n"+one)); failure == "" {
				made = append(made, one)
			}
		}
		require.Greater(t, len(made), 40, "LLVM %d", version)
		path, r := module(t, file(t, "types.ll", text.String()+strings.Join(made, "")), Options{Blocks: true, Calls: true, Release: version})
		require.Len(t, r.Sites, 3*len(made))
		for _, level := range []string{"-O0", "-O2"} {
			_, failure := livetest.TryMade(t, livetest.LLVM(t, version, "llc"), "m.o", level, "-filetype=obj", path)
			require.Empty(t, failure, "LLVM %d %s", version, level)
		}
	}
}

// TestProgramsDoTheSame requires that random programs behave the same with sites at all places as without sites. They are compiled ahead of time, and
// just in time by lli.
func TestProgramsDoTheSame(t *testing.T) {
	livetest.Slow(t)
	seeds := []int{2, 3, 7, 9, 11, 15, 16, 25, 57, 59}
	ran := 0
	for n, seed := range seeds {
		for _, version := range livetest.ShareOf([]int{14, 19}, "same", n) {
			for _, level := range livetest.ShareOf([]string{"-O0", "-O1", "-O2", "-O3"}, "same", seed) {
				source := livetest.Csmith(t, seed)
				plain := livetest.Made(t, livetest.LLVM(t, version, "clang"), "plain.ll", level, "-w", "-I/usr/include/csmith", "-S", "-emit-llvm", source)
				o := Options{Blocks: true, Calls: true, Release: version}
				if level == "-O0" {
					o.Most = 8
				}
				path, r := module(t, plain, o)
				require.Greater(t, len(r.Sites), 10)
				want := output(t, livetest.ModuleBinary(t, version, plain))
				require.Equal(t, want, output(t, livetest.ModuleBinary(t, version, path, level)), "seed %d, LLVM %d %s", seed, version, level)
				for _, kind := range livetest.ShareOf([]string{"mcjit", "orc"}, "same", seed, version) {
					for _, later := range livetest.ShareOf(releases[slices.Index(releases, version):], "same", seed, kind) {
						if _, failure := livetest.TryMade(t, livetest.LLVM(t, later, "llvm-as"), "plain.bc", plain); failure != "" {
							later = version // LLVM 19 refuses constant expressions of LLVM 14, such as zext
						}
						require.Equal(t, want, output(t, append(livetest.LliWords(t, later), "-jit-kind="+kind, level, path)...), "seed %d, clang-%d %s, lli-%d %s", seed, version, level, later, kind)
					}
				}
				ran++
			}
		}
	}
	require.GreaterOrEqual(t, ran, len(seeds))
}

func output(t *testing.T, command ...string) string {
	t.Helper()
	var stderr strings.Builder
	c := exec.CommandContext(t.Context(), command[0], command[1:]...)
	c.Stderr = &stderr
	out, err := c.Output()
	require.NoError(t, err, "%q\n%s", command, &stderr)
	return string(out)
}
