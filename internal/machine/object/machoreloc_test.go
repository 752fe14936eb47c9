package object

import (
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestMachORelocations requires the places, kinds and symbols that llvm-objdump prints.
func TestMachORelocations(t *testing.T) {
	livetest.Slow(t)
	machoObjects(t, func(t *testing.T, arch, path string) {
		img := openFile(t, path)
		img.PlaceSections()
		moved := uint64(img.Section("__TEXT,__text").Addr)
		bySection := map[string][]Relocation{}
		data := map[string][]byte{}
		for _, s := range img.all {
			_, sect, _ := strings.Cut(s.Name, ",")
			var err error
			data[sect], bySection[sect], err = s.Relocated()
			require.NoError(t, err)
		}
		sections := map[string]bool{}
		for _, s := range img.all {
			_, sect, _ := strings.Cut(s.Name, ",")
			sections[sect] = true
		}
		addrs := map[string]uint64{}
		for _, r := range llvmNM(t, path) {
			addrs[r.name] = r.addr + moved
		}
		var section string
		total := 0
		for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-objdump"), "-r", path)) {
			if name, ok := strings.CutPrefix(line, "RELOCATION RECORDS FOR ["); ok {
				section, _, _ = strings.Cut(name, "]")
				continue
			}
			f := strings.Fields(line)
			if len(f) != 3 || f[0] == "OFFSET" || strings.HasSuffix(f[1], "_SUBTRACTOR") {
				continue
			}
			require.Contains(t, []string{"mach-o", "X86_64", "ARM64_"}, f[1][:6])
			total++
			off, err := strconv.ParseUint(f[0], 16, 64)
			require.NoError(t, err)
			require.NotEmpty(t, bySection[section], line)
			r := bySection[section][0]
			bySection[section] = bySection[section][1:]
			require.Equal(t, off, r.Offset, line)
			name := r.Symbol()
			if name == "" {
				require.True(t, sections[f[2]], line)
				name = f[2]
			}
			require.Equal(t, f[2], name)
			addr, defined := addrs[f[2]]
			switch {
			case section == "__llvm_stackmaps":
				require.True(t, r.Defined && defined)
				require.Equal(t, addr, binary.LittleEndian.Uint64(data[section][off:]))
			case section == "__eh_frame": // the word holds the distance from its field to a function
				require.True(t, r.Defined && defined)
				at := uint64(img.Section("__TEXT,__eh_frame").Addr) + off
				if arch == "arm64_32" {
					require.Equal(t, uint32(addr), uint32(at)+binary.LittleEndian.Uint32(data[section][off:]))
				} else {
					require.Equal(t, addr, at+binary.LittleEndian.Uint64(data[section][off:]))
				}
			}
		}
		require.NotZero(t, total)
		for section, left := range bySection {
			require.Empty(t, left, section)
		}
	})
}

// TestMachOCompactUnwind requires the functions of __compact_unwind, whose fields hold addresses according to the section headers.
func TestMachOCompactUnwind(t *testing.T) {
	for arch, triple := range machoTriples {
		path := livetest.Object(t, 22, "jit_pp.ll", "-mtriple="+triple)
		var want []uint64
		for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-objdump"), "--macho", "--unwind-info", path)) {
			if f := strings.Fields(line); len(f) > 2 && f[0] == "start:" {
				addr, err := strconv.ParseUint(f[1], 0, 64)
				require.NoError(t, err)
				want = append(want, addr)
			}
		}
		require.Len(t, want, 3, "_blocker, _work and _main")
		img := openFile(t, path)
		img.PlaceSections()
		data, done, err := img.Section("__LD,__compact_unwind").Relocated()
		require.NoError(t, err)
		require.Zero(t, Undefined(done))
		moved := img.Section("__TEXT,__text").Addr // the distance by which the section moved from address 0 in its header
		var got []uint64
		row, word := 32, 8
		if arch == "arm64_32" {
			row, word = 20, 4
		}
		for ; len(data) > 0; data = data[row:] {
			got = append(got, get(data, word, binary.LittleEndian)-uint64(moved))
		}
		require.Equal(t, want, got)
	}
}

