package lines

import (
	"bytes"
	"debug/elf"
	"encoding/binary"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// TestObject requires that an unlinked object gives the same results as the program linked from it, even if a JIT assigned addresses to its debug sections.
func TestObject(t *testing.T) {
	for _, compiler := range []string{"gcc", "clang-14", "clang-19"} {
		for _, flag := range []string{"-gdwarf-4", "-gdwarf-5"} {
			file := livetest.Compiled(t, compiler, "testdata/inline.c", "-O2", flag, "-c")
			data, err := os.ReadFile(file)
			require.NoError(t, err)
			var chains [2][]Place
			for n := range chains {
				if n == 1 {
					data = addressed(t, data)
				}
				img, err := object.New(file, bytesAt(data), int64(len(data)))
				require.NoError(t, err)
				img.PlaceSections()
				r := New(img, everything())
				for _, addr := range sample(img, 100) {
					p, err := r.At(addr)
					require.NoError(t, err)
					chains[n] = append(chains[n], p)
				}
			}
			require.Equal(t, chains[0], chains[1])
			deepest := 0
			for _, p := range chains[0] {
				deepest = max(deepest, len(p.Lines))
			}
			require.GreaterOrEqual(t, deepest, 3)
			last := chains[0][len(chains[0])-1].Lines
			require.Equal(t, "main", last[len(last)-1].Function)
		}
	}
}

// addressed assigns addresses to the sections that are not loaded.
func addressed(t *testing.T, data []byte) []byte {
	data = bytes.Clone(data)
	file, err := elf.NewFile(bytes.NewReader(data))
	require.NoError(t, err)
	headers := binary.LittleEndian.Uint64(data[0x28:])
	for n, s := range file.Sections {
		if s.Flags&elf.SHF_ALLOC == 0 && n > 0 {
			binary.LittleEndian.PutUint64(data[headers+uint64(n)*64+0x10:], 0x7f0000000000+uint64(n)<<16)
		}
	}
	return data
}

// TestSplitDWARF requires that split DWARF yields the lines, and a note that the rest is in another file.
func TestSplitDWARF(t *testing.T) {
	source, err := filepath.Abs("testdata/inline.c")
	require.NoError(t, err)
	for _, c := range []struct{ compiler, version string }{{"gcc", "-gdwarf-4"}, {"gcc", "-gdwarf-5"}, {"clang-19", "-gdwarf-5"}} {
		dir := t.TempDir()
		run(t, dir, c.compiler, "-O2", c.version, "-gsplit-dwarf", source, "-o", "split")
		img := open(t, filepath.Join(dir, "split"))
		sym, ok := img.Lookup("stop")
		require.True(t, ok)
		p, err := New(img, everything()).At(sym.Addr)
		require.NoError(t, err, c)
		require.Len(t, p.Lines, 1, c)
		run(t, dir, c.compiler, "-O2", c.version, source, "-o", "whole")
		whole := open(t, filepath.Join(dir, "whole"))
		sym, _ = whole.Lookup("stop")
		want, err := New(whole, everything()).At(sym.Addr)
		require.NoError(t, err)
		require.NotZero(t, want.Lines[0].Line)
		require.Equal(t, [3]any{want.Lines[0].File, want.Lines[0].Line, want.Lines[0].Column}, [3]any{p.Lines[0].File, p.Lines[0].Line, p.Lines[0].Column})
		require.Empty(t, p.Lines[0].Function)
		require.Contains(t, p.Missing, ".dwo (split DWARF), which is not supported")
	}
}
