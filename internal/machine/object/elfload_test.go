package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"fmt"
	"os"
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
		{"-z rela --pack-dyn-relocs=android", shtAndroidRELA}, {"-z rel --pack-dyn-relocs=android", shtAndroidREL},
		{"-z rela --pack-dyn-relocs=android+relr --use-android-relr-tags", shtAndroidRELR},
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

// leb128 encodes numbers as in packed relocations.
func leb128(numbers ...int64) (b []byte) {
	for _, v := range numbers {
		for {
			low := byte(v & 0x7f)
			if v >>= 7; v == 0 && low&0x40 == 0 || v == -1 && low&0x40 != 0 {
				b = append(b, low)
				break
			}
			b = append(b, low|0x80)
		}
	}
	return b
}

// packedImage returns a linked image with this number of tables of these bytes, and 1 KiB of data at 0x1000.
func packedImage(table []byte, kind elf.SectionType, tables int) []byte {
	w := elfWriter{body: append(make([]byte, 1024), table...), flags: func(h *elf.Header64) { h.Type = uint16(elf.ET_DYN) },
		sections: []elf.Section64{{}, {Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_ALLOC), Addr: 0x1000, Off: 64, Size: 1024}}}
	for range tables {
		w.sections = append(w.sections, elf.Section64{Type: uint32(kind), Flags: uint64(elf.SHF_ALLOC), Off: 64 + 1024, Size: uint64(len(table))})
	}
	return w.bytes()
}

// TestPackedRelocations reads forms that lld does not write, and malformed tables.
func TestPackedRelocations(t *testing.T) {
	const relative = int64(elf.R_X86_64_RELATIVE)
	aps2 := func(numbers ...int64) []byte { return append([]byte("APS2"), leb128(numbers...)...) }
	for _, c := range []struct {
		name  string
		table []byte
		kind  elf.SectionType
		want  map[uint64]uint64 // words by offset
		err   string
	}{
		{"nothing shared", aps2(2, 0x1000, 2, 8, 0, relative, 0x20, 16, relative, -0x10), shtAndroidRELA, map[uint64]uint64{0: 0x20, 16: 0x10}, ""},
		{"all shared", aps2(3, 0xff8, 3, 15, 8, relative, 0x1234), shtAndroidRELA, map[uint64]uint64{0: 0x1234, 8: 0x1234, 16: 0x1234}, ""},
		{"addends go on from group to group", aps2(3, 0x1000, 1, 9, relative, 0, 7, 1, 13, relative, 5, 8, 1, 9, relative, 8, 1), shtAndroidRELA,
			map[uint64]uint64{0: 7, 8: 12, 16: 13}, ""},
		{"a group without addends ends that", aps2(3, 0x1000, 1, 9, relative, 0, 7, 1, 1, relative, 8, 1, 9, relative, 8, 1), shtAndroidRELA,
			map[uint64]uint64{0: 7, 8: 0, 16: 1}, ""},
		{"addends in place", aps2(1, 0x1000, 1, 1, relative, 0), shtAndroidREL, map[uint64]uint64{0: 0}, ""},
		{"nothing", aps2(0, 0), shtAndroidRELA, map[uint64]uint64{}, ""},

		{"addends in both", aps2(1, 0x1000, 1, 9, relative, 0, 7), shtAndroidREL, nil, "has addends in both the rows and the places"},
		{"no mark", []byte("APR1\x00\x00"), shtAndroidRELA, nil, "+0x0: does not begin with APS2, the mark of packed relocations"},
		{"short", []byte("APS"), shtAndroidRELA, nil, "does not begin with APS2"},
		{"no numbers", aps2(), shtAndroidRELA, nil, "+0x4: ends inside a number"},
		{"ends inside", aps2(2, 0x1000, 2, 8, 0, relative, 0x20, 16), shtAndroidRELA, nil, "ends inside a number"},
		{"a long number", append(aps2(), bytes.Repeat([]byte{0x80}, 20)...), shtAndroidRELA, nil, "has a number of more than 64 bits"},
		{"too many", aps2(1<<40, 0x1000, 1<<40, 15, 0, relative, 0), shtAndroidRELA, nil, "claims 1099511627776 relocations in an image of"},
		{"fewer than none", aps2(-1, 0x1000), shtAndroidRELA, nil, "claims 18446744073709551615 relocations"},
		{"an empty group", aps2(2, 0x1000, 0, 0), shtAndroidRELA, nil, "has a group of 0 relocations, but only 2 are left"},
		{"a large group", aps2(2, 0x1000, 3, 0), shtAndroidRELA, nil, "has a group of 3 relocations, but only 2"},
		{"one place many times", aps2(300, 0x1000, 300, 15, 0, relative, 0), shtAndroidRELA, nil, "relocates more words of"},
		{"past the end", aps2(1, 0x13fc, 1, 15, 0, relative, 0), shtAndroidRELA, nil, "relocates offset 0x3fc of a section of 0x400 bytes"},
	} {
		t.Run(c.name, func(t *testing.T) {
			img := image(t, packedImage(c.table, c.kind, 1))
			data, done, err := img.all[1].Relocated()
			if c.err != "" {
				require.ErrorContains(t, err, c.err)
				var e *Error
				require.ErrorAs(t, err, &e)
				return
			}
			require.NoError(t, err)
			require.Zero(t, Undefined(done))
			got := map[uint64]uint64{}
			for _, r := range done {
				got[r.Offset] = binary.LittleEndian.Uint64(data[r.Offset:])
			}
			require.Equal(t, c.want, got)
		})
	}
	_, _, err := image(t, packedImage(aps2(0, 0), shtAndroidRELA, 5000)).all[1].Relocated()
	require.ErrorContains(t, err, "is a second table of packed relocations")
}