// machoAssemble assembles for Mach-O.
func machoAssemble(t testing.TB, arch, text string) string {
	t.Helper()
	in := assembled(t, "words.s", text)
	out := filepath.Join(t.TempDir(), "words.o")
	run(t, livetest.LLVM(t, 22, "llvm-mc"), "-filetype=obj", "-triple="+machoTriples[arch], "-o", out, in)
	return out
}

// TestMachORelocatedWords covers each kind that data can hold. It computes S + A and S + A - T from the assembler's source.
func TestMachORelocatedWords(t *testing.T) {
	const words = `
	.section __DATA,__words
_words:
	.quad _elsewhere
	.quad _here + 5
	.quad _here - _words
	.quad _here - . + 3
	.long _here - _words - 2
	.quad 0x1122334455667788
	.quad _absolute
	.quad L_private + 1
	.globl _absolute
	.set _absolute, 0x123456
	.section __DATA,__place
	.skip 8
	.globl _here
_here:	.quad 0
L_private:
	.quad 0
`
	for _, arch := range []string{"x86_64", "arm64", "arm64e"} {
		text := words
		if arch == "arm64e" {
			text = strings.Replace(words, "\t.section __DATA,__place", "\t.quad _here@AUTH(da,42,addr)\n\t.quad (_here + 7)@AUTH(ia,1)\n\t.section __DATA,__place", 1)
		}
		path := machoAssemble(t, arch, text)
		img := openFile(t, path)
		img.PlaceSections()
		s := img.Section("__DATA,__words")
		got, done, err := s.Relocated()
		require.NoError(t, err)
		require.Equal(t, 1, Undefined(done))
		p, here := uint64(s.Addr), uint64(img.Section("__DATA,__place").Addr)+8
		require.NotEqual(t, here, p)
		raw, err := s.Data()
		require.NoError(t, err)
		var want []byte
		want = append(want, raw[:8]...)
		want = binary.LittleEndian.AppendUint64(want, here+5)
		want = binary.LittleEndian.AppendUint64(want, here-p)
		want = binary.LittleEndian.AppendUint64(want, here-(p+24)+3)
		want = binary.LittleEndian.AppendUint32(want, uint32(here-p-2))
		want = binary.LittleEndian.AppendUint64(want, 0x1122334455667788)
		want = binary.LittleEndian.AppendUint64(want, 0x123456)
		want = binary.LittleEndian.AppendUint64(want, here+8+1)
		if arch == "arm64e" {
			want = binary.LittleEndian.AppendUint64(want, here)
			want = binary.LittleEndian.AppendUint64(want, here+7)
		}
		require.Equal(t, want, got, arch)
		for _, r := range done {
			if !r.Defined {
				require.Equal(t, "_elsewhere", r.Symbol())
			}
		}
	}
}

