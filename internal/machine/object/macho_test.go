package object

import (
	"encoding/binary"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// machoTriples lists the kinds of Mach-O that LLVM writes.
var machoTriples = map[string]string{
	"x86_64": "x86_64-apple-macosx11.0.0", "arm64": "arm64-apple-macosx11.0.0",
	"arm64e": "arm64e-apple-macosx11.0.0", "arm64_32": "arm64_32-apple-watchos7.0",
}

// machoObjects calls check with objects of each kind from each release of LLVM.
func machoObjects(t *testing.T, check func(t *testing.T, arch, path string)) {
	programs := map[int][]string{
		14: {"dup.ll", "jit_sp.ll", "jit_pp.ll"}, 19: {"jit_pp.ll", "deoptimize.ll", "sm_spill.ll"}, 22: {"dup.ll", "jit_pp.ll", "jit_sp.ll"},
	}
	for version, list := range programs {
		for arch, triple := range machoTriples {
			for _, program := range list {
				t.Run(fmt.Sprintf("%s/%s/%d", program, arch, version), func(t *testing.T) {
					check(t, arch, livetest.Object(t, version, program, "-mtriple="+triple))
				})
			}
		}
	}
}

// ld64 links objects with lld.
func ld64(t testing.TB, arch string, flags []string, objects ...string) string {
	t.Helper()
	out := filepath.Join(t.TempDir(), "linked")
	args := append([]string{"-arch", arch, "-platform_version", "macos", "11.0", "11.0", "-undefined", "dynamic_lookup", "-o", out}, flags...)
	run(t, livetest.Tool(t, "ld64.lld-19"), append(args, objects...)...)
	return out
}

// machoLinks calls check with images that lld links, and their objects.
func machoLinks(t *testing.T, programs []string, check func(t *testing.T, object, linked string)) {
	for _, arch := range []string{"x86_64", "arm64"} {
		for _, flags := range []string{
			"-execute -fixup_chains", "-execute -no_fixup_chains", "-dylib -fixup_chains", "-dylib -no_fixup_chains",
			"-bundle -fixup_chains", "-dylib -flat_namespace -fixup_chains", "-execute -no_pie -no_fixup_chains",
		} {
			for _, program := range programs {
				t.Run(arch+" "+flags+" "+program, func(t *testing.T) {
					t.Parallel()
					if arch == "arm64" && strings.Contains(flags, "-no_pie") {
						flags = strings.ReplaceAll(flags, "-no_pie", "")
					}
					source := program
					if program == "weak" {
						source = weakProgram(t)
					}
					object := livetest.Object(t, 19, source, "-mtriple="+machoTriples[arch])
					check(t, object, ld64(t, arch, strings.Fields(flags), object))
				})
			}
		}
	}
}

// weakProgram has a function that other images may replace, so that even the stack map's own reference to it is an import. It also has a hidden function,
// which is local in the linker's symbol table.
func weakProgram(t testing.TB) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "weak.ll")
	require.NoError(t, os.WriteFile(path, []byte(`
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @elsewhere()
define internal void @first(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %x)
  ret void
}
define linkonce_odr void @weak(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %x)
  ret void
}
define hidden void @hidden(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, i64 %x)
  ret void
}
define void @main(i64 %x) {
  call void @weak(i64 %x)
  call void @first(i64 %x)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 %x)
  ret void
}
@table = global [5 x ptr] [ptr @elsewhere, ptr @main, ptr @weak, ptr getelementptr (i8, ptr @elsewhere, i64 8), ptr @hidden]
`), 0o644))
	return path
}

// nmRow is a line of llvm-nm.
type nmRow struct {
	addr uint64
	kind string // the letter of the symbol's kind
	name string
}

func llvmNM(t *testing.T, path string) (rows []nmRow) {
	t.Helper()
	for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-nm"), path)) {
		f := strings.Fields(line)
		if len(f) == 2 {
			rows = append(rows, nmRow{kind: f[0], name: f[1]})
			continue
		}
		require.Len(t, f, 3, line)
		addr, err := strconv.ParseUint(f[0], 16, 64)
		require.NoError(t, err)
		rows = append(rows, nmRow{addr, f[1], f[2]})
	}
	require.NotEmpty(t, rows)
	return rows
}

