package verify

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// recursive compiles testdata/runaway.ll with another number at which the recursion ends, and returns the unchanged module.
func recursive(t *testing.T, end string) (program string, m *ir.Module) {
	t.Helper()
	source := filepath.Join("testdata", "runaway.ll")
	text, err := os.ReadFile(source)
	require.NoError(t, err)
	m, err = ir.Parse("runaway.ll", text)
	require.NoError(t, err)
	module := livetest.Module(t, strings.ReplaceAll(string(text), "icmp eq i64 %n, 0", "icmp eq i64 %n, "+end))
	program = filepath.Join(t.TempDir(), "runaway")
	object := livetest.PICObject(t, 19, livetest.IR(t, 19, module), "-O2")
	livetest.Make(t, livetest.Tool(t, "gcc"), "-w", "-O1", "-no-pie", filepath.Join("testdata", "runaway.c"), object, "-o", program)
	return program, m
}

// TestVerifyTellsRunawayFromDeepRecursion requires the right outcome for a recursion that passes a site at each level, long before the time limit.
// The outcome is a difference if only native code recurses without end, not comparable if both sides do, and the same if a deep recursion ends.
func TestVerifyTellsRunawayFromDeepRecursion(t *testing.T) {
	livetest.Slow(t)
	const never, away, limit = "12345678", "its calls nest without end: more than ", "the interpreter does not return: "
	entries := func(function string) Options {
		return Options{Steps: 20_000, EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, function)}, Baseline: function, Limit: 10}
	}
	for _, c := range []struct {
		about, end      string
		args            []string
		options         Options
		same, different int
		failed, reason  string
	}{
		{"native code recurses without end, from exits", never, []string{"levels", "3"}, Options{Limit: 4}, 0, 4, away + "68 return to ", ""},
		{"native code recurses without end, from entries", never, []string{"levels", "3"}, entries("levels"), 0, 4, away + "68 return to ", limit},
		{"two functions call each other without end", never, []string{"ping", "3"}, entries("ping"), 0, 4, away + "72 return to ", limit},
		{"from entries and exits", never, []string{"ping", "3"}, Options{Limit: 4, FromEntry: true}, 0, 4, away, ""},
		{"both recurse without end, from exits", "0", []string{"levels", "-1"}, Options{Limit: 4}, 0, 0, "", limit},
		{"both recurse without end, from entries", "0", []string{"ping", "-1"}, entries("ping"), 0, 0, "", limit},
		{"a deep recursion that ends", "0", []string{"levels", "10000"}, entries("levels"), 10, 0, "", ""},
		{"a deep recursion of two functions that ends", "0", []string{"ping", "600"}, entries("ping"), 10, 0, "", ""},
	} {
		program, m := recursive(t, c.end)
		c.options.Modules = []*ir.Module{m}
		summary, list := verified(t, append([]string{program}, c.args...), c.options)
		require.Len(t, list, int(c.options.Limit), c.about)
		require.Equal(t, uint64(c.same), summary.Same, "%s: %v", c.about, summary.Reasons)
		require.Equal(t, uint64(c.different), summary.Different, "%s: %v", c.about, summary.Reasons)
		failed := ""
		for _, out := range list { // the outermost activation comes last
			if out.Status == Different {
				failed = out.Native.Failed
			}
			if out.Status == NotComparable { // once the argument has passed zero, the interpreter also recurses without end
				require.True(t, strings.HasPrefix(out.Why, c.reason), "%s: %s", c.about, out.Why)
			}
		}
		require.True(t, strings.HasPrefix(failed, c.failed), "%s: %s", c.about, failed)
	}
}