// TestMachODistances requires that fields of x86-64 code point to the symbols of the source, in the object and in the image that lld links.
func TestMachODistances(t *testing.T) {
	path := machoAssemble(t, "x86_64", `
	.globl _main
_main:
	.skip 16
	callq _main
	leaq _data(%rip), %rax
	movb $1, _data+2(%rip)
	movw $1, _data+4(%rip)
	movl $1, _data+8(%rip)
	leaq L_data(%rip), %rax
	movl $1, L_data(%rip)
	callq _elsewhere
	movq _elsewhere@GOTPCREL(%rip), %rax
	.data
	.skip 32
	.globl _data
_data:	.quad 0, 0
	.section __DATA,__more
L_data: .quad 0
`)
	// Each row holds the position of a field, the number of bytes between the field and the end of its instruction, and the target.
	fields := []struct {
		at, behind int
		symbol     string
		plus       uint64
	}{
		{17, 0, "_main", 0}, {24, 0, "_data", 0}, {30, 1, "_data", 2}, {38, 2, "_data", 4}, {46, 4, "_data", 8},
		{57, 0, "", 0}, {63, 4, "", 0},
	}
	linked := ld64(t, "x86_64", nil, path)
	for _, path := range []string{path, linked} {
		img := openFile(t, path)
		img.PlaceSections()
		text := img.Section("__TEXT,__text")
		got, done, err := text.Relocated()
		require.NoError(t, err)
		for _, f := range fields {
			want := uint64(img.Section("__DATA,__more").Addr)
			if f.symbol != "" {
				sym, ok := img.Lookup(f.symbol)
				require.True(t, ok)
				want = uint64(sym.Addr) + f.plus
			}
			distance := int64(int32(binary.LittleEndian.Uint32(got[f.at:])))
			require.Equal(t, want, uint64(text.Addr)+uint64(f.at)+4+uint64(f.behind)+uint64(distance), "%s, field %d", path, f.at)
		}
		if path != linked {
			require.Equal(t, 2, Undefined(done), "a call of what is elsewhere, and what goes by the table of addresses")
		}
	}
}

// TestMachORelocationErrors requires that the error for a malformed relocation names the row, its kind and its place.
func TestMachORelocationErrors(t *testing.T) {
	for _, c := range []struct {
		arch, kind string
		off, bits  uint32
		want       string
	}{
		{"x86_64", "scattered", 1 << 31, 0, "__LLVM_STACKMAPS,__llvm_stackmaps+0x80000000: relocation 0, X86_64_RELOC_UNSIGNED: is scattered, which does not occur on x86_64"},
		{"x86_64", "outside", 1 << 20, 3 << 25, "relocation 0, X86_64_RELOC_UNSIGNED: relocates 8 bytes of a section of 0x"},
		{"x86_64", "unknown", 16, 15<<28 | 3<<25, "+0x10: relocation 0, RelocTypeX86_64(15): is not supported"},
		{"arm64", "unknown", 16, 12<<28 | 3<<25, "+0x10: relocation 0, RelocTypeARM64(12): is not supported"},
		{"arm64", "symbol", 16, 1<<27 | 3<<25 | 0xffffff, "symbol 16777215 is past the end of the symbol table"},
		{"arm64", "section", 16, 3<<25 | 200, "names section 200 of"},
		{"arm64", "narrow", 16, 1<<27 | 1<<25, "relocates 2 bytes, relative to them: false"},
		{"arm64", "relative", 16, 1<<27 | 1<<24 | 3<<25, "relocates 8 bytes, relative to them: true"},
		{"x86_64", "absolute branch", 16, 2<<28 | 1<<27 | 2<<25, "X86_64_RELOC_BRANCH: relocates 4 bytes, relative to them: false"},
		{"arm64", "alone", 16, 1<<28 | 1<<27 | 3<<25, "ARM64_RELOC_SUBTRACTOR: has no minuend"},
		{"arm64", "minus a section", 16, 1<<28 | 1 | 3<<25, "subtracts the address of a section"},
	} {
		t.Run(c.arch+" "+c.kind, func(t *testing.T) {
			data := seed(t, 19, "jit_pp.ll", "-mtriple="+machoTriples[c.arch])
			rows := image(t, data).format.(*machoFormat).sections[image(t, data).StackMaps()[0].index].relocations
			binary.LittleEndian.PutUint32(data[rows.off:], c.off)
			binary.LittleEndian.PutUint32(data[rows.off+4:], c.bits)
			_, _, err := image(t, data).StackMaps()[0].Relocated()
			require.ErrorContains(t, err, c.want)
			var e *Error
			require.ErrorAs(t, err, &e)
			require.Equal(t, int64(c.off), e.Offset, fmt.Sprint(err))
		})
	}
}
