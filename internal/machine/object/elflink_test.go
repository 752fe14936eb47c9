package object

import (
	"debug/elf"
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

// target is a target for which llc writes ELF objects with stack maps.
type target struct {
	triple string
	arch   *machine.Arch
	flags  []string
	// programs lists the programs that llc accepts for the target. It does not lower statepoints on PowerPC and s390x, or stackmaps on LoongArch. LLVM
	// 14 has no stack maps on RISC-V and no LoongArch.
	programs []string
	versions []int
}

var elfTargets = []target{
	{"x86_64-linux-gnu", machine.AMD64, nil, []string{"dup.ll", "jit_pp.ll", "jit_sp.ll", "deoptimize.ll"}, []int{14, 19, 22}},
	{"x86_64-linux-gnux32", machine.AMD64, nil, []string{"dup.ll", "jit_pp.ll", "jit_sp.ll", "deoptimize.ll"}, []int{14, 19, 22}},
	{"aarch64-linux-gnu", machine.ARM64, nil, []string{"dup.ll", "jit_pp.ll", "jit_sp.ll", "deoptimize.ll"}, []int{14, 19, 22}},
	{"aarch64_be-linux-gnu", machine.ARM64BE, nil, []string{"dup.ll", "jit_pp.ll", "jit_sp.ll", "deoptimize.ll"}, []int{14, 19, 22}},
	{"powerpc64-linux-gnu", machine.PPC64, nil, []string{"dup.ll", "jit_pp.ll"}, []int{14, 19, 22}},
	{"powerpc64le-linux-gnu", machine.PPC64LE, nil, []string{"dup.ll", "jit_pp.ll"}, []int{14, 19, 22}},
	{"riscv64-linux-gnu", machine.RISCV64, []string{"-mattr=+m,+d", "-target-abi=lp64d"}, []string{"dup.ll", "jit_sp.ll", "deoptimize.ll"}, []int{19, 22}},
	// Not LLVM 22: its llc emits relocations to align functions, and lld drops bytes for them even with --no-relax.
	{"riscv64-linux-gnu", machine.RISCV64, []string{"-mattr=+m,+d,+relax", "-target-abi=lp64d"}, []string{"dup.ll", "jit_sp.ll", "deoptimize.ll"}, []int{19}},
	{"s390x-linux-gnu", machine.S390X, nil, []string{"dup.ll", "jit_pp.ll"}, []int{14, 19, 22}},
	{"loongarch64-linux-gnu", machine.LOONG64, nil, []string{"jit_sp.ll", "deoptimize.ll"}, []int{22}},
}

func (c target) object(t testing.TB, version int, program string) string {
	t.Helper()
	return livetest.Object(t, version, program, append([]string{"-mtriple=" + c.triple}, c.flags...)...)
}

// nm returns the address of each symbol that llvm-nm prints.
func nm(t *testing.T, path string) map[string]machine.Addr {
	t.Helper()
	addrs := map[string]machine.Addr{}
	for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-nm"), path)) {
		if f := strings.Fields(line); len(f) == 3 {
			v, err := strconv.ParseUint(f[0], 16, 64)
			require.NoError(t, err, line)
			addrs[f[2]] = machine.Addr(v)
		}
	}
	return addrs
}

// functions returns the function addresses of a stack map section: a count at offset 4, rows of 24 bytes from offset 16.
func functions(data []byte, order binary.ByteOrder) []machine.Addr {
	var addrs []machine.Addr
	for n := range order.Uint32(data[4:]) {
		addrs = append(addrs, machine.Addr(order.Uint64(data[16+24*n:])))
	}
	return addrs
}

// onDisk reads the bytes of a section without this package.
func onDisk(t *testing.T, path, section string) (data []byte, addr uint64) {
	t.Helper()
	f, err := elf.Open(path)
	require.NoError(t, err)
	defer f.Close()
	s := f.Section(section)
	require.NotNil(t, s, section)
	data, err = s.Data()
	require.NoError(t, err)
	return data, s.Addr
}

