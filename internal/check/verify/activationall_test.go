package verify

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestVerifyFromEntryFindsNothing compares each exit of each program with a run of its own IR from the entry, and each activation of a function. It
// requires no difference.
func TestVerifyFromEntryFindsNothing(t *testing.T) {
	livetest.Slow(t)
	programs := slices.Sorted(maps.Keys(verifiedPrograms))
	programs = append(programs, "crossing.ll", "baseline.ll")
	same, states, reasons := uint64(0), 0, map[string]uint64{}
	for _, program := range programs {
		for _, version := range []int{14, 19, 22} {
			for _, level := range livetest.ShareOf([]string{"-O0", "-O1", "-O2", "-O3"}, "nothing from the entry, "+program, version) {
				if !livetest.Whole() && version != 14+5*(len(program)%2) { // run each release with about half of the programs
					continue
				}
				object := livetest.PICObject(t, version, program, level)
				command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 4})
				o := Options{Options: frametest.ModuleOptions(t, version, program), FromEntry: true, Limit: uint64(livetest.Times(12, 60))}
				summary, all := verified(t, command, o)
				for _, v := range all {
					require.NotEqual(t, Different, v.Status, "%s, LLVM %d %s: exit %d %s: %+v %+v", program, version, level, v.Number, v.Entry, v.Report(), v.Baseline)
					if v.Baseline != nil && v.Baseline.State.same() {
						states++
					} else if v.Baseline != nil {
						reasons[fmt.Sprintf("%s: %s", program, v.Baseline.State.Why)]++
					}
				}
				same += summary.Same
			}
		}
	}
	t.Logf("%d the same, %d states of the baseline's, %v", same, states, reasons)
	require.Positive(t, states)
}
