package commit

import (
	"context"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// patchedFunctions holds the functions of patchexit.ll whose sites are overwritten, with the record of each.
var patchedFunctions = map[string]uint64{"shadow": 31, "sled": 32, "leaf": 33}

// unpatched returns the output of the program without overwritten sites.
func unpatched(t *testing.T, version int, how, function, times string) string {
	t.Helper()
	out, err := livetest.PatchExitCommand(t, version, how, "patchexit.ll", function, "none", times).Output()
	require.NoError(t, err)
	return string(out)
}

// TestCommitFromPatchedSites requires that a frame at a call that the program wrote into a site resumes and returns the value that the program would
// have returned. After the commit the program must continue as if it had not overwritten its code: it prints the same, calls the function again, and
// reaches the site again.
func TestCommitFromPatchedSites(t *testing.T) {
	livetest.Slow(t)
	livetest.EveryPatchExit(t, func(t *testing.T, version int, how string) {
		for function, record := range patchedFunctions {
			for _, way := range []string{"pause", "bare", "stub"} {
				if function == "leaf" && way == "bare" {
					continue // TestCommitRefusesWhatThePatchLost covers this case
				}
				want := unpatched(t, version, how, function, "2")
				p := livetest.PatchExit(t, version, how, "patchexit.ll", function, way, "2")
				o := frametest.Known(t, p)
				for n, line := range strings.SplitAfter(want, "\n")[:2] {
					p.AwaitPauseAgain(t, n+1)
					returned := strings.Fields(line)[1]
					// First resume from a copy, which does not change the process.
					v := frametest.Look(t, p, true, o)
					f := frametest.One(t, v, function)
					require.EqualValues(t, record, f.Record.ID)
					run, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
					require.NoError(t, err)
					require.Equal(t, returned, run.Result.Value)
					v.Target().Close()

					s := frametest.Open(t, p)
					out, done, err := prepareCommit(t, s, o, innermost, "")
					require.NoError(t, err)
					require.Equal(t, returned, out.Committed.Result[0].Value)
					require.Equal(t, "call", out.Committed.Continues.Function)
					require.NoError(t, done.Write())
					require.NoError(t, s.Detach())
				}
				require.NoError(t, p.Wait(), "%s", p.Output())
				require.Equal(t, want, strings.ReplaceAll(p.Output(), "ready\n", ""), "%s %s", function, way)
			}
		}
	})
}

// TestCommitRefusesWhatThePatchLost requires an error instead of a commit if the called runtime overwrites caller-saved registers, because the result
// is then unknown. TestCommitFromPatchedSites covers a runtime that saves these registers, with CFI for their places.
func TestCommitRefusesWhatThePatchLost(t *testing.T) {
	livetest.EveryPatchExit(t, func(t *testing.T, version int, how string) {
		p := livetest.PatchExit(t, version, how, "patchexit.ll", "leaf", "bare")
		refusedCommit(t, p, frametest.Known(t, p), innermost, "", "is caller-saved and frame #1 does not preserve it")
	})
}
