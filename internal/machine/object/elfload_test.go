package object

import (
	"debug/elf"
	"encoding/binary"
	"fmt"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestRelocatedWordsOfLinked requires the words that a loader writes, for every form of relocations that lld writes: the symbol's address from llvm-nm and
// the addend from the source.
func TestRelocatedWordsOfLinked(t *testing.T) {
	livetest.Slow(t)
	const rows = 70
	var source strings.Builder
	source.WriteString("\t.text\n\t.skip 8\n\t.globl f\nf:\t.skip 64\ng:\t.skip 64\n\t.data\n\t.balign 8\n\t.globl data\n\t.hidden data\ndata:\n")
	type want struct {
		symbol string
		addend int64
	}
	var words []want
	word := func(symbol string, addend int64) {
		fmt.Fprintf(&source, "\tWORD %s + %d\n", symbol, addend)
		words = append(words, want{symbol, addend})
	}
	for n := range int64(rows) {
		word("g", n*n%64)
	}
	for n := range int64(rows) {
		word("f", 5-n)
		word("elsewhere", 16)
		word("g", -n)
	}
	type form struct {
		flags   string
		section elf.SectionType
	}
	forms := []form{
		{"-z rela", elf.SHT_RELA}, {"-z rel", elf.SHT_REL},
		{"-z rela --pack-dyn-relocs=relr", shtRELR}, {"-z rel --pack-dyn-relocs=relr", shtRELR},
		{"-z rela --pack-dyn-relocs=relr --use-android-relr-tags", shtAndroidRELR},
	}
	for _, c := range []struct {
		triple, word string
		order        binary.ByteOrder
	}{
		{"x86_64-linux-gnu", ".quad", binary.LittleEndian},
		{"aarch64-linux-android", ".xword", binary.LittleEndian},
		{"aarch64_be-linux-gnu", ".xword", binary.BigEndian},
		{"riscv64-linux-android", ".dword", binary.LittleEndian},
	} {
		object := mc(t, c.triple, strings.ReplaceAll(source.String(), "WORD", c.word))
		for _, form := range forms {
			name := c.triple + " " + form.flags
			out := filepath.Join(t.TempDir(), "linked.so")
			lld(t, out, append(strings.Fields(form.flags), "-shared", object)...)
			img, addrs := openFile(t, out), nm(t, out)
			img.Bias = 0x70000000
			require.NotNil(t, img.format.(*elfFormat).file.SectionByType(form.section), name)
			data, done, err := img.Section(".data").Relocated()
			require.NoError(t, err, name)
			require.Len(t, done, len(words), name)
			unresolved := map[string]int{}
			for _, r := range done {
				if !r.Defined {
					unresolved[r.Symbol()]++
					require.Equal(t, int64(16), r.Addend, name)
				}
			}
			require.Equal(t, map[string]int{"elsewhere": rows}, unresolved, name)
			for n, w := range words {
				if w.symbol != "elsewhere" {
					at := uint64(addrs[w.symbol]) + uint64(w.addend)
					require.NotZero(t, addrs[w.symbol])
					require.Equal(t, at, c.order.Uint64(data[8*n:]), "%s: word %d", name, n)
				}
			}
		}
	}
}

// TestPackedRelocationsAreRefused requires an error for relocations in Android's packed form.
func TestPackedRelocationsAreRefused(t *testing.T) {
	object := mc(t, "x86_64-linux-gnu", "\t.text\n\t.globl work\nwork:\tret\n\t.section .llvm_stackmaps,\"a\"\n\t.quad work\n\t.quad work + 1\n\t.quad work\n")
	for _, flags := range []string{"-z rela", "-z rel"} {
		out := filepath.Join(t.TempDir(), "linked.so")
		lld(t, out, append(strings.Fields(flags), "-shared", "-z", "notext", "--pack-dyn-relocs=android", object)...)
		_, _, err := openFile(t, out).Section(".llvm_stackmaps").Relocated()
		require.ErrorContains(t, err, "compact relocations (section type 0x6000000")
	}
}

// TestUnknownInPlace requires an error for an SHT_REL relocation that does not store a plain address, because its place holds no addend.
func TestUnknownInPlace(t *testing.T) {
	var row [16]byte
	binary.LittleEndian.PutUint64(row[:], 0x1000)
	binary.LittleEndian.PutUint64(row[8:], uint64(elf.R_RISCV_ADD32))
	w := elfWriter{body: append(make([]byte, 1024), row[:]...), flags: func(h *elf.Header64) { h.Type = uint16(elf.ET_DYN) },
		sections: []elf.Section64{{}, {Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Addr: 0x1000, Off: 64, Size: 1024},
			{Type: uint32(elf.SHT_REL), Flags: uint64(elf.SHF_ALLOC), Off: 64 + 1024, Size: uint64(len(row))}}}
	data := w.bytes()
	binary.LittleEndian.PutUint16(data[18:], uint16(elf.EM_RISCV))
	_, _, err := image(t, data).all[1].Relocated()
	require.ErrorContains(t, err, "+0x0: R_RISCV_ADD32 has no addend in its place")
	binary.LittleEndian.PutUint64(data[64+1024+8:], uint64(elf.R_RISCV_RELATIVE))
	_, done, err := image(t, data).all[1].Relocated()
	require.NoError(t, err)
	require.Equal(t, []Relocation{{Defined: true, symbol: rawSymbol{section: undefined}}}, done)
	require.Equal(t, machine.Addr(0x1000), image(t, data).all[1].Addr)
}
