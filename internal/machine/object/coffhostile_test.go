package object

import (
	"bytes"
	"encoding/binary"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// otherImages returns small images of the formats, classes and byte orders that hostile_test.go does not cover.
func otherImages(t testing.TB) map[string][]byte {
	t.Helper()
	list := map[string][]byte{}
	for _, n := range []int{1, 4, 6} {
		list[elfTargets[n].triple] = readFile(t, elfTargets[n].object(t, 22, "dup.ll"))
	}
	for _, c := range coffTargets {
		list[c.triple] = readFile(t, c.object(t, 22, "dup.ll"))
	}
	out := filepath.Join(t.TempDir(), "x.dll")
	run(t, livetest.Tool(t, "lld-link-19"), "-dll", "-noentry", "-nodefaultlib", "-opt:noref", "-filealign:64", "-debug:symtab", "-out:"+out, coffTargets[0].object(t, 22, "dup.ll"))
	list["a PE image"] = readFile(t, out)
	for name, flag := range map[string]string{"linked, RELR": "--pack-dyn-relocs=relr", "linked, RELA": "--pack-dyn-relocs=none"} {
		out := filepath.Join(t.TempDir(), "linked")
		run(t, livetest.Tool(t, "ld.lld-19"), "-shared", "-z", "notext", flag, "-z", "max-page-size=64", "-z", "norelro", "-o", out, livetest.Object(t, 22, "dup.ll", "-relocation-model=pic"))
		list[name] = readFile(t, out)
	}
	return list
}

func TestEveryByteOfOthersChanged(t *testing.T) {
	livetest.Slow(t)
	for name, data := range otherImages(t) {
		t.Run(name, func(t *testing.T) {
			original := bytes.Clone(data)
			usual := livetest.Allocated(func() { survey(t, data) })
			for at := livetest.First(13); at < len(data); at += livetest.Step(13) {
				values := []byte{0, 1, 0x7f, 0xff, original[at] + 1, original[at] - 1, original[at] ^ 8}
				spent := livetest.Allocated(func() {
					for _, v := range values {
						data[at] = v
						survey(t, data)
					}
				})
				data[at] = original[at]
				require.LessOrEqual(t, spent, uint64(len(values))*(4*usual+64*uint64(len(data)))+32<<20, "byte %#x", at)
			}
			for n := livetest.First(7); n < len(data); n += livetest.Step(7) {
				survey(t, data[:n:n])
			}
		})
	}
}

// TestAmplificationCOFF requires that reading small files allocates a bounded amount of memory, even if they claim large sizes or use one part many
// times.
func TestAmplificationCOFF(t *testing.T) {
	const size = 1 << 20
	le := binary.LittleEndian
	object := func(sections int, fill func(data, headers []byte)) []byte {
		data := bytes.Repeat([]byte("x"), size)
		clear(data[:20])
		le.PutUint16(data, 0x8664)
		le.PutUint16(data[2:], uint16(sections))
		headers := data[20 : 20+40*sections]
		clear(headers)
		fill(data, headers)
		return data
	}
	for _, c := range []struct {
		name string
		data []byte
	}{
		{"long names shared", object(20000, func(data, headers []byte) {
			le.PutUint32(data[8:], 900000)
			le.PutUint32(data[900000:], 100000)
			data[999999] = 0
			for at := 0; at < len(headers); at += 40 {
				copy(headers[at:], "/90000")
			}
		})},
		{"symbols with names of their own", object(1, func(data, headers []byte) {
			le.PutUint32(data[8:], 100)
			le.PutUint32(data[12:], (size-200)/18)
			for at := 117; at < size; at += 18 {
				data[at] = 0
			}
		})},
		{"relocations", object(1, func(data, headers []byte) {
			le.PutUint32(data[8:], 900000)
			le.PutUint32(data[12:], 1)
			le.PutUint32(headers[16:], 1<<19)
			le.PutUint32(headers[20:], 100)
			le.PutUint32(headers[24:], 100)
			le.PutUint16(headers[32:], 0xffff)
			le.PutUint32(headers[36:], coffManyRelocs)
			for at := 100; at+10 <= 900000; at += 10 {
				le.PutUint32(data[at:], 0)
				le.PutUint32(data[at+4:], 0)
				le.PutUint16(data[at+8:], 1)
			}
			le.PutUint32(data[100:], 80000)
		})},
	} {
		t.Run(c.name, func(t *testing.T) {
			spent := livetest.Allocated(func() {
				img, err := New("image", bytes.NewReader(c.data), int64(len(c.data)))
				if err != nil {
					return
				}
				img.PlaceSections()
				img.SymbolAt(0x1000)
				img.SymbolStarting(0x1000)
				img.Lookup("xxxx")
				_, _, _ = img.all[0].Relocated()
			})
			require.LessOrEqual(t, spent, uint64(32*len(c.data)))
		})
	}
}

func FuzzOthers(f *testing.F) {
	for _, data := range otherImages(f) {
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) { survey(t, data) })
}
