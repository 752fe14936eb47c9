package object

import (
	"bytes"
	"compress/zlib"
	"debug/elf"
	"encoding/binary"
	"io"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

const compressedSource = `
extern long sink(void *, long);
static long inner(long a) { return a ? sink(&a, a) : 1; }
long outer(long n) { return inner(n) + sink(0, inner(n + 1)); }
`

// TestCompressed requires that compressed debug information reads like the uncompressed one, in objects and linked images and in every compressed form.
func TestCompressed(t *testing.T) {
	dir := t.TempDir()
	source := filepath.Join(dir, "f.c")
	require.NoError(t, os.WriteFile(source, []byte(compressedSource), 0o644))
	gnu, llvm := livetest.Tool(t, "objcopy"), livetest.LLVM(t, 19, "llvm-objcopy")
	for _, kind := range []string{"-c", "-shared"} {
		plain := filepath.Join(dir, "plain"+kind)
		run(t, livetest.Tool(t, "gcc"), "-g", "-O2", "-fPIC", "-fno-asynchronous-unwind-tables", "-nostdlib", kind, "-o", plain, source)
		want := openFile(t, plain)
		for _, form := range [][]string{{gnu, "zlib"}, {gnu, "zlib-gnu"}, {llvm, "zlib"}, {llvm, "zstd"}} {
			t.Run(kind+" "+filepath.Base(form[0])+" "+form[1], func(t *testing.T) {
				packed := filepath.Join(dir, "packed")
				run(t, form[0], "--compress-debug-sections="+form[1], plain, packed)
				img := openFile(t, packed)
				compressed := 0
				for _, s := range img.all {
					if _, ok := s.data.(*inflater); !ok {
						continue
					}
					compressed++
					original := want.Section(s.Name)
					require.NotNil(t, original, s.Name)
					require.Equal(t, original.Size, s.Size, s.Name)
					expected, err := original.Data()
					require.NoError(t, err)
					got, err := s.Data()
					require.NoError(t, err)
					require.Equal(t, expected, got, s.Name)
					got[0]++ // a change of the result must not affect the next caller
					part := make([]byte, 4)
					_, err = s.ReadAt(part, 3)
					require.NoError(t, err)
					require.Equal(t, expected[3:7], part)
					n, err := s.ReadAt(part, int64(s.Size)-1)
					require.Equal(t, 1, n)
					require.Equal(t, io.EOF, err)
					expected, _, err = original.Relocated()
					require.NoError(t, err)
					got, _, err = s.Relocated()
					require.NoError(t, err)
					require.Equal(t, expected, got, s.Name)
				}
				require.GreaterOrEqual(t, compressed, 3)
			})
		}
	}
}

// TestCompressedConcurrently requires that goroutines may read a section concurrently, and that it is decompressed once.
func TestCompressedConcurrently(t *testing.T) {
	img := image(t, packedSections(pack(t, 1000), 1, 1000))
	var group sync.WaitGroup
	for range 8 {
		group.Go(func() {
			b := make([]byte, 8)
			n, err := img.all[1].ReadAt(b, 992)
			if n != 8 || err != nil || !bytes.Equal(b, make([]byte, 8)) {
				t.Errorf("%d bytes, %v: %v", n, err, b)
			}
		})
	}
	group.Wait()
}

// pack compresses n zeros.
func pack(t *testing.T, n int) []byte {
	var b bytes.Buffer
	w := zlib.NewWriter(&b)
	_, err := w.Write(make([]byte, n))
	require.NoError(t, err)
	require.NoError(t, w.Close())
	return b.Bytes()
}

// packedSections returns an image with count sections that all have the compressed bytes packed, and claim to decompress to size bytes.
func packedSections(packed []byte, count int, size uint64) []byte {
	header := binary.LittleEndian.AppendUint32(nil, uint32(elf.COMPRESS_ZLIB))
	header = binary.LittleEndian.AppendUint32(header, 0)
	header = binary.LittleEndian.AppendUint64(header, size)
	header = binary.LittleEndian.AppendUint64(header, 1)
	w := elfWriter{body: append(header, packed...), sections: []elf.Section64{{}}}
	for range count {
		w.sections = append(w.sections, elf.Section64{Type: uint32(elf.SHT_PROGBITS), Flags: uint64(elf.SHF_COMPRESSED), Off: 64, Size: uint64(len(w.body))})
	}
	return w.bytes()
}

func TestCompressedHostile(t *testing.T) {
	packed := pack(t, 1<<20)
	for _, c := range []struct {
		name string
		data []byte
		err  string
	}{
		{"as it is", packedSections(packed, 1, 1<<20), ""},
		{"less than it is", packedSections(packed, 1, 1<<19), "claims to be 524288 bytes, and decompresses to more"},
		{"more than it is", packedSections(packed, 1, 1<<20+1), "claims to be 1048577 bytes, and decompresses to 1048576"},
		{"more than the format can", packedSections(packed, 1, 1<<62), "claims to be 4611686018427387904 bytes, compressed to"},
		{"more than the limit", packedSections(bytes.Repeat([]byte{0}, 1<<14), 1, 1<<28+1), "the limit for an image is 268435456"},
		{"cut off", packedSections(packed[:len(packed)/2], 1, 1<<20), "decompressing it: unexpected EOF"},
		{"not compressed", packedSections(bytes.Repeat([]byte{7}, 2000), 1, 1<<20), "decompressing it: zlib: invalid header"},
	} {
		t.Run(c.name, func(t *testing.T) {
			spent := livetest.Allocated(func() {
				s := image(t, c.data).all[1]
				for range 3 {
					_, err := s.Data()
					if c.err == "" {
						require.NoError(t, err)
						continue
					}
					require.ErrorContains(t, err, c.err)
					var from *Error
					require.ErrorAs(t, err, &from)
					_, again := s.ReadAt(make([]byte, 1), 0)
					require.ErrorContains(t, again, c.err)
				}
			})
			require.Less(t, spent, uint64(16<<20))
		})
	}
}

// TestCompressedAltogether requires that the limit applies to the sum of all sections, because many section headers may refer to the same bytes.
func TestCompressedAltogether(t *testing.T) {
	const each = 1 << 20
	img := image(t, packedSections(pack(t, each), 300, each))
	held := 0
	for _, s := range img.all[1:] {
		_, err := s.ReadAt(make([]byte, 1), 0)
		if err == nil {
			held++
			continue
		}
		require.ErrorContains(t, err, "the limit for an image is 268435456")
	}
	require.Equal(t, 256, held)
}

// TestCompressedNot requires that loaded sections and symbol tables are not decompressed: no tool compresses them.
func TestCompressedNot(t *testing.T) {
	packed := pack(t, 100)
	data := packedSections(packed, 1, 100)
	at := len(data) - 64 // header of the section
	for name, change := range map[string]func(){
		"loaded":       func() { data[at+8] |= byte(elf.SHF_ALLOC) },
		"symbol table": func() { data[at+4] = byte(elf.SHT_SYMTAB) },
	} {
		original := bytes.Clone(data)
		change()
		_, err := image(t, data).all[1].Data()
		require.ErrorContains(t, err, "is compressed", name)
		copy(data, original)
	}
}

// TestCompressedEveryByte sets each byte of a compressed section to each value, and requires that the result is bounded.
func TestCompressedEveryByte(t *testing.T) {
	livetest.Slow(t)
	dir := t.TempDir()
	source, plain := filepath.Join(dir, "f.c"), filepath.Join(dir, "plain")
	require.NoError(t, os.WriteFile(source, []byte(compressedSource), 0o644))
	run(t, livetest.Tool(t, "gcc"), "-g", "-O2", "-fno-asynchronous-unwind-tables", "-c", "-o", plain, source)
	for tool, form := range map[string]string{"objcopy": "zlib-gnu", "llvm-objcopy-19": "zstd"} {
		packed := filepath.Join(dir, form)
		run(t, livetest.Tool(t, tool), "--compress-debug-sections="+form, plain, packed)
		data, err := os.ReadFile(packed)
		require.NoError(t, err)
		img := image(t, data)
		var s *Section
		for _, s = range img.all {
			if _, ok := s.data.(*inflater); ok && strings.HasSuffix(s.Name, "_info") {
				break
			}
		}
		header := img.format.(*elfFormat).file.Sections[s.index]
		changed := data[header.Offset:][:min(header.FileSize, 120)]
		good, bad := 0, 0
		for i, old := range changed {
			for v := i % livetest.Step(3); v < 256; v += livetest.Step(3) {
				changed[i] = byte(v)
				if _, err := image(t, data).all[s.index].Data(); err == nil {
					good++
				} else {
					bad++
				}
			}
			changed[i] = old
		}
		require.Positive(t, good)
		require.Positive(t, bad)
		t.Logf("%s: %d of %d changes are refused", form, bad, good+bad)
	}
}
