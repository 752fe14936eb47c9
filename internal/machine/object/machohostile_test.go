package object

import (
	"bytes"
	"encoding/binary"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// surveyMachO relocates each section and reads its properties, which [survey] does not do.
func surveyMachO(t testing.TB, data []byte) {
	survey(t, data)
	_, _ = fatSlices(bytes.NewReader(data), int64(len(data)))
	img, err := New("image", bytes.NewReader(data), int64(len(data)))
	if err != nil {
		return
	}
	img.StackMaps()
	for n, s := range img.all {
		if n == 32 { // each section may be as large as the image
			break
		}
		got, done, err := s.Relocated()
		var e *Error
		if err != nil && !errors.As(err, &e) {
			require.ErrorAs(t, err, &e)
		}
		if len(got) > len(data) {
			require.Fail(t, "more bytes than there are")
		}
		for _, r := range done[:min(len(done), 16)] {
			_ = r.Symbol()
			if r.Offset >= s.Size {
				require.Fail(t, "relocated outside of its section")
			}
		}
	}
	img.Lookup("_work")
}

func machoSeeds(t testing.TB) map[string][]byte {
	t.Helper()
	seeds := map[string][]byte{}
	for arch, triple := range machoTriples {
		seeds[arch] = seed(t, 19, "dup.ll", "-mtriple="+triple)
	}
	object := livetest.Object(t, 19, weakProgram(t), "-mtriple="+machoTriples["x86_64"])
	for _, flags := range []string{"-fixup_chains", "-no_fixup_chains"} {
		data, err := os.ReadFile(ld64(t, "x86_64", []string{"-dylib", flags}, object))
		require.NoError(t, err)
		seeds["linked "+flags] = data
	}
	return seeds
}

// TestMachOEveryByteChanged changes each byte of an object, and of the headers and tables of a linked image.
func TestMachOEveryByteChanged(t *testing.T) {
	livetest.Slow(t)
	for name, data := range machoSeeds(t) {
		t.Run(name, func(t *testing.T) {
			original := bytes.Clone(data)
			usual := livetest.Allocated(func() { surveyMachO(t, data) })
			headers := 32 + int(binary.LittleEndian.Uint32(data[20:]))
			const block = 64
			for from := 0; from < len(data); from += block {
				// The rest of a linked image is padding and the same as in the object.
				if strings.HasPrefix(name, "linked") && from >= headers && from < len(data)-1200 {
					continue
				}
				values := []byte{4, 0x80, 0xff, 1}
				if !strings.HasPrefix(name, "linked") {
					values = append(values, 0x7f, 2, 3, 0x40)
				}
				surveys := uint64(0)
				spent := livetest.Allocated(func() {
					for at := from; at < min(from+block, len(data)); at += livetest.Step(5) {
						for _, v := range values {
							data[at] = original[at] ^ v
							surveyMachO(t, data)
							surveys++
						}
						data[at] = original[at]
					}
				})
				surveys /= 3 // the loop above runs three times
				require.LessOrEqual(t, spent, surveys*(4*usual+16*uint64(len(data))), "bytes from %#x on", from)
			}
		})
	}
}

func TestMachOEveryTruncation(t *testing.T) {
	for name, data := range machoSeeds(t) {
		step := 1
		if strings.HasPrefix(name, "linked") {
			step = 41
		}
		for n := 0; n < len(data); n += step {
			surveyMachO(t, data[:n:n])
		}
	}
}

// TestMachOAmplification requires that reading small files that claim large sizes allocates a bounded amount of memory.
func TestMachOAmplification(t *testing.T) {
	le := binary.LittleEndian
	const large = 1 << 20
	header := func(kind, commands, size uint32) []byte {
		b := make([]byte, 32)
		for n, v := range []uint32{0xfeedfacf, 0x0100000c, 0, kind, commands, size} {
			le.PutUint32(b[4*n:], v)
		}
		return b
	}
	// The file has many sections; each is the whole image and has the same relocations.
	const many = 10000
	sections := header(1, 2, 72+many*80+24)
	segment := make([]byte, 72)
	le.PutUint32(segment, 0x19)
	le.PutUint32(segment[4:], 72+many*80)
	le.PutUint64(segment[48:], large)
	le.PutUint32(segment[64:], many)
	sections = append(sections, segment...)
	for range many {
		s := make([]byte, 80)
		copy(s, "__llvm_stackmaps__LLVM_STACKMAPS")
		le.PutUint64(s[40:], large)
		le.PutUint32(s[60:], large/8)
		sections = append(sections, s...)
	}
	symtab := make([]byte, 24)
	for n, v := range []uint32{2, 24, 0, large / 16, 0, large} {
		le.PutUint32(symtab[4*n:], v)
	}
	sections = append(append(sections, symtab...), make([]byte, large)...)

	// The chain passes through every word of both pages.
	chain := chained{format: 2, starts: []uint16{16, 0}, importing: 1, imports: []uint32{0xfe | 1<<9}, names: "\x00" + strings.Repeat("x", large), words: map[int]uint64{}}
	for off := 0; off < 0x8000-16; off += 8 {
		chain.words[off] = 1<<63 | 2<<51
		if off&0x3fff == 0x4000-24 {
			chain.words[off] = 1 << 63
		}
	}
	commands := header(1, 0xffffffff, 0)
	for name, data := range map[string][]byte{"sections": sections, "chain": chain.bytes(), "commands": commands} {
		t.Run(name, func(t *testing.T) {
			spent := livetest.Allocated(func() {
				img, err := New("image", bytes.NewReader(data), int64(len(data)))
				if err != nil {
					return
				}
				img.SymbolAt(0x1000)
				img.Lookup("_work")
				img.PlaceSections()
				_, _, _ = img.all[0].Relocated()
			})
			require.LessOrEqual(t, spent, uint64(16*len(data)+1<<20))
		})
	}
}

func FuzzMachO(f *testing.F) {
	for _, data := range machoSeeds(f) {
		f.Add(data)
	}
	f.Add(chained{format: 3, narrow: true, starts: []uint16{0x8002, 0xffff, 16, 0x8000 | 64}, importing: 2, imports: []uint32{1, 2}, names: "\x00_a\x00"}.bytes())
	f.Fuzz(func(t *testing.T, data []byte) { surveyMachO(t, data) })
}
