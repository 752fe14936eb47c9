package deopt_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/test/frametest"
)

// TestResumeTwoTiers has frames of two compilations of one function on the stack, whose records have the same ids and numbers of values. It requires
// that each frame has the names of its own module, and resumes with the right result.
func TestResumeTwoTiers(t *testing.T) {
	for _, version := range []int{14, 19, 22} {
		path, modules := frametest.Tiers(t, version)
		v := frametest.Look(t, quiet(t, 0, path, "wait"), false, deopt.Options{Modules: modules})
		var shown [][]string
		for _, f := range v.Threads[0].Frames {
			if f.Record == nil {
				continue
			}
			shown = append(shown, brief(f))
			out, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
			require.NoError(t, err, "LLVM %d", version)
			require.Equal(t, "998", out.Result.Value, "LLVM %d", version)
		}
		require.Equal(t, [][]string{{"%y i64 103", "%x i64 1101"}, {"%x i64 1100", "%y i64 102"}}, shown, "LLVM %d", version)
	}
}
