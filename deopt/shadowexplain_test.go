package deopt_test

import (
	"regexp"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/report/explain"
	"example.com/reframe/test/frametest"
)

// TestExplainShadow requires that explain shows the written code, the overwritten code, and the rules by which the frame was unwound.
func TestExplainShadow(t *testing.T) {
	p, cases := shadowsOf(t, 19, "-no-pie")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	why := map[string]string{}
	for _, c := range cases[2:] {
		e, err := explain.Explain(v, explain.Question{Address: &c.Returns, Frame: -1})
		require.NoError(t, err)
		place := e.Places[0]
		if c.Match && c.Name != "epilogue_ran" {
			require.True(t, place.Records[0].Matched, c.Name)
			require.Equal(t, c.Record, place.Records[0].ID)
			why[c.Name] = place.Records[0].Why
		}
		if c.Name == "epilogue" { // its FDE has a row for the record, but none for the pc
			last := place.Stack[len(place.Stack)-1]
			require.Equal(t, "rbp+16", last.CFARule)
		}
	}
	library := v.Target().ModuleAt(cases[0].At).Path
	require.Regexp(t, `^its shadow of 32 bytes was overwritten at sled_register\+0x1c, and a call in it ends at the pc: 49 bb (.. ){8}41 ff d3 in the process, (.. ){12}.. in `+
		regexp.QuoteMeta(library)+`, compared while it was stopped; the frame was unwound by the rules of sled_register\+0x1c$`, why["sled_register"])
	require.Regexp(t, `^its shadow of 32 bytes was overwritten at sled_jump\+0x1c, and a jump in it leads to 0x\w+, and from there a call ends at the pc: e9 .. .. .. .. in the process, (.. ){4}.. in `, why["sled_jump"])
	require.Regexp(t, `^its region of 24 bytes was overwritten at region_jump\+0x\w+, and a jump in it leads to`, why["region_jump"])
	require.Equal(t, "the record of a statepoint is at the end of its region, and a call in the region ends at the pc, 19 bytes before: the call is still running", why["region_start"])
}