func lld(t *testing.T, out string, args ...string) {
	t.Helper()
	run(t, livetest.Tool(t, "ld.lld-19"), append([]string{"-e", "0", "--unresolved-symbols=ignore-all", "-o", out}, args...)...)
}

// TestRelocatedIsWhatLLDLinks requires that an object placed at lld's addresses has the bytes that lld writes.
func TestRelocatedIsWhatLLDLinks(t *testing.T) {
	livetest.Slow(t)
	compared := map[string]int{}
	for _, c := range elfTargets {
		for _, version := range c.versions {
			for _, program := range c.programs {
				if version == 14 && program == "deoptimize.ll" {
					continue // the program uses opaque pointers, which llc 14 does not read
				}
				name := fmt.Sprintf("%s %v %d %s", c.triple, c.flags, version, program)
				path, linked := c.object(t, version, program), filepath.Join(t.TempDir(), "linked")
				// Options such as -z separate-code do not matter, because the sections are looked up.
				lld(t, linked, "--no-relax", path)
				img, whole := openFile(t, path), openFile(t, linked)
				require.True(t, img.Relocatable(), name)
				require.False(t, whole.Relocatable(), name)
				for _, s := range img.all {
					if o := whole.Section(s.Name); s.Alloc && o != nil {
						s.Addr = o.Addr
					}
				}
				for _, section := range []string{".llvm_stackmaps", ".eh_frame"} {
					want, _ := onDisk(t, linked, section)
					got, done, err := img.Section(section).Relocated()
					require.NoError(t, err, name)
					require.Zero(t, Undefined(done), name)
					require.NotEmpty(t, done, name)
					// lld appends four zero bytes to .eh_frame.
					require.Equal(t, want[:len(got)], got, "%s %s", name, section)
					compared[section]++
				}
				// References through tables that only a linker creates are listed but not relocated.
				_, _, err := img.Section(".text").Relocated()
				require.NoError(t, err, name)
				stackmaps, _, err := img.StackMaps()[0].Relocated()
				require.NoError(t, err)
				order, addrs := img.format.(*elfFormat).file.ByteOrder, nm(t, linked)
				require.NotEmpty(t, functions(stackmaps, order))
				for _, at := range functions(stackmaps, order) {
					sym, ok := img.SymbolStarting(at)
					require.True(t, ok, name)
					require.Equal(t, addrs[sym.Name], at, "%s %s", name, sym.Name)
					entry, ok := img.Entry(at)
					require.True(t, ok, name)
					require.NotNil(t, img.CodeAt(entry), name)
					require.Equal(t, ".text", img.CodeAt(entry).Name, name)
					again, ok := whole.Entry(at)
					require.True(t, ok, name)
					require.Equal(t, again, entry, name)
					require.Equal(t, img.Section(".opd") == nil, entry == at, name)
				}
			}
		}
	}
	require.Equal(t, map[string]int{".llvm_stackmaps": 73, ".eh_frame": 73}, compared)
}