// checkMachOSections requires the names, addresses, sizes and bytes of sections that llvm-readobj and llvm-objcopy return.
func checkMachOSections(t *testing.T, path string) {
	t.Helper()
	type row struct {
		addr, size  uint64
		zeros, code bool
	}
	want := map[string]row{}
	var name string
	var r row
	number := func(s string) uint64 {
		v, err := strconv.ParseUint(s, 0, 64)
		require.NoError(t, err)
		return v
	}
	for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-readobj"), "--sections", path)) {
		f := strings.Fields(line)
		if len(f) < 2 {
			continue
		}
		switch f[0] {
		case "Name:":
			name, r = f[1], row{}
		case "Segment:":
			name = f[1] + "," + name
		case "Address:":
			r.addr = number(f[1])
		case "Size:":
			r.size = number(f[1])
		case "Type:":
			r.zeros = f[1] == "ZeroFill"
		case "SomeInstructions":
			r.code = true
		case "Reserved1:":
			want[name] = r
		}
	}
	img := openFile(t, path)
	require.Len(t, img.all, len(want))
	dir := t.TempDir()
	args := []string{path, filepath.Join(dir, "copy")}
	for name, w := range want {
		s := img.Section(name)
		require.NotNil(t, s, name)
		require.Equal(t, w, row{uint64(s.Addr), s.Size, !s.Bits, s.Exec}, name)
		require.Equal(t, name != "__LD,__compact_unwind", s.Alloc, name)
		if s.Bits {
			args = append([]string{"--dump-section=" + name + "=" + filepath.Join(dir, name)}, args...)
		}
	}
	run(t, livetest.LLVM(t, 22, "llvm-objcopy"), args...)
	for name := range want {
		if s := img.Section(name); s.Bits {
			bytes, err := os.ReadFile(filepath.Join(dir, name))
			require.NoError(t, err)
			got, err := s.Data()
			require.NoError(t, err)
			require.Equal(t, bytes, got, name)
		}
	}
	require.Len(t, img.StackMaps(), 1)
	require.Equal(t, img.Section("__LLVM_STACKMAPS,__llvm_stackmaps"), img.StackMaps()[0])
}

func TestMachOSections(t *testing.T) {
	livetest.Slow(t)
	machoObjects(t, func(t *testing.T, _, path string) {
		checkMachOSections(t, path)
		require.True(t, openFile(t, path).Relocatable())
	})
	machoLinks(t, []string{"jit_pp.ll"}, func(t *testing.T, _, linked string) {
		checkMachOSections(t, linked)
		img := openFile(t, linked)
		require.False(t, img.Relocatable())
		text := img.Section("__TEXT,__text")
		at, ok := img.FileAddr(uint64(text.Addr - machine.Addr(img.format.(*machoFormat).base())))
		require.True(t, ok)
		require.Equal(t, text.Addr, at, "the first segment starts with the header, at the start of the file")
		_, ok = img.FileAddr(1 << 40)
		require.False(t, ok)
	})
}

// checkMachOSymbols compares symbols with llvm-nm. moved is the distance of the sections from their headers' addresses.
func checkMachOSymbols(t *testing.T, path string, img *Image, moved, bias uint64) {
	t.Helper()
	functions := 0
	for _, r := range llvmNM(t, path) {
		sym, ok := img.Lookup(r.name)
		_, exported := img.Exported(r.name)
		if r.kind == "U" {
			require.False(t, ok, "%s is only referred to", r.name)
			continue
		}
		require.True(t, ok, r.name)
		at := machine.Addr(r.addr + moved + bias)
		if strings.ToUpper(r.kind) == "A" { // absolute, such as the header of an image with a fixed address
			at = machine.Addr(r.addr)
		}
		require.Equal(t, Symbol{Name: r.name, Addr: at}, sym)
		hidden := r.name == "_hidden" // private extern; llvm-nm gives it the letter of a global symbol in an object
		require.Equal(t, !hidden && strings.ToUpper(r.kind) == r.kind, exported, r.name)
		if strings.ToUpper(r.kind) != "T" || r.name == "ltmp0" || r.name == "__mh_execute_header" {
			continue
		}
		functions++
		starting, ok := img.SymbolStarting(at)
		require.True(t, ok, r.name)
		require.Equal(t, sym, starting, "labels of the assembler give way")
		inside, ok := img.SymbolAt(at + 3)
		require.True(t, ok)
		require.Equal(t, sym, inside)
		require.NotNil(t, img.CodeAt(at), r.name)
	}
	require.NotZero(t, functions)
}

