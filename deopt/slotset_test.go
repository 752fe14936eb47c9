package deopt_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/test/frametest"
)

// standing runs a program under obj_host.c up to one of its exits.
func standing(t *testing.T, program string, o trace.RunToOptions) *trace.Moment {
	t.Helper()
	s, known := frametest.Launched19(t, program)
	o.Modules, o.Warn = known.Modules, func(string) {}
	at, err := trace.RunTo(t.Context(), s, o)
	require.NoError(t, err)
	return at
}

func TestSetSlot(t *testing.T) {
	at := standing(t, "state.ll", trace.RunToOptions{ExitFilter: trace.ExitFilter{Records: []uint64{51}}, Hit: 3})
	v, f := at.View, at.Frame
	for _, c := range []struct{ slot, text, value, hex string }{
		{"%x", "-2", "-2", "0xfffffffffffffffe"},
		{"%x", "0x10", "16", "0x10"},
		{"%odd", "true", "true", "0x1"},
		{"%odd", "0", "false", "0x0"},
		{"%b", "-128", "-128", "0x80"},
		{"%b", "255", "-1", "0xff"},
		{"%h", "40000", "-25536", "0x9c40"},
		{"%w", "0xffffffff", "-1", "0xffffffff"},
		{"%f", "1.5", "1.5", "0x3fc00000"},
		{"%f", "0x3fc00000", "1.5", "0x3fc00000"},
		{"%e", "-0", "-0.0", "0x8000000000000000"},
		{"%e", "0x1p-1074", "5e-324", "0x1"},
		{"%heap", "null", "0x0", "0x0"},
		{"%heap", "0x1000", "0x1000", "0x1000"},
		{"%object", "0x2000", "0x2000", "0x2000"}, // twice in the record
	} {
		changed, g, err := v.Set(f, c.slot, c.text)
		require.NoError(t, err, c)
		s := frametest.Slot(t, g, c.slot)
		require.Equal(t, []any{frame.OK, c.value, frame.Hex(c.hex), (*frame.Location)(nil)}, []any{s.Status, s.Value, s.Hex, s.Location}, c)
		require.Same(t, g, changed.Threads[0].Frames[0])
		require.Equal(t, v.Threads[0].Frames[1:], changed.Threads[0].Frames[1:])
		require.NotEqual(t, g.Notes, f.Notes)
	}
	require.Same(t, f, v.Threads[0].Frames[0])
	require.Equal(t, "6", frametest.Slot(t, f, "%x").Value)
	for _, c := range []struct{ slot, text, want string }{
		{"%x", "", `%x of frame #0, mixed: "" is not a value of type i64`},
		{"%x", "18446744073709551616", `%x of frame #0, mixed: "18446744073709551616" is not a value of type i64`},
		{"%b", "256", `%b of frame #0, mixed: "256" is not a value of type i8`},
		{"%b", "1.5", `%b of frame #0, mixed: "1.5" is not a value of type i8`},
		{"%v", "1", "%v of frame #0, mixed: a value of type <4 x i32> cannot be given: only integers, pointers and floats are supported"},
		{"%none", "1", "frame #0, mixed has no slot %none"},
		{"#15", "1", "frame #0, mixed has no slot #15"},
	} {
		_, _, err := v.Set(f, c.slot, c.text)
		require.EqualError(t, err, c.want)
	}
	_, _, err := v.Set(v.Threads[0].Frames[1], "%n", "1")
	require.ErrorContains(t, err, "frame #1, entry has no stack map record")
	_, g, err := v.Set(f, "%x", "1")
	require.NoError(t, err)
	_, _, err = v.Set(g, "%x", "1")
	require.EqualError(t, err, "frame #0, mixed belongs to another view")
}

// TestSetAndRun requires that the interpreter resumes with the values that were set. The expected results of the last iteration of tick.ll were
// computed by hand.
func TestSetAndRun(t *testing.T) {
	at := standing(t, "tick.ll", trace.RunToOptions{ExitFilter: trace.ExitFilter{Records: []uint64{1}}})
	v, f := at.View, at.Frame
	for _, c := range []struct{ slot, text string }{{"%i", "999"}, {"%acc", "5"}, {"%x", "7"}, {"%y", "9"}} {
		var err error
		v, f, err = v.Set(f, c.slot, c.text)
		require.NoError(t, err)
	}
	stack, err := v.Pick(deopt.Choice{Frame: 0})
	require.NoError(t, err)
	out, err := v.Run(context.Background(), stack, deopt.Limits{})
	require.NoError(t, err)
	// 5 * 31 + 7 is 162, (9 + 999) ^ 162 is 850, and (162 + 7) ^ 850 is 1019.
	require.Equal(t, &frame.Result{Type: "i64", Value: "1019"}, out.Result)
	require.Equal(t, "0", frametest.Slot(t, at.Frame, "%i").Value)
}