// TestRelocatedDistances covers the distances that the assembler leaves to a linker that may shorten code, in every width.
func TestRelocatedDistances(t *testing.T) {
	const source = `
	.text
a:	nop
	call f
b:	nop
	call f
c:	nop
	.data
	.byte b - a
	.half b - a
	.word b - a
	.quad b - a
	.quad c - 8
	.word c - b
	.word a - .
	.byte 0xff
	.quad nowhere
	.word elsewhere - a
`
	for _, c := range []struct{ triple, attr string }{{"riscv64-linux-gnu", "+relax"}, {"loongarch64-linux-gnu", "+relax"}} {
		dir := t.TempDir()
		in, out, linked := filepath.Join(dir, "d.s"), filepath.Join(dir, "d.o"), filepath.Join(dir, "d")
		text := source
		if strings.HasPrefix(c.triple, "loong") {
			text = strings.ReplaceAll(source, "call f", "pcalau12i $a0, %pc_hi20(f)\n\taddi.d $a0, $a0, %pc_lo12(f)")
		}
		require.NoError(t, os.WriteFile(in, []byte(text), 0o644))
		run(t, livetest.LLVM(t, 22, "llvm-mc"), "-filetype=obj", "-triple="+c.triple, "-mattr="+c.attr, "-o", out, in)
		lld(t, linked, "--no-relax", "--defsym=f=0x10000", out)
		img, whole := openFile(t, out), openFile(t, linked)
		img.Section(".text").Addr, img.Section(".data").Addr = whole.Section(".text").Addr, whole.Section(".data").Addr
		want, _ := onDisk(t, linked, ".data")
		got, done, err := img.Section(".data").Relocated()
		require.NoError(t, err)
		raw, err := img.Section(".data").Data()
		require.NoError(t, err)
		known := len(want) - 12
		require.Equal(t, want[:known], got[:known], c.triple)
		require.Equal(t, raw[known:], got[known:], "places that cannot be known stay")
		require.NotEqual(t, raw[:known], got[:known])
		// One end of the last distance is undefined, so neither of its relocations counts.
		require.Equal(t, 3, Undefined(done))
		var names []string
		for _, r := range done {
			if !r.Defined {
				names = append(names, r.Symbol())
			}
		}
		require.Equal(t, []string{"nowhere", "elsewhere", "a"}, names)
	}
}

// TestRelocatedOfLinked requires that relocations for the loader give each function's link-time address, independent of the bytes in the file.
func TestRelocatedOfLinked(t *testing.T) {
	livetest.Slow(t)
	dir := t.TempDir()
	type kind struct{ linker, flags string }
	kinds := []kind{
		{"lld", "-no-pie"}, {"lld", "-pie -z notext"}, {"lld", "-pie -z notext --pack-dyn-relocs=relr"},
		{"lld", "-shared -z notext"}, {"lld", "-shared -z notext --pack-dyn-relocs=relr"}, {"lld", "-no-pie --emit-relocs"},
		{"lld", "-pie -z notext -z rel"}, {"lld", "-shared -z notext -z rel"}, {"lld", "-pie -z notext -z rel --pack-dyn-relocs=relr"},
		{"gcc", "-pie"}, {"gcc", "-no-pie"}, {"gcc", "-shared"},
	}
	// In a place that is relocated at load time, lld stores 0 and GNU ld the link-time address.
	zero, places := 0, 0
	for _, version := range []int{14, 19, 22} {
		for program, names := range map[string][]string{"dup.ll": {"inl", "a"}, "jit_pp.ll": {"work"}} {
			object := livetest.Object(t, version, program, "-relocation-model=pic")
			for n, k := range kinds {
				out := filepath.Join(dir, fmt.Sprintf("%d-%s-%d", version, program, n))
				if k.linker == "lld" {
					lld(t, out, append(strings.Fields(k.flags), object)...)
				} else {
					run(t, livetest.Tool(t, "gcc"), "-nostdlib", "-Wl,--unresolved-symbols=ignore-all", k.flags, object, "-o", out)
				}
				img := openFile(t, out)
				data, done, err := img.StackMaps()[0].Relocated()
				require.NoError(t, err, "%v", k)
				require.Zero(t, Undefined(done))
				addrs := nm(t, out)
				var want []machine.Addr
				for _, name := range names {
					require.NotZero(t, addrs[name])
					want = append(want, addrs[name])
				}
				require.Equal(t, want, functions(data, binary.LittleEndian), "%v", k)
				places += len(done)
				raw, _ := onDisk(t, out, ".llvm_stackmaps")
				for _, at := range functions(raw, binary.LittleEndian) {
					if at == 0 {
						zero++
					}
				}
				// The load address must not change the result: addresses are those of the image.
				img.Bias = 0x7f0000000000
				again, _, err := img.StackMaps()[0].Relocated()
				require.NoError(t, err)
				require.Equal(t, data, again)
			}
		}
	}
	require.Positive(t, zero, "nothing had to be relocated")
	require.Positive(t, places)
}

