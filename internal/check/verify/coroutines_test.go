package verify

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// coroutineHost links the coroutines of testdata.
func coroutineHost(t *testing.T, version int, level string, flags ...string) (command []string, m *ir.Module) {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("testdata", "coroutines", "work.ll"))
	require.NoError(t, err)
	m, err = ir.ParseFile(source)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "host")
	object := livetest.PICObject(t, version, livetest.IR(t, version, source), level)
	livetest.Make(t, livetest.Tool(t, "gcc"), append(flags, "-w", "-O1", "-no-pie", filepath.Join("testdata", "coroutines", "host.c"), object, "-o", program)...)
	return []string{program}, m
}

// TestVerifyCoroutinesThatHandOver requires that all exits are compared without a difference, although calls of coroutines end in any order, on
// stacks at addresses in any order. With a module that computes another value, an exit must differ.
func TestVerifyCoroutinesThatHandOver(t *testing.T) {
	livetest.Slow(t)
	text, err := os.ReadFile(filepath.Join("testdata", "coroutines", "work.ll"))
	require.NoError(t, err)
	wrong, err := ir.Parse("wrong.ll", []byte(strings.Replace(string(text), "mul i64 %s, 3", "mul i64 %s, 5", 1)))
	require.NoError(t, err)
	for n, order := range []string{"k", "(3-k)"} {
		for m, by := range []string{"-DUCONTEXT", "-DHANDMADE"} {
			for k, fromEntry := range []bool{false, true} {
				if livetest.Out(2, n+m+k) {
					continue
				}
				about := fmt.Sprintf("stacks %s, %s, from the entry: %v", order, by, fromEntry)
				command, m := coroutineHost(t, []int{14, 19, 22}[n+m], "-O2", "-DSTACK(k)="+order, by)
				summary, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}, FromEntry: fromEntry})
				require.Empty(t, summary.Reasons, about)
				require.Equal(t, uint64(3*(3+4+5+6)), summary.Same+summary.Skipped, about)
				for _, v := range list {
					require.Positive(t, v.Calls, about)
				}
				_, list = verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{wrong}}, Skip: 20, Limit: 12})
				require.Equal(t, []string{Same}, outcomes(list)["inner"], about)
				require.Contains(t, outcomes(list)["work"], Different, about)
			}
		}
	}
}

// TestVerifyCoroutineThatIsGivenUp requires that a coroutine that starts on the stack of an abandoned coroutine is not mistaken for that one.
func TestVerifyCoroutineThatIsGivenUp(t *testing.T) {
	for _, by := range []string{"-DUCONTEXT", "-DHANDMADE"} {
		command, m := coroutineHost(t, 19, "-O1", "-DSTACK(k)=k", by, "-DDROP")
		summary, _ := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}})
		require.Zero(t, summary.Different, by)
		require.Equal(t, map[string]uint64{"its frame was left without a return": 1, "the call of @pass was left without a return": 2}, summary.Reasons, by)
		require.Equal(t, uint64(3*(4+5+6)), summary.Same+summary.Skipped, by)
	}
}

// goroutineHost links the coroutines of testdata into a Go program, whose goroutines run them.
func goroutineHost(t *testing.T, version int, level string) (command []string, m *ir.Module) {
	t.Helper()
	source, err := filepath.Abs(filepath.Join("testdata", "coroutines", "work.ll"))
	require.NoError(t, err)
	m, err = ir.ParseFile(source)
	require.NoError(t, err)
	program := filepath.Join(t.TempDir(), "goroutines")
	object := livetest.PICObject(t, version, livetest.IR(t, version, source), level)
	frametest.Command(t, filepath.Join("testdata", "coroutines", "goroutines"), livetest.Tool(t, "env"), "CGO_ENABLED=1", "CC=gcc", livetest.Tool(t, "go"), "build",
		"-buildvcs=false", "-ldflags", `-linkmode=external -extldflags "-no-pie -Wl,-z,notext `+object+`"`, "-o", program, ".")
	return []string{program}, m
}

// TestVerifyCoroutinesOfGo covers goroutines: Go's scheduler switches between their stacks, on one thread, while exits of all of them are pending.
func TestVerifyCoroutinesOfGo(t *testing.T) {
	livetest.Slow(t) // the test links the Go program again
	text, err := os.ReadFile(filepath.Join("testdata", "coroutines", "work.ll"))
	require.NoError(t, err)
	wrong, err := ir.Parse("wrong.ll", []byte(strings.Replace(string(text), "mul i64 %s, 3", "mul i64 %s, 5", 1)))
	require.NoError(t, err)
	for n, version := range livetest.ShareOf([]int{14, 19, 22}, "goroutines") {
		command, m := goroutineHost(t, version, "-O2")
		summary, list := verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{m}}, FromEntry: n%2 == 0})
		about := fmt.Sprintf("LLVM %d", version)
		require.Empty(t, summary.Reasons, about)
		require.Zero(t, summary.Different, about)
		require.Equal(t, uint64(3*(3+4+5+6)), summary.Same+summary.Skipped, about)
		for _, v := range list {
			require.Positive(t, v.Calls, about)
		}
		_, list = verified(t, command, Options{Options: deopt.Options{Modules: []*ir.Module{wrong}}, Skip: 20, Limit: 12})
		require.Equal(t, []string{Same}, outcomes(list)["inner"], about)
		require.Contains(t, outcomes(list)["work"], Different, about)
	}
}