// TestEveryByteOfPackedChanged changes the bytes of packed relocations one at a time.
func TestEveryByteOfPackedChanged(t *testing.T) {
	object := mc(t, "x86_64-linux-gnu", "\t.text\n\t.globl work\nwork:\tret\n\t.section .llvm_stackmaps,\"a\"\n\t.quad work\n\t.quad work + 1\n\t.quad work\n")
	for _, flags := range []string{"-z rela", "-z rel"} {
		out := filepath.Join(t.TempDir(), "linked.so")
		lld(t, out, append(strings.Fields(flags), "-shared", "-z", "notext", "--pack-dyn-relocs=android", object)...)
		data, err := os.ReadFile(out)
		require.NoError(t, err)
		kind := shtAndroidRELA
		if flags == "-z rel" {
			kind = shtAndroidREL
		}
		s := image(t, data).format.(*elfFormat).file.SectionByType(kind)
		require.NotNil(t, s)
		for at := s.Offset; at < s.Offset+s.FileSize; at++ {
			for _, b := range []byte{0, 1, 0x3f, 0x40, 0x7f, 0x80, 0xff, data[at] ^ 1, data[at] ^ 0x80} {
				changed := append([]byte(nil), data...)
				changed[at] = b
				spent := livetest.Allocated(func() { survey(t, changed) })
				require.LessOrEqual(t, spent, uint64(64*len(data)+1<<20))
			}
		}
	}
}

// TestUnknownInPlace requires an error for relocations without addends other than a plain address, because their place holds no addend.
func TestUnknownInPlace(t *testing.T) {
	var row [16]byte
	binary.LittleEndian.PutUint64(row[:], 0x1000)
	binary.LittleEndian.PutUint64(row[8:], uint64(elf.R_RISCV_ADD32))
	data := packedImage(row[:], elf.SHT_REL, 1)
	binary.LittleEndian.PutUint16(data[18:], uint16(elf.EM_RISCV))
	_, _, err := image(t, data).all[1].Relocated()
	require.ErrorContains(t, err, "+0x0: R_RISCV_ADD32 has no addend in its place")
	binary.LittleEndian.PutUint64(data[64+1024+8:], uint64(elf.R_RISCV_RELATIVE))
	_, done, err := image(t, data).all[1].Relocated()
	require.NoError(t, err)
	require.Equal(t, []Relocation{{Defined: true, symbol: rawSymbol{section: undefined}}}, done)
	require.Equal(t, machine.Addr(0x1000), image(t, data).all[1].Addr)
}
