package verify

import (
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/livetest"
)

// TestVerifyExecveByAnotherThread requires that verification continues with the new program, to its end, after a thread calls execve, which ends the
// threads that are stopped at an exit.
func TestVerifyExecveByAnotherThread(t *testing.T) {
	livetest.Slow(t)
	module, err := filepath.Abs("testdata/execs.ll")
	require.NoError(t, err)
	m, err := ir.ParseFile(module)
	require.NoError(t, err)
	object := livetest.Object(t, 19, module, "-relocation-model=static")
	path := livetest.CProgram(t, "gcc", []string{"-O1", "-no-pie", "-pthread"}, "testdata/execs.c", object)
	f, err := names.Exact("f")
	require.NoError(t, err)
	for range livetest.Times(6, 60) {
		o := Options{EntriesOf: []*names.Pattern{f}}
		o.Modules = append(o.Modules, m)
		summary, all := verified(t, []string{path, "5"}, o)
		for _, v := range all {
			require.NotEqual(t, Different, v.Status, v.Why)
		}
		require.Equal(t, trace.End{Kind: trace.EndExited, ExitCode: 7}, summary.End)
		require.Equal(t, summary.Exits, summary.Same+summary.NotComparable)
	}
}