// TestSectionsOfEveryTarget requires each section that readelf prints, in each class and byte order.
func TestSectionsOfEveryTarget(t *testing.T) {
	for _, c := range elfTargets {
		path := c.object(t, c.versions[len(c.versions)-1], c.programs[0])
		img := openFile(t, path)
		n := 0
		for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-readelf"), "-SW", path)) {
			number, rest, ok := strings.Cut(strings.TrimPrefix(strings.TrimSpace(line), "["), "]")
			f := strings.Fields(rest)
			if _, err := strconv.Atoi(strings.TrimSpace(number)); !ok || err != nil || len(f) < 9 {
				continue
			}
			s := img.all[n+1]
			size, err := strconv.ParseUint(f[4], 16, 64)
			require.NoError(t, err)
			require.Equal(t, f[0], s.Name)
			require.Equal(t, size, s.Size)
			require.Equal(t, strings.Contains(f[6], "A"), s.Alloc, line)
			require.Equal(t, strings.Contains(f[6], "X"), s.Exec, line)
			n++
		}
		require.Equal(t, len(img.all)-1, n)
		arch, err := img.Arch()
		require.NoError(t, err)
		require.Equal(t, c.arch, arch, c.triple)
		require.Equal(t, c.triple == "x86_64-linux-gnux32", img.Narrow())
		img.PlaceSections()
		functions := 0
		f, err := elf.Open(path)
		require.NoError(t, err)
		defer f.Close()
		symbols, err := f.Symbols()
		require.NoError(t, err)
		for _, r := range symbols {
			if elf.ST_TYPE(r.Info) != elf.STT_FUNC || r.Section == elf.SHN_UNDEF {
				continue
			}
			functions++
			sym, ok := img.Lookup(r.Name)
			require.True(t, ok)
			require.Equal(t, Symbol{r.Name, img.all[r.Section].Addr + machine.Addr(r.Value), r.Size}, sym)
			next, ok := img.Next(sym.Addr)
			require.True(t, !ok || next >= sym.Addr+machine.Addr(sym.Size) || img.Section(".opd") != nil, "%s: %s ends before its end", c.triple, r.Name)
		}
		require.Positive(t, functions)
	}
}

func TestUnknownRelocation(t *testing.T) {
	for _, c := range elfTargets {
		data, err := os.ReadFile(c.object(t, c.versions[len(c.versions)-1], c.programs[0]))
		require.NoError(t, err)
		img := image(t, data)
		f := img.format.(*elfFormat)
		at := f.file.SectionByType(elf.SHT_RELA)
		for _, s := range f.file.Sections {
			if s.Name == ".rela.llvm_stackmaps" {
				at = s
			}
		}
		kind := data[at.Offset+8:]
		switch {
		case f.word() == 4:
			kind = data[at.Offset+4:][:1]
		case f.file.Data == elf.ELFDATA2MSB:
			kind = data[at.Offset+15:][:1]
		}
		kind[0] = 0xea
		_, _, err = image(t, data).StackMaps()[0].Relocated()
		require.ErrorContains(t, err, ".rela.llvm_stackmaps+0x0: relocation ", c.triple)
		require.ErrorContains(t, err, "is not supported", c.triple)
	}
}

// TestCompactRelocations requires an error for relocations in an unsupported form, because ignoring them would leave addresses at 0.
func TestCompactRelocations(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "d.s"), filepath.Join(dir, "d.o")
	require.NoError(t, os.WriteFile(in, []byte("\t.text\nf:\tret\n\t.section .llvm_stackmaps,\"a\"\n\t.quad f\n"), 0o644))
	run(t, livetest.LLVM(t, 22, "llvm-mc"), "-filetype=obj", "-triple=x86_64-linux-gnu", "--crel", "-o", out, in)
	_, _, err := openFile(t, out).StackMaps()[0].Relocated()
	require.ErrorContains(t, err, ".crel.llvm_stackmaps+0x0: compact relocations (section type 0x40000014) cannot be read")
}
