package verify

import (
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/test/frametest"
)

// TestVerifyTwoTiers requires that a function that is compiled twice is verified with the module of the compilation that runs, at exits and from its
// entry.
func TestVerifyTwoTiers(t *testing.T) {
	for n, version := range []int{14, 19, 22} {
		path, modules := frametest.Tiers(t, version)
		if n == 1 {
			slices.Reverse(modules)
		}
		for _, fromEntry := range []bool{false, true} {
			summary, list := verified(t, []string{path}, Options{Options: deopt.Options{Modules: modules}, FromEntry: fromEntry})
			require.Equal(t, map[string][]string{"work": {Same}}, outcomes(list), "LLVM %d", version)
			require.Equal(t, uint64(2), summary.Same, "LLVM %d", version)
			require.Empty(t, summary.Reasons, "LLVM %d", version)
			for _, x := range list {
				require.Equal(t, fromEntry, x.Baseline != nil, "LLVM %d", version)
			}
		}
	}
}
