package lines

import (
	"os"
	"testing"

	"example.com/reframe/internal/machine"
	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// FuzzReader requires that lookups in images with broken debug information end in bounded time. The seeds are objects, in which all sections are relocated,
// and programs of both compilers in DWARF 4 and 5.
func FuzzReader(f *testing.F) {
	for _, seed := range []string{
		livetest.Compiled(f, "gcc", "testdata/inline.c", "-O2", "-g", "-c"),
		livetest.Compiled(f, "clang-19", "testdata/inline.c", "-O2", "-gdwarf-5", "-c"),
		livetest.Compiled(f, "clang-14", "testdata/inline.c", "-O2", "-gdwarf-4", "-c"),
		livetest.Compiled(f, "clang-19", "testdata/inline.c", "-O2", "-gdwarf-5"),
		livetest.Compiled(f, "gcc", "testdata/inline.c", "-O2", "-gdwarf-3"),
	} {
		data, err := os.ReadFile(seed)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data, uint16(0x10), false)
		f.Add(data, uint16(0x1180), true)
	}
	f.Fuzz(func(t *testing.T, data []byte, at uint16, placed bool) {
		img, err := object.New("fuzz", bytesAt(data), int64(len(data)))
		if err != nil {
			return
		}
		if placed {
			img.PlaceSections()
		}
		r := New(img, NewBudget(4<<20))
		for _, addr := range []machine.Addr{machine.Addr(at), machine.Addr(at) + 0x1000, machine.Addr(at) + 0x401000} {
			p, err := r.At(addr)
			if err != nil && len(p.Lines) > 0 {
				t.Fatal("lines and an error", p, err)
			}
			for k, l := range p.Lines {
				if l.Line < 0 || l.Column < 0 || l.Inlined != (k < len(p.Lines)-1) {
					t.Fatal(p)
				}
			}
		}
	})
}
