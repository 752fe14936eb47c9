package deopt

import (
	"context"
	"fmt"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// patchedFunctions are those of patchexit.ll whose sites are overwritten, with the record of each.
var patchedFunctions = map[string]uint64{"shadow": 31, "sled": 32, "leaf": 33}

// unpatched is what the program prints where it overwrites nothing.
func unpatched(t *testing.T, version int, how, function, times string) string {
	t.Helper()
	out, err := livetest.PatchExitCommand(t, version, how, "patchexit.ll", function, "none", times).Output()
	require.NoError(t, err)
	return string(out)
}

// everyPatchExit runs a test for each release and each way to run the program.
func everyPatchExit(t *testing.T, check func(t *testing.T, version int, how string)) {
	t.Helper()
	for _, version := range []int{14, 19, 22} {
		for _, how := range []string{"aot", "mcjit", "orc"} {
			t.Run(fmt.Sprintf("%s %d", how, version), func(t *testing.T) { check(t, version, how) })
		}
	}
}

// A frame that is found from a call that the program wrote into a site carries on to what the program would have returned, and with
// that committed the program goes on as if it had never overwritten anything: it prints the same, calls the function again,
// and comes to its site again.
func TestCommitFromPatchedSites(t *testing.T) {
	everyPatchExit(t, func(t *testing.T, version int, how string) {
		for function, record := range patchedFunctions {
			for _, way := range []string{"pause", "bare", "stub"} {
				if function == "leaf" && way == "bare" {
					continue // TestCommitRefusesWhatThePatchLost
				}
				want := unpatched(t, version, how, function, "2")
				p := livetest.PatchExit(t, version, how, "patchexit.ll", function, way, "2")
				o := known(t, p)
				for n, line := range strings.SplitAfter(want, "\n")[:2] {
					p.AwaitPauseAgain(t, n+1)
					returned := strings.Fields(line)[1]
					// First over a copy: the process does not notice.
					v := look(t, p, true, o)
					f := one(t, v, function)
					require.EqualValues(t, record, f.Record.ID)
					run, err := v.Run(context.Background(), alone(v, f), Limits{})
					require.NoError(t, err)
					require.Equal(t, returned, run.Result.Value)
					v.target.Close()

					s := open(t, p)
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

// What the runtime that is called has had the right to overwrite is lost: then there is no result, and nothing is committed. A runtime that
// saves it, and whose CFI says where, loses nothing (TestCommitFromPatchedSites).
func TestCommitRefusesWhatThePatchLost(t *testing.T) {
	everyPatchExit(t, func(t *testing.T, version int, how string) {
		p := livetest.PatchExit(t, version, how, "patchexit.ll", "leaf", "bare")
		refusedCommit(t, p, known(t, p), innermost, "", "is caller-saved and frame #1 does not keep it")
	})
}

// verifyPatched verifies a program that has overwritten a site before, and whose runtime carries each exit out itself.
func verifyPatched(t *testing.T, version int, how, module, function string, o Options) *VerifySummary {
	t.Helper()
	p := livetest.PatchExit(t, version, how, module, function, "leave", "3", "wait")
	s := open(t, p)
	p.Signal(t, syscall.SIGUSR1) // comes when the process goes on
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	summary, err := Verify(ctx, s, VerifyOptions{Options: o, Warn: func(string) {}}, func(*Verified) error { return nil })
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	require.NoError(t, p.Wait(), "%s", p.Output())
	return summary
}

// A runtime that leaves a function for what it would have returned is not told from one that never did.
func TestVerifyPatchedSites(t *testing.T) {
	everyPatchExit(t, func(t *testing.T, version int, how string) {
		for _, function := range []string{"shadow", "sled", "leaf"} {
			o := moduleOptions(t, version, "patchexit.ll")
			summary := verifyPatched(t, version, how, "patchexit.ll", function, o)
			require.EqualValues(t, 3, summary.Exits, function)
			require.EqualValues(t, 3, summary.Same, function)
		}
	})
}

// The same of a program that overwrites its site while it is verified: an exit is not lost by that, and nothing is told to be different.
func TestVerifyWhilePatching(t *testing.T) {
	t.Setenv("JITDUMPDIR", t.TempDir())
	everyPatchExit(t, func(t *testing.T, version int, how string) {
		for _, function := range []string{"shadow", "sled", "leaf"} {
			command := livetest.PatchExitCommand(t, version, how, "patchexit.ll", function, "leave", "3").Args
			o := moduleOptions(t, version, "patchexit.ll")
			summary, _ := verified(t, command, VerifyOptions{Options: o})
			require.EqualValues(t, 3, summary.Exits, function)
			require.EqualValues(t, 3, summary.Same, function)
		}
	})
}

// Where the map of a site that is overwritten says something else than the module, the interpreter returns something else than the runtime.
func TestVerifyFindsAWrongMapOfAPatchedSite(t *testing.T) {
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "patchexit.ll"))
	require.NoError(t, err)
	const right, wrong = "i64 %i, i64 %acc, i64 %n, i64 %m)", "i64 %acc, i64 %i, i64 %n, i64 %m)"
	require.Equal(t, 3, strings.Count(string(text), right))
	swapped := raw(t, strings.ReplaceAll(string(text), right, wrong))
	everyPatchExit(t, func(t *testing.T, version int, how string) {
		for _, function := range []string{"shadow", "sled", "leaf"} {
			summary := verifyPatched(t, version, how, swapped, function, moduleOptions(t, version, "patchexit.ll"))
			require.EqualValues(t, 3, summary.Exits, function)
			require.EqualValues(t, 3, summary.Different, function)
		}
	})
}

// JITLink of LLVM 19 registers objects in which nothing says where .bss lies: a global in it has no address, rather than 0, and what
// touches it is not comparable.
func TestGlobalWithoutAddress(t *testing.T) {
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "patchexit.ll"))
	require.NoError(t, err)
	module := raw(t, strings.Replace(string(text), "@seen = global i64 1", "@seen = global i64 0", 1))
	p := livetest.PatchExit(t, 19, "orc", module, "sled", "bare")
	v := look(t, p, true, known(t, p))
	_, err = v.Run(context.Background(), alone(v, one(t, v, "sled")), Limits{})
	require.ErrorContains(t, err, "the global @seen has no address in the target")
	v.target.Close()
	summary := verifyPatched(t, 19, "orc", module, "sled", known(t, p))
	require.EqualValues(t, 3, summary.NotComparable)
}
