package object

import (
	"encoding/binary"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestStackMapsApart links objects into one, with separate stack map sections.
func TestStackMapsApart(t *testing.T) {
	const header = "\t.section .llvm_stackmaps,\"a\"\n\t.byte 3\n\t.byte 0\n\t.short 0\n\t.long 1\n\t.long 0\n\t.long 0\n"
	one := mc(t, "x86_64-linux-gnu", "\t.text\n\t.skip 16\n\t.globl one\none:\tret\n"+header+"\t.quad one, 8, 0\n")
	two := mc(t, "x86_64-linux-gnu", "\t.text\n\t.skip 32\n\t.globl two\ntwo:\tret\n"+header+"\t.quad two, 8, 0\n")
	for _, c := range []struct {
		flags []string
		want  [][]string // functions of each section
	}{
		{[]string{"--unique=.llvm_stackmaps", one, two}, [][]string{{"one"}, {"two"}}},
		{[]string{"--unique=.llvm_stackmaps", two, one}, [][]string{{"two"}, {"one"}}},
		{[]string{one}, [][]string{{"one"}}},
		{[]string{"-R", ".llvm_stackmaps"}, nil},
	} {
		out := filepath.Join(t.TempDir(), "whole.o")
		if c.want == nil {
			run(t, livetest.Tool(t, "objcopy"), append(c.flags, one, out)...)
		} else {
			run(t, livetest.Tool(t, "ld"), append([]string{"-r", "-o", out}, c.flags...)...)
		}
		listed := strings.Count(livetest.Printed(t, livetest.Tool(t, "readelf"), "-SW", out), " .llvm_stackmaps ")
		require.Equal(t, listed, len(c.want))
		img := openFile(t, out)
		img.PlaceSections()
		var got [][]string
		for _, s := range img.StackMaps() {
			require.Equal(t, StackMapSection, s.Name)
			data, done, err := s.Relocated()
			require.NoError(t, err)
			require.Zero(t, Undefined(done))
			var names []string
			for _, at := range functions(data, binary.LittleEndian) {
				require.Equal(t, img.Section(".text").Addr, at&^0xfff)
				names = append(names, symbolNames(img.SymbolsStarting(at))...)
			}
			got = append(got, names)
		}
		require.Equal(t, c.want, got)
	}
}

// TestDebugInformationAlone reads files with only debug information, which keep only the headers of the other sections.
func TestDebugInformationAlone(t *testing.T) {
	const alone = "has no bytes in the image: the file has only debug information"
	dir := t.TempDir()
	object := livetest.Object(t, 19, "dup.ll", "-relocation-model=pic")
	linked, debug := filepath.Join(dir, "linked"), filepath.Join(dir, "debug")
	lld(t, linked, "-pie", "-z", "notext", object)
	for _, tool := range []string{livetest.Tool(t, "objcopy"), livetest.LLVM(t, 19, "llvm-objcopy")} {
		run(t, tool, "--only-keep-debug", linked, debug)
		img := openFile(t, debug)
		s := img.StackMaps()[0]
		_, _, err := s.Relocated()
		require.EqualError(t, err, debug+": .llvm_stackmaps+0x0: "+alone)
		_, err = s.ReadAt(make([]byte, 1), 4)
		require.EqualError(t, err, debug+": .llvm_stackmaps+0x4: "+alone)
		sym, ok := img.Lookup("inl")
		require.True(t, ok)
		require.Equal(t, nm(t, linked)["inl"], sym.Addr)
	}
	_, err := openFile(t, linked).Section(".text").Data()
	require.NoError(t, err)

	// A section of zeros has no bytes in any image.
	bss := openFile(t, mc(t, "x86_64-linux-gnu", "\t.text\n\tret\n\t.bss\n\t.skip 8\n"))
	_, err = bss.Section(".bss").Data()
	require.ErrorContains(t, err, ".bss+0x0: has no bytes in the image")
	require.NotContains(t, err.Error(), "debug")
	require.Equal(t, machine.Addr(0), bss.Section(".bss").Addr)
}
