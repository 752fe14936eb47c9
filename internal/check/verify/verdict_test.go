package verify

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
)

// TestVerdicts requires that the verdict on a state that differs names only observed differences: memory only if memory differs.
func TestVerdicts(t *testing.T) {
	for want, s := range map[string]*State{
		"the optimized code, the bundle or the layout: the baseline never reaches the place where the exit resumes":                         {},
		"the optimized code, the bundle or the layout: the baseline has the state of the exit before that of an earlier exit, not after it": {Arrivals: 5, Nearest: 1},
		"the optimized code: memory at the exit differs from the baseline's":                                                                {Arrivals: 5, Nearest: 1, Words: 1},
		"the bundle or the layout: the baseline's %i is in %acc":                                                                            {Arrivals: 5, Nearest: 1, Slots: []SlotDifference{{Slot: "%i", In: "%acc", Of: "slot"}}},
		"the optimized code or the bundle: no recorded or computed value equals the baseline's %i":                                          {Arrivals: 5, Nearest: 1, Slots: []SlotDifference{{Slot: "%i"}}},
	} {
		b := &Baseline{State: s, Status: Same}
		out := &Verified{Status: Same, Exit: &trace.Exited{Frame: &deopt.Frame{Frame: frame.Frame{Record: &frame.Record{ID: 95}}}}, Baseline: b}
		require.Equal(t, want, b.wrongPart(out, &activation{function: "f"}))
	}
}

// TestJudge requires that an exit gets its verdict when its comparison is complete, from the facts about its activation that are known at that time.
func TestJudge(t *testing.T) {
	made := func(status string) (*activation, *Verified) {
		e := &activation{function: "f", baseline: &prediction{out: &Verified{Status: Different}}}
		return e, &Verified{Status: status, Exit: &trace.Exited{Frame: &deopt.Frame{Frame: frame.Frame{Record: &frame.Record{ID: 95}}}}, Baseline: &Baseline{State: &State{Arrivals: 1, Arrival: 1}}, entry: e}
	}
	e, out := made(Same)
	e.setVerdict(out) // the activation is in progress
	require.Equal(t, []string{Same, "", ""}, []string{out.Status, out.Baseline.Status, out.Baseline.Wrong})
	e, out = made(Same)
	e.ended = true
	e.setVerdict(out)
	require.Equal(t, []string{Different, Different}, []string{out.Status, out.Baseline.Status})
	require.NotEmpty(t, out.Baseline.Wrong)
}
