package sites_test

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// objectImage opens an unlinked object, with addresses in its section headers as a JIT writes them.
func objectImage(t *testing.T, path string) *object.Image {
	t.Helper()
	data, err := os.ReadFile(path)
	require.NoError(t, err)
	const header, headers, address = 64, 0x28, 0x10 // ELF-64: Elf64_Shdr, e_shoff, sh_addr
	from := binary.LittleEndian.Uint64(data[headers:])
	for n := range (uint64(len(data)) - from) / header {
		binary.LittleEndian.PutUint64(data[from+n*header+address:], n<<20)
	}
	img, err := object.New(path, bytes.NewReader(data), int64(len(data)))
	require.NoError(t, err)
	return img
}

// provenances compares each function of a module with its code in an image.
func provenances(t *testing.T, img *object.Image, m *ir.Module) (of map[string]sites.Provenance) {
	t.Helper()
	ms := sites.NewModules([]*ir.Module{m})
	of = map[string]sites.Provenance{}
	for s := range img.Functions() {
		if f := sites.Emitted(m, s.Name); f != nil {
			of[s.Name] = ms.ProvenanceOf(img, s.Addr, f)
		}
	}
	return of
}

// TestProvenanceOfOwnModules requires that no program contradicts its own module, for every compiler.
func TestProvenanceOfOwnModules(t *testing.T) {
	programs, err := filepath.Glob(filepath.Join(livetest.Testdata(t, "programs"), "*.ll"))
	require.NoError(t, err)
	require.NotEmpty(t, programs)
	count := map[sites.Sureness]int{}
	for _, program := range programs {
		for _, version := range []int{14, 19, 22} {
			for _, flags := range livetest.ShareOf([][]string{
				{"-O0"}, {"-O1"}, {"-O2"}, {"-O3"}, {"-O0", "-relocation-model=pic"}, {"-O2", "-relocation-model=pic"}, {"-O2", "-code-model=large"}, {"-O0", "-code-model=large"},
				{"-O2", "-mtriple=aarch64-linux-gnu"},
			}, "provenance", filepath.Base(program), version) {
				path := livetest.TryObject(t, version, program, flags...)
				if path == "" {
					continue // llc may reject the program for another architecture
				}
				m, err := ir.ParseFile(livetest.IR(t, version, program))
				require.NoError(t, err)
				for name, p := range provenances(t, objectImage(t, path), m) {
					require.NotEqual(t, sites.Contradicted, p.Sure, "%s, LLVM %d %v: @%s: %s", program, version, flags, name, p.Why)
					count[p.Sure]++
				}
			}
		}
	}
	t.Logf("%v", count)
	require.Positive(t, count[sites.Likely])
}

// sumModule is a module whose function has parts that tests replace.
const sumModule = `
declare void @g(i32, i32)
declare void @h(i32, i32)
@table = global [4 x i32] zeroinitializer
@other = global [4 x i32] zeroinitializer
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i32 @sum_opt(i32 %n) {
entry:
  %p = getelementptr [4 x i32], ptr @table, i32 0, i32 %n
  %v = load i32, ptr %p
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i32 %v)
  call void @g(i32 77, i32 %v)
  %c = icmp eq i32 %v, 0
  br i1 %c, label %zero, label %other
zero:
  call void @h(i32 4, i32 %v)
  call void @g(i32 4, i32 %v)
  ret i32 1001
other:
  ret i32 %v
}
`

