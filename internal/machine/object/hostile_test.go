package object

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// survey calls all methods of an image. They must return results or errors of this package.
func survey(t testing.TB, data []byte) {
	sound := func(err error) {
		var e *Error
		if err != nil && !errors.As(err, &e) {
			require.ErrorAs(t, err, &e)
		}
	}
	img, err := New("image", bytes.NewReader(data), int64(len(data)))
	sound(err)
	if err != nil {
		return
	}
	_, err = img.Arch()
	sound(err)
	img.PlaceSections()
	img.Code()
	img.FileAddr(0)
	for _, s := range img.all {
		got, err := s.Data()
		sound(err)
		if len(got) > len(data) {
			require.Fail(t, "more bytes than there are")
		}
	}
	for _, name := range []string{".llvm_stackmaps", ".llvm_st", ".eh_frame", ".text", ".opd", ".pdata"} {
		if s := img.Section(name); s != nil {
			_, _, err := s.Relocated()
			sound(err)
			var b [16]byte
			_, _ = s.ReadAt(b[:], 8)
		}
	}
	for _, at := range []machine.Addr{0, 0x1000, 0x1010, 0x2008, 1<<64 - 1} {
		img.SymbolAt(at)
		img.CodeAt(at)
		img.SymbolStarting(at)
		img.SymbolsStarting(at)
		img.Next(at)
		img.Entry(at)
	}
	img.Lookup("work")
	img.InSection("work")
	for n, s := range img.AllCode() {
		code, fixed, err := s.Fixed()
		sound(err)
		require.Len(t, fixed, len(code))
		if n == 0 {
			sound(img.LoadAt(map[*Section]machine.Addr{s: 0x7f0000001000}))
			sound(img.LoadAt(map[*Section]machine.Addr{s: 1<<64 - 16}))
		}
	}
	img.Exported("f")
}

func seed(t testing.TB, version int, program string, flags ...string) []byte {
	t.Helper()
	data, err := os.ReadFile(livetest.Object(t, version, program, flags...))
	require.NoError(t, err)
	return data
}

// TestEveryWordLarge sets each word of an image to a value that is negative in a 32-bit int. 32-bit builds must pass it too (TestOtherHostsCompute).
func TestEveryWordLarge(t *testing.T) {
	images := otherImages(t)
	images["an object"] = seed(t, 19, "dup.ll")
	for name, data := range images {
		t.Run(name, func(t *testing.T) {
			for at := 0; at+4 <= len(data); at += 4 {
				original := [4]byte(data[at:])
				for _, word := range [][4]byte{{4, 0, 0, 0xff}, {0, 0, 0, 0x80}} {
					copy(data[at:], word[:])
					survey(t, data)
				}
				copy(data[at:], original[:])
			}
		})
	}
}

// TestEveryByteChanged sets each byte of an image to values that overflow counts, sizes and offsets and change flags; in the headers it tries all values.
func TestEveryByteChanged(t *testing.T) {
	livetest.Slow(t)
	data := seed(t, 19, "dup.ll")
	original := append([]byte(nil), data...)
	headers := int(binary.LittleEndian.Uint64(data[40:]))
	usual := livetest.Allocated(func() { survey(t, data) })
	for at := livetest.First(13); at < len(data); at += livetest.Step(13) {
		values := []byte{0, 1, 0x7f, 0x80, 0xff, original[at] + 1, original[at] - 1, original[at] ^ 8, original[at] ^ 0x40}
		if at < 64 || at >= headers {
			values = nil
			for v := range 256 {
				values = append(values, byte(v))
			}
		}
		spent := livetest.Allocated(func() {
			for _, v := range values {
				data[at] = v
				survey(t, data)
			}
		})
		data[at] = original[at]
		// debug/elf reads an implausible size in pieces of 10 MB until the image ends.
		require.LessOrEqual(t, spent, uint64(len(values))*(4*usual+64*uint64(len(data)))+32<<20, "byte %#x", at)
	}
}

func TestEveryTruncation(t *testing.T) {
	data := seed(t, 22, "dup.ll")
	for n := livetest.First(3); n < len(data); n += livetest.Step(3) {
		survey(t, data[:n:n])
	}
}

// elfWriter writes images that no tool writes.
type elfWriter struct {
	sections []elf.Section64
	body     []byte
	flags    func(h *elf.Header64)
}

func (w *elfWriter) bytes() []byte {
	var b bytes.Buffer
	h := elf.Header64{
		Ident: [16]byte{0x7f, 'E', 'L', 'F', byte(elf.ELFCLASS64), byte(elf.ELFDATA2LSB), byte(elf.EV_CURRENT)},
		Type:  uint16(elf.ET_REL), Machine: uint16(elf.EM_X86_64), Version: uint32(elf.EV_CURRENT),
		Ehsize: 64, Shentsize: 64, Shnum: uint16(len(w.sections)), Shoff: 64 + uint64(len(w.body)),
	}
	if w.flags != nil {
		w.flags(&h)
	}
	_ = binary.Write(&b, binary.LittleEndian, &h)
	b.Write(w.body)
	_ = binary.Write(&b, binary.LittleEndian, w.sections)
	return b.Bytes()
}

