package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// TestVerifyMemorySharedWithOtherProcesses requires that stores by another process to shared memory cause no difference. Shared pages that no other
// process maps, and private memory, must be compared.
func TestVerifyMemorySharedWithOtherProcesses(t *testing.T) {
	source := filepath.Join("testdata", "shared.ll")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "shared")
	object := livetest.PICObject(t, 19, livetest.IR(t, 19, livetest.Module(t, string(text))), "-O2")
	livetest.Make(t, livetest.Tool(t, "gcc"), "-w", "-O1", "-no-pie", filepath.Join("testdata", "shared.c"), object, "-o", program)
	for _, c := range []struct {
		about, old, new string
		args            []string
		status, why     string
	}{
		{"another process answers", "", "", nil, NotComparable, errSharedMemory.Error()},
		{"no other process has it", "", "", []string{"alone"}, Same, ""},
		{"no other process has it, and native code stores something else", "store volatile i64 0", "store volatile i64 8", []string{"alone"}, Different, ""},
		{"private memory differs", "store i64 5", "store i64 6", []string{"alone"}, Different, ""},
	} {
		m, err := ir.Parse("shared.ll", []byte(strings.Replace(string(text), c.old, c.new, 1)))
		require.NoError(t, err)
		_, list := verified(t, append([]string{program}, c.args...), Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
		require.Len(t, list, 1, c.about)
		require.Equal(t, c.status, list[0].Status, "%s: %s", c.about, list[0].Why)
		require.Equal(t, c.why, list[0].Why, c.about)
	}
}
