package ptrace

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// TestAsBefore requires that asBefore returns no memory that changed between the two reads.
func TestAsBefore(t *testing.T) {
	before := []span{{0x1000, make([]byte, 200)}, {0x2000, make([]byte, 64)}, {0x3000, make([]byte, 10)}}
	after := []span{{0x1000, make([]byte, 200)}, {0x2000, make([]byte, 32)}, {0x4000, make([]byte, 10)}}
	after[0].data[70] = 1
	got := newCopied(asBefore(before, after), NotCopied)
	require.Equal(t, []span{{0x1000, make([]byte, 64)}, {0x1080, make([]byte, 72)}}, got.ranges)
}

// TestLinkageOfCapture requires that a brief capture contains the tables of the process.
func TestLinkageOfCapture(t *testing.T) {
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	target, err := Capture(p.PID, Options{})
	require.NoError(t, err)
	defer target.Close()
	tables := 0
	for _, m := range target.Modules {
		for _, name := range []string{".got", ".got.plt"} {
			if m.Image == nil || m.Image.Section(name) == nil || m.Image.Section(name).Size == 0 {
				continue
			}
			s := m.Image.Section(name)
			got, want := make([]byte, s.Size), make([]byte, s.Size)
			require.NoError(t, target.ReadMemory(got, s.Loaded()), "%s of %s", name, m.Path)
			require.NoError(t, live(p.PID).ReadMemory(want, s.Loaded()))
			require.Equal(t, want, got)
			tables++
		}
	}
	require.Greater(t, tables, 10)
}
