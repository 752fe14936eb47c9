package verify

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// TestVerifyHandlersThatMakeMemoryAccessible requires that a handler of SIGSEGV that makes memory accessible causes no difference, because the
// interpreter cannot see it. This holds at the return, at an exit that is compared with the run from the entry, and at the next exit of a function
// that does not return.
func TestVerifyHandlersThatMakeMemoryAccessible(t *testing.T) {
	const raised = "native code raised SIGSEGV"
	source, err := filepath.Abs(filepath.Join("testdata", "handler.ll"))
	require.NoError(t, err)
	m, err := ir.ParseFile(source)
	require.NoError(t, err)
	for n, flags := range []string{"-DBEFORE=PROT_NONE", "-DBEFORE=PROT_READ", "-DMAP", "-DBEFORE=PROT_NONE -DFILL", "-DBEFORE=PROT_READ -DFILL"} {
		version := []int{14, 19, 22}[n%3]
		object := livetest.PICObject(t, version, livetest.IR(t, version, source), "-O2")
		program := filepath.Join(t.TempDir(), "handler")
		args := append(strings.Fields(flags), "-w", "-O1", "-no-pie", filepath.Join("testdata", "handler.c"), object, "-o", program)
		livetest.Make(t, livetest.Tool(t, "gcc"), args...)
		for _, fromEntry := range []bool{false, true} {
			summary, list := verified(t, []string{program}, Options{Options: deopt.Options{Modules: []*ir.Module{m}}, FromEntry: fromEntry})
			about := flags
			if fromEntry {
				about += ", from the entry"
				require.Positive(t, summary.ExitOnly[raised], about)
			}
			require.Zero(t, summary.Different, about)
			require.Positive(t, summary.Same, about)
			require.Positive(t, summary.Reasons[raised], about)
			require.Equal(t, uint64(3+3+4+1+4), summary.Exits, about) // an instruction that raises the signal, and runs again, is one exit
			for why := range summary.Reasons {
				require.Contains(t, []string{raised, "native code did not return: the process ended"}, why, about)
			}
			for _, v := range list {
				require.Contains(t, []string{Same, NotComparable}, v.Status, about)
				if v.Exit.Point.Record == 1 || v.Exit.Point.Record == 4 { // the code after this record does not touch the memory
					require.Equal(t, Same, v.Status, "%s: %s", about, v.Why)
				}
			}
		}
		o := Options{Options: deopt.Options{Modules: []*ir.Module{m}}, ExitFilter: trace.ExitFilter{Records: []uint64{5}}, Steps: 100, Limit: 4}
		summary, _ := verified(t, []string{program, "200"}, o)
		require.Zero(t, summary.Different, flags)
		require.Positive(t, summary.Reasons[raised], flags)
	}
}