func TestProvenanceOfOtherModules(t *testing.T) {
	swap := func(pairs ...string) string { return strings.NewReplacer(pairs...).Replace(sumModule) }
	for _, c := range []struct{ name, other, want string }{
		{"callee", swap("call void @g(i32 77", "call void @h2(i32 77", "declare void @g", "declare void @h2(i32, i32)\ndeclare void @g"), "with a call of @h2, which the code does not name"},
		{"every callee", swap("@g(", "@g2("), "with a call of @g2 where the code calls @g"},
		{"constant", swap("i32 77", "i32 78"), "with 78 for @g, in line 12, where the code has 77"},
		{"result", swap("ret i32 1001", "ret i32 1002"), "with 1002 as its result, in line 18, where the code has 1001"},
		{"variable", swap("ptr @table", "ptr @other"), "without @table, which the code names"},
		{"order", swap("call void @h(i32 4", "call void @g(i32 4", "call void @g(i32 4", "call void @h(i32 4"), "with calls in another order: only the code calls @h at this position"},
	} {
		own, err := ir.Parse("own.ll", []byte(sumModule))
		require.NoError(t, err)
		other, err := ir.Parse("sum.ll", []byte(c.other))
		require.NoError(t, err, c.name)
		path := livetest.Module(t, sumModule)
		for _, version := range []int{14, 19, 22} {
			for _, flags := range [][]string{{"-O0"}, {"-O2"}, {"-O2", "-relocation-model=pic"}, {"-O2", "-code-model=large"}} {
				img := objectImage(t, livetest.Object(t, version, path, flags...))
				p := provenances(t, img, other)["sum_opt"]
				if c.name == "order" && slices.Contains(flags, "-code-model=large") {
					continue // a call through a register, whose callee ProvenanceOf does not examine
				}
				require.Equal(t, sites.Provenance{Sure: sites.Contradicted, Why: "sum.ll defines @sum_opt " + c.want}, p, "%s, LLVM %d %v", c.name, version, flags)
				p = provenances(t, img, own)["sum_opt"]
				require.Equal(t, sites.Provenance{Sure: sites.Likely, Why: "3 symbols and 3 constants in the code match this module"}, p, "%s, LLVM %d %v", c.name, version, flags)
			}
		}
	}
}

// TestProvenanceByBitcode requires that IR that is stored with the code makes a module certain, even if the names of values differ. For another
// module the reason must name the difference.
func TestProvenanceByBitcode(t *testing.T) {
	path := livetest.Module(t, sumModule)
	object := filepath.Join(t.TempDir(), "sum.o")
	livetest.Make(t, livetest.LLVM(t, 19, "clang"), "-c", "-O0", "-fembed-bitcode", "-Wno-override-module", "-x", "ir", path, "-o", object)
	img := objectImage(t, object)
	for _, c := range []struct {
		other string
		want  sites.Provenance
	}{
		{strings.ReplaceAll(sumModule, "%v", "%value"), sites.Provenance{Sure: sites.Certain, Why: "the section .llvmbc has the same"}},
		{strings.ReplaceAll(sumModule, "i32 %v, 0", "i32 %v, 1"), sites.Provenance{Sure: sites.Contradicted, Why: "sum.ll and the section .llvmbc define different functions @sum_opt: line 13 has %c = icmp eq i32 %v, 1, which is %c = icmp eq i32 %v, 0 there"}},
	} {
		m, err := ir.Parse("sum.ll", []byte(c.other))
		require.NoError(t, err)
		p := provenances(t, img, m)["sum_opt"]
		require.Equal(t, c.want, p)
	}
}

// TestProvenanceByText requires that the text of a module that a self-describing JIT stores makes the module certain.
func TestProvenanceByText(t *testing.T) {
	text := strings.ReplaceAll(sumModule, "%v", "%value")
	own := strings.NewReplacer("\\", "\\5C", "\n", "\\0A", `"`, "\\22").Replace(text)
	described := sumModule + fmt.Sprintf("@ir = constant [%d x i8] c\"%s\\00\", section \".reframe.ir\"\n", len(text)+1, own)
	img := objectImage(t, livetest.Object(t, 19, livetest.Module(t, described), "-O2"))
	for _, c := range []struct {
		other string
		want  sites.Provenance
	}{
		{sumModule, sites.Provenance{Sure: sites.Certain, Why: "the section .reframe.ir has the same"}},
		{strings.ReplaceAll(sumModule, "i32 1001", "i32 1002"), sites.Provenance{Sure: sites.Contradicted, Why: "sum.ll and the section .reframe.ir define different functions @sum_opt: line 18 has ret i32 1002, which is ret i32 1001 there"}},
	} {
		m, err := ir.Parse("sum.ll", []byte(c.other))
		require.NoError(t, err)
		require.Equal(t, c.want, provenances(t, img, m)["sum_opt"])
	}
}
