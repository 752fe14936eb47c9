package object

import (
	"bytes"
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

var coffTargets = []target{
	{"x86_64-windows-msvc", machine.AMD64, nil, []string{"dup.ll", "jit_pp.ll", "jit_sp.ll", "deoptimize.ll"}, []int{14, 19, 22}},
	{"aarch64-windows-msvc", machine.ARM64, nil, []string{"dup.ll", "jit_pp.ll", "jit_sp.ll", "deoptimize.ll"}, []int{14, 19, 22}},
}

// coffRow is a section or a symbol in llvm-readobj's output.
type coffRow map[string]string

// readobj returns the sections and symbols of a COFF file, and the preferred load address of an image.
func readobj(t *testing.T, path string) (sections, symbols []coffRow, base uint64) {
	t.Helper()
	var row coffRow
	for line := range strings.Lines(livetest.Printed(t, livetest.LLVM(t, 22, "llvm-readobj"), "--file-headers", "--sections", "--symbols", path)) {
		text := strings.TrimSpace(line)
		key, value, ok := strings.Cut(text, ": ")
		switch {
		case key == "ImageBase":
			base = number(t, value)
		case strings.HasPrefix(line, "  Section {"):
			row = coffRow{}
			sections = append(sections, row)
		case strings.HasPrefix(line, "  Symbol {"):
			row = coffRow{}
			symbols = append(symbols, row)
		case row != nil && ok && row[key] == "": // the first value of a key is this row's
			row[key] = value
		case row != nil && strings.HasPrefix(text, "IMAGE_SCN_"):
			row["flags"] += text + " "
		}
	}
	require.NotEmpty(t, sections)
	require.NotEmpty(t, symbols)
	return sections, symbols, base
}

func number(t *testing.T, s string) uint64 {
	t.Helper()
	v, err := strconv.ParseUint(s, 0, 64)
	require.NoError(t, err)
	return v
}

// compareCOFF compares all sections and symbols with those that llvm-readobj prints.
func compareCOFF(t *testing.T, path string) *Image {
	t.Helper()
	img := openFile(t, path)
	sections, symbols, base := readobj(t, path)
	require.Len(t, img.all, len(sections))
	for n, want := range sections {
		s := img.all[n]
		name, _, _ := strings.Cut(want["Name"], " (")
		require.Equal(t, name, s.Name)
		size := number(t, want["RawDataSize"])
		if !img.Relocatable() {
			require.Equal(t, machine.Addr(base+number(t, want["VirtualAddress"])), s.Addr)
			size = min(size, number(t, want["VirtualSize"]))
		}
		require.Equal(t, size, s.Size, name)
		require.Equal(t, strings.Contains(want["flags"], "MEM_EXECUTE"), s.Exec, name)
	}
	img.PlaceSections()
	names := map[string][]machine.Addr{}
	for _, want := range symbols {
		at := strings.LastIndex(want["Section"], "(")
		section, err := strconv.Atoi(strings.Trim(want["Section"][at:], "()"))
		require.NoError(t, err)
		if section > 0 {
			names[want["Name"]] = append(names[want["Name"]], img.all[section-1].Addr+machine.Addr(number(t, want["Value"])))
		} else if section == 0 {
			_, ok := img.Lookup(want["Name"])
			require.False(t, ok, want["Name"])
		}
	}
	require.NotEmpty(t, names)
	for name, at := range names {
		sym, ok := img.Lookup(name)
		require.True(t, ok, name)
		require.Contains(t, at, sym.Addr, name)
	}
	return img
}

func TestCOFF(t *testing.T) {
	compared := 0
	for _, c := range coffTargets {
		for _, version := range c.versions {
			for _, program := range c.programs {
				if version == 14 && program == "deoptimize.ll" {
					continue // the program uses opaque pointers, which llc 14 does not read
				}
				img := compareCOFF(t, c.object(t, version, program))
				require.True(t, img.Relocatable())
				arch, err := img.Arch()
				require.NoError(t, err)
				require.Equal(t, c.arch, arch)
				// llc 14 for x86-64 writes no stack maps for those of its programs that have calls.
				if c.triple[0] == 'x' && version == 14 && program != "dup.ll" {
					require.Empty(t, img.StackMaps())
					continue
				}
				require.Len(t, img.StackMaps(), 1)
				compared++
			}
		}
	}
	require.Equal(t, 20, compared)
}

// TestRelocatedIsWhatLLDLinkLinks requires that an object placed at lld-link's addresses has the bytes that lld-link writes.
func TestRelocatedIsWhatLLDLinkLinks(t *testing.T) {
	for _, c := range coffTargets {
		for _, version := range c.versions {
			for _, program := range []string{"dup.ll", "jit_pp.ll"} {
				if c.triple[0] == 'x' && version == 14 && program != "dup.ll" {
					continue // llc 14 for x86-64 writes no stack maps for this program
				}
				name := fmt.Sprintf("%s %d %s", c.triple, version, program)
				path, out := c.object(t, version, program), filepath.Join(t.TempDir(), "x.dll")
				run(t, livetest.Tool(t, "lld-link-19"), "-dll", "-noentry", "-nodefaultlib", "-force:unresolved", "-opt:noref", "-debug:symtab", "-out:"+out, path)
				img, whole := openFile(t, path), compareCOFF(t, out)
				require.False(t, whole.Relocatable(), name)
				require.Equal(t, ".llvm_st", whole.StackMapSection(), "lld-link cuts the names of what is loaded")
				for _, s := range img.all {
					if o := whole.Section(s.Name[:min(8, len(s.Name))]); s.Alloc && o != nil {
						s.Addr = o.Addr
					}
				}
				want, none, err := whole.StackMaps()[0].Relocated()
				require.NoError(t, err)
				require.Empty(t, none)
				got, done, err := img.StackMaps()[0].Relocated()
				require.NoError(t, err, name)
				require.Zero(t, Undefined(done))
				require.Equal(t, want, got, name)
				addrs := nm(t, out)
				require.NotEmpty(t, functions(got, binary.LittleEndian))
				for n, at := range functions(got, binary.LittleEndian) {
					require.Equal(t, addrs[done[n].Symbol()], at, name)
					sym, ok := whole.SymbolStarting(at)
					require.True(t, ok)
					require.Equal(t, done[n].Symbol(), sym.Name)
					require.Equal(t, ".text", whole.CodeAt(at).Name)
				}
				// .pdata holds offsets from the start of the image.
				want, _, err = whole.Section(".pdata").Relocated()
				require.NoError(t, err)
				got, done, err = img.Section(".pdata").Relocated()
				require.NoError(t, err)
				base := uint64(whole.format.(*coffFormat).base)
				for _, r := range done {
					v := binary.LittleEndian.Uint32(got[r.Offset:])
					symbol := r.Symbol()
					if symbol == "" && img.all[r.symbol.section].Name == ".xdata" {
						continue // lld-link moves .xdata into .rdata
					}
					require.Equal(t, binary.LittleEndian.Uint32(want[r.Offset:]), v-uint32(base), "%s %s", name, symbol)
				}
			}
		}
	}
}

// TestRelocatedDistancesCOFF requires the distances, section offsets and addends that lld-link computes.
func TestRelocatedDistancesCOFF(t *testing.T) {
	dir := t.TempDir()
	in, out, linked := filepath.Join(dir, "d.s"), filepath.Join(dir, "d.obj"), filepath.Join(dir, "d.dll")
	require.NoError(t, os.WriteFile(in, []byte(`
	.text
	.globl here
	nop
here:	ret
	.data
	.quad here + 5
	.long here - .
	.long here@IMGREL + 3
	.secrel32 here
	.secidx here
`), 0o644))
	run(t, livetest.LLVM(t, 22, "llvm-mc"), "-filetype=obj", "-triple=x86_64-windows-msvc", "-o", out, in)
	run(t, livetest.Tool(t, "lld-link-19"), "-dll", "-noentry", "-nodefaultlib", "-opt:noref", "-base:0x10000", "-out:"+linked, out)
	img, whole := openFile(t, out), openFile(t, linked)
	img.Section(".text").Addr, img.Section(".data").Addr = whole.Section(".text").Addr, whole.Section(".data").Addr
	want, err := whole.Section(".data").Data()
	require.NoError(t, err)
	got, done, err := img.Section(".data").Relocated()
	require.NoError(t, err)
	require.Len(t, done, 5)
	require.Equal(t, 1, Undefined(done), "the number of the linked section")
	require.Equal(t, []int64{5, 4, 3, 0}, []int64{done[0].Addend, done[1].Addend, done[2].Addend, done[3].Addend})
	// An object has no image address to count from.
	binary.LittleEndian.PutUint32(got[12:], binary.LittleEndian.Uint32(got[12:])-0x10000)
	require.Equal(t, want[:20], got[:20])
}

// TestBigCOFF reads an object with more sections and relocations than 16 bits can count. Only a /bigobj header allows this.
func TestBigCOFF(t *testing.T) {
	dir := t.TempDir()
	in, out := filepath.Join(dir, "big.s"), filepath.Join(dir, "big.obj")
	var b strings.Builder
	const many = 66000
	for n := range many {
		fmt.Fprintf(&b, "\t.section .t$%d,\"dr\"\n", n)
	}
	b.WriteString("\t.text\n\tnop\na_long_name_of_a_function:\n\tret\n\t.section .llvm_stackmaps,\"dr\"\n")
	for range many {
		b.WriteString("\t.quad a_long_name_of_a_function\n")
	}
	require.NoError(t, os.WriteFile(in, []byte(b.String()), 0o644))
	run(t, livetest.LLVM(t, 22, "llvm-mc"), "-filetype=obj", "-triple=x86_64-windows-msvc", "-o", out, in)
	img := openFile(t, out)
	require.Greater(t, len(img.all), many)
	img.PlaceSections()
	want := img.Section(".text").Addr + 1
	got, done, err := img.StackMaps()[0].Relocated()
	require.NoError(t, err)
	require.Len(t, done, many)
	for _, r := range done {
		require.Equal(t, uint64(want), binary.LittleEndian.Uint64(got[r.Offset:]))
	}
	require.Equal(t, "a_long_name_of_a_function", done[many-1].Symbol())
	sym, ok := img.SymbolAt(want)
	require.True(t, ok)
	require.Equal(t, Symbol{"a_long_name_of_a_function", want, 0}, sym)
}

// TestNotCOFF requires that a file that only begins with a machine's number is not taken for an object.
func TestNotCOFF(t *testing.T) {
	good, err := os.ReadFile(coffTargets[0].object(t, 22, "dup.ll"))
	require.NoError(t, err)
	change := func(at int, b ...byte) []byte {
		data := bytes.Clone(good)
		copy(data[at:], b)
		return data
	}
	for name, data := range map[string][]byte{
		"no sections":                 change(2, 0, 0),
		"sections outside of it":      change(2, 0xff, 0xff),
		"symbols outside of it":       change(12, 0xff, 0xff, 0xff),
		"an optional header":          change(16, 1),
		"linked":                      change(18, 2),
		"another machine":             change(0, 3, 0),
		"the machine alone":           good[:2],
		"a program for DOS":           append([]byte("MZ"), make([]byte, 100)...),
		"a stub of an import library": append([]byte{0, 0, 0xff, 0xff, 0, 0, 0x64, 0x86}, make([]byte, 60)...),
	} {
		_, err := New("x", bytes.NewReader(data), int64(len(data)))
		require.ErrorIs(t, err, ErrNotObject, name)
	}
	i386 := change(0, 0x4c, 1)
	_, err = image(t, i386).Arch()
	require.EqualError(t, err, "image: COFF for i386 is not supported")
	_, _, err = image(t, i386).StackMaps()[0].Relocated()
	require.ErrorContains(t, err, ".llvm_stackmaps: its relocation 0: relocations of i386 are not supported")
	s := image(t, good).StackMaps()[0]
	at := image(t, good).format.(*coffFormat).headers[s.index].Relocations
	_, _, err = image(t, change(int(at)+8, 0x77)).StackMaps()[0].Relocated()
	require.EqualError(t, err, "image: .llvm_stackmaps: its relocation 0: kind 0x77 of x86-64 at 0x10 is not supported")
}
