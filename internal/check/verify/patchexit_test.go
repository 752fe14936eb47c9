package verify

import (
	"context"
	"os"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// verifyPatched verifies a program that has already overwritten a site, and whose runtime performs each exit itself.
func verifyPatched(t *testing.T, version int, how, module, function string, o deopt.Options) *Summary {
	t.Helper()
	p := livetest.PatchExit(t, version, how, module, function, "leave", "3", "wait")
	s := frametest.Open(t, p)
	p.Signal(t, syscall.SIGUSR1) // delivered when the process resumes
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	summary, err := Run(ctx, s, Options{Options: o, Warn: func(string) {}}, func(*Verified) error { return nil })
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	require.NoError(t, p.Wait(), "%s", p.Output())
	return summary
}

// TestVerifyPatchedSites requires no difference if the runtime leaves a function with the result that the function would have returned.
func TestVerifyPatchedSites(t *testing.T) {
	livetest.Slow(t)
	livetest.EveryPatchExit(t, func(t *testing.T, version int, how string) {
		for _, function := range []string{"shadow", "sled", "leaf"} {
			o := frametest.ModuleOptions(t, version, "patchexit.ll")
			summary := verifyPatched(t, version, how, "patchexit.ll", function, o)
			require.EqualValues(t, 3, summary.Exits, function)
			require.EqualValues(t, 3, summary.Same, function)
		}
	})
}

// TestVerifyWhilePatching requires that a program that overwrites its site while it is verified has no missing exit and no difference.
func TestVerifyWhilePatching(t *testing.T) {
	livetest.Slow(t)
	if !livetest.DebugRegisters(t) {
		return // the program overwrites the breakpoint, and a warning reports that exits may be missing
	}
	t.Setenv("JITDUMPDIR", t.TempDir())
	livetest.EveryPatchExit(t, func(t *testing.T, version int, how string) {
		for _, function := range []string{"shadow", "sled", "leaf"} {
			command := livetest.PatchExitCommand(t, version, how, "patchexit.ll", function, "leave", "3").Args
			o := frametest.ModuleOptions(t, version, "patchexit.ll")
			summary, _ := verified(t, command, Options{Options: o})
			require.EqualValues(t, 3, summary.Exits, function)
			require.EqualValues(t, 3, summary.Same, function)
		}
	})
}

// TestVerifyFindsAWrongMapOfAPatchedSite requires that the interpreter returns another result than the runtime if the map of an overwritten site
// differs from the module.
func TestVerifyFindsAWrongMapOfAPatchedSite(t *testing.T) {
	livetest.Slow(t)
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "patchexit.ll"))
	require.NoError(t, err)
	const right, wrong = "i64 %i, i64 %acc, i64 %n, i64 %m)", "i64 %acc, i64 %i, i64 %n, i64 %m)"
	require.Equal(t, 3, strings.Count(string(text), right))
	swapped := livetest.Raw(t, strings.ReplaceAll(string(text), right, wrong))
	livetest.EveryPatchExit(t, func(t *testing.T, version int, how string) {
		for _, function := range []string{"shadow", "sled", "leaf"} {
			summary := verifyPatched(t, version, how, swapped, function, frametest.ModuleOptions(t, version, "patchexit.ll"))
			require.EqualValues(t, 3, summary.Exits, function)
			require.EqualValues(t, 3, summary.Different, function)
		}
	})
}

// TestGlobalWithoutAddress uses objects of LLVM 19's JITLink, which are registered without the address of .bss: only the code contains the address of
// a global in .bss.
func TestGlobalWithoutAddress(t *testing.T) {
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "patchexit.ll"))
	require.NoError(t, err)
	module := livetest.Raw(t, strings.Replace(string(text), "@seen = global i64 1", "@seen = global i64 0", 1))
	p := livetest.PatchExit(t, 19, "orc", module, "sled", "bare")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	_, err = v.Run(context.Background(), frametest.StackOf(v, frametest.One(t, v, "sled")), deopt.Limits{})
	require.NoError(t, err)
	v.Target().Close()
	summary := verifyPatched(t, 19, "orc", module, "sled", frametest.Known(t, p))
	require.EqualValues(t, 3, summary.Same)
}