// TestAmplification requires that reading small images allocates a bounded amount of memory, even if they claim large sizes or use a section header
// many times. The memory must not grow with the square of the image's size.
func TestAmplification(t *testing.T) {
	const many = 60000
	repeat := func(s elf.Section64) []elf.Section64 {
		list := make([]elf.Section64, many)
		for i := range list[1:] {
			list[i+1] = s
		}
		return list
	}
	body := bytes.Repeat([]byte("x"), 1<<20)
	for _, c := range []struct {
		name string
		w    elfWriter
	}{
		{"symbol tables", elfWriter{body: body, sections: repeat(elf.Section64{Type: uint32(elf.SHT_SYMTAB), Off: 64, Size: 1 << 20})}},
		{"names without an end", elfWriter{body: body, sections: repeat(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: 64, Size: 1 << 20}),
			flags: func(h *elf.Header64) { h.Shstrndx = 1 }}},
		{"names that share an end", elfWriter{body: append(bytes.Repeat([]byte("x"), 16000), 0), sections: repeat(elf.Section64{Type: uint32(elf.SHT_STRTAB), Off: 64, Size: 16001}),
			flags: func(h *elf.Header64) { h.Shstrndx = 1 }}},
		{"names that are compressed", elfWriter{body: body, sections: repeat(elf.Section64{Type: uint32(elf.SHT_STRTAB), Flags: uint64(elf.SHF_COMPRESSED), Off: 64, Size: 1 << 20}),
			flags: func(h *elf.Header64) { h.Shstrndx = 1 }}},
		{"sections past the limit", elfWriter{body: body, sections: []elf.Section64{{Size: 1 << 60}},
			flags: func(h *elf.Header64) { h.Shnum = 0 }}},
		{"sections just below it", elfWriter{body: body, sections: []elf.Section64{{Size: 1 << 17}},
			flags: func(h *elf.Header64) { h.Shnum = 0 }}},
	} {
		t.Run(c.name, func(t *testing.T) {
			data := c.w.bytes()
			spent := livetest.Allocated(func() {
				img, err := New("image", bytes.NewReader(data), int64(len(data)))
				if err != nil {
					return
				}
				img.SymbolAt(0x1000)
				img.Lookup("xxxx")
				img.PlaceSections()
				_, _, _ = img.all[1].Relocated()
			})
			require.LessOrEqual(t, spent, uint64(16*len(data)+32<<20))
		})
	}
}

// TestEverySectionCompressed marks each section as compressed; debug/elf then cannot read it. In gcc's objects, unlike LLVM's, symbol names have a
// separate section.
func TestEverySectionCompressed(t *testing.T) {
	dir := t.TempDir()
	source, out := filepath.Join(dir, "f.s"), filepath.Join(dir, "f.o")
	require.NoError(t, os.WriteFile(source, []byte("\t.text\n\t.skip 0x2000\nf:\t.quad f\n\t.size f, 8\n"), 0o644))
	run(t, livetest.Tool(t, "gcc"), "-c", "-o", out, source)
	data, err := os.ReadFile(out)
	require.NoError(t, err)
	headers := int(binary.LittleEndian.Uint64(data[40:]))
	for at := headers; at < len(data); at += 64 {
		flags := binary.LittleEndian.Uint64(data[at+8:])
		binary.LittleEndian.PutUint64(data[at+8:], flags|uint64(elf.SHF_COMPRESSED))
		survey(t, data)
		binary.LittleEndian.PutUint64(data[at+8:], flags)
	}
}

// TestRelocatedTwice requires that a section to which many relocation sections apply is relocated only once.
func TestRelocatedTwice(t *testing.T) {
	w := elfWriter{body: make([]byte, 1<<16), sections: []elf.Section64{
		{},
		{Type: uint32(elf.SHT_PROGBITS), Off: 64, Size: 1 << 16},
		{Type: uint32(elf.SHT_SYMTAB), Off: 64, Size: 1 << 16},
	}}
	for range 50000 {
		w.sections = append(w.sections, elf.Section64{Type: uint32(elf.SHT_RELA), Off: 64, Size: 1 << 16, Info: 1, Link: 2})
	}
	_, _, err := image(t, w.bytes()).all[1].Relocated()
	require.ErrorContains(t, err, "a second time")
}

func TestErrors(t *testing.T) {
	good := seed(t, 19, "dup.ll")
	_, err := New("text", bytes.NewReader([]byte("#!/bin/sh\n")), 10)
	require.ErrorIs(t, err, ErrNotObject)
	_, err = New("nothing", bytes.NewReader(nil), 0)
	require.ErrorIs(t, err, ErrNotObject)
	_, err = New("short", bytes.NewReader(good[:20]), 20)
	require.ErrorContains(t, err, "short: it ends inside its header")
	wide := append([]byte(nil), good...)
	wide[4] = 3
	_, err = New("wide", bytes.NewReader(wide), int64(len(wide)))
	require.ErrorContains(t, err, "wide: unknown ELF class")
	other := append([]byte(nil), good...)
	binary.LittleEndian.PutUint16(other[18:], uint16(elf.EM_MIPS))
	_, err = image(t, other).Arch()
	require.ErrorContains(t, err, "ELFCLASS64 EM_MIPS ELFDATA2LSB is not supported")
	_, _, err = image(t, other).StackMaps()[0].Relocated()
	require.ErrorContains(t, err, ".rela.llvm_stackmaps+0x0: relocations of EM_MIPS are not supported")
	arch, err := image(t, good).Arch()
	require.NoError(t, err)
	require.Equal(t, machine.AMD64, arch)
}

func FuzzImage(f *testing.F) {
	for _, version := range []int{14, 19, 22} {
		f.Add(seed(f, version, "dup.ll"))
	}
	f.Add(seed(f, 19, "jit_pp.ll"))
	f.Fuzz(func(t *testing.T, data []byte) { survey(t, data) })
}
