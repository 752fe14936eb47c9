package lines

import (
	"bytes"
	"debug/elf"
	"math/rand"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine/object"
	"example.com/reframe/test/livetest"
)

// TestBrokenDebugInformation changes bytes of debug information. It requires a result or an error within the budget, and never a panic.
func TestBrokenDebugInformation(t *testing.T) {
	answers, refused := 0, 0
	for _, seed := range []string{
		livetest.Compiled(t, "gcc", "testdata/inline.c", "-O2", "-g", "-c"),
		livetest.Compiled(t, "gcc", "testdata/inline.c", "-O2", "-gdwarf-3"),
		livetest.Compiled(t, "clang-14", "testdata/inline.c", "-O2", "-gdwarf-4"),
		livetest.Compiled(t, "clang-19", "testdata/inline.c", "-O2", "-gdwarf-5"),
	} {
		data, err := os.ReadFile(seed)
		require.NoError(t, err)
		file, err := elf.NewFile(bytes.NewReader(data))
		require.NoError(t, err)
		var places []uint64
		for _, s := range file.Sections {
			if strings.Contains(s.Name, ".debug_") {
				for n := range s.FileSize {
					places = append(places, s.Offset+n)
				}
			}
		}
		rnd := rand.New(rand.NewSource(1))
		for range 1000 {
			broken := bytes.Clone(data)
			for range 1 + rnd.Intn(20) {
				broken[places[rnd.Intn(len(places))]] = byte(rnd.Intn(256))
			}
			img, err := object.New(seed, bytesAt(broken), int64(len(broken)))
			require.NoError(t, err)
			img.PlaceSections()
			r := New(img, NewBudget(1<<20))
			for _, addr := range sample(img, 5) {
				p, err := r.At(addr)
				if answers++; err != nil {
					require.Empty(t, p.Lines)
					refused++
				}
			}
			require.GreaterOrEqual(t, r.budget.left, int64(0))
		}
	}
	require.Greater(t, refused, answers/10, "of %d", answers)
	require.Less(t, refused, answers)
}