func TestMachOSymbols(t *testing.T) {
	livetest.Slow(t)
	machoObjects(t, func(t *testing.T, _, path string) {
		img := openFile(t, path)
		img.PlaceSections()
		img.PlaceSections()
		require.True(t, img.Placed())
		text := img.Section("__TEXT,__text")
		require.NotZero(t, text.Addr)
		checkMachOSymbols(t, path, img, uint64(text.Addr), 0)
	})
	machoLinks(t, []string{"weak"}, func(t *testing.T, _, linked string) {
		img := openFile(t, linked)
		const bias = 0x7f0000000000
		img.Bias = bias
		img.PlaceSections()
		require.False(t, img.Placed())
		checkMachOSymbols(t, linked, img, 0, bias)
	})
}

// TestMachONext requires that a function without a size ends at the next symbol.
func TestMachONext(t *testing.T) {
	path := livetest.Object(t, 22, "jit_pp.ll", "-mtriple="+machoTriples["arm64"])
	img := openFile(t, path)
	img.PlaceSections()
	blocker, ok := img.Lookup("_blocker")
	require.True(t, ok)
	next, ok := img.Next(blocker.Addr)
	require.True(t, ok)
	work, ok := img.Lookup("_work")
	require.True(t, ok)
	require.Equal(t, work.Addr, next)
}

func TestMachOArch(t *testing.T) {
	for arch, triple := range machoTriples {
		img := openFile(t, livetest.Object(t, 19, "dup.ll", "-mtriple="+triple))
		got, err := img.Arch()
		require.NoError(t, err)
		if arch == "x86_64" {
			require.Equal(t, machine.AMD64, got)
		} else {
			require.Equal(t, machine.ARM64, got)
		}
		require.Equal(t, arch == "arm64_32", img.Narrow())
	}
	for triple, name := range map[string]string{"i386-apple-macosx10.14": "i386", "armv7-apple-ios9": "arm", "x86_64h-apple-macosx11": "x86_64h"} {
		img := openFile(t, livetest.Object(t, 19, assembled(t, "nothing.ll", "define void @f() {\n ret void\n}\n"), "-mtriple="+triple))
		f := img.format.(*machoFormat)
		require.Equal(t, name, cpuName(f.cpu, f.sub))
		if name != "x86_64h" {
			_, err := img.Arch()
			require.ErrorContains(t, err, "Mach-O for "+name+" is not supported")
		}
	}
	big := make([]byte, 64)
	binary.BigEndian.PutUint32(big, 0xfeedface)
	binary.BigEndian.PutUint32(big[4:], 18)
	_, err := New("old", strings.NewReader(string(big)), 64)
	require.EqualError(t, err, "old: big-endian Mach-O for ppc is not supported")
}

// assembled writes a source file and returns its path.
func assembled(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o644))
	return path
}

func TestUniversal(t *testing.T) {
	var objects []string
	archs := []string{"x86_64", "arm64", "arm64e", "arm64_32"}
	for _, arch := range archs {
		objects = append(objects, livetest.Object(t, 19, "dup.ll", "-mtriple="+machoTriples[arch]))
	}
	for _, flags := range [][]string{{"-create"}, {"-create", "-fat64"}} {
		out := filepath.Join(t.TempDir(), "fat")
		run(t, livetest.LLVM(t, 22, "llvm-lipo"), append(append(flags, "-output", out), objects...)...)
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		require.True(t, isFat([4]byte(data)))
		list, err := fatSlices(strings.NewReader(string(data)), int64(len(data)))
		require.NoError(t, err)
		require.Len(t, list, len(archs))
		for _, s := range list {
			n := 0
			for archs[n] != s.arch {
				n++
			}
			want, err := os.ReadFile(objects[n])
			require.NoError(t, err)
			require.Equal(t, want, data[s.offset:s.offset+s.size], s.arch)
		}
		for n := range 8 + 4*32 {
			_, err := fatSlices(strings.NewReader(string(data[:n])), int64(n))
			require.Error(t, err, n)
		}
		_, err = fatSlices(strings.NewReader(string(data)), int64(len(data)-1))
		require.ErrorContains(t, err, "it is cut short or damaged: its image for ")
	}
	_, err := fatSlices(strings.NewReader("\xca\xfe\xba\xbe\x00\x00\x00\x34 a Java class"), 20)
	require.ErrorIs(t, err, ErrNotObject)
	_, err = fatSlices(strings.NewReader("\xca\xfe"), 2)
	require.ErrorIs(t, err, ErrNotObject)
}
