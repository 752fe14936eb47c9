package session_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
)

// instr returns an instruction of a function of the run's module by its name.
func instr(t *testing.T, r *session.Run, function, name string) *ir.Instr {
	t.Helper()
	i, ok := r.Frames()[0].Func.Module.Func(function).Value(name).(*ir.Instr)
	require.True(t, ok, name)
	return i
}

// TestRunsToInstructions finds, by single steps, the places at which each instruction is the next one. Runs to an instruction, and back to it, must
// reach the same places, in a called function and after a call.
func TestRunsToInstructions(t *testing.T) {
	for _, c := range []struct{ function, name string }{{"sum", "i1"}, {"sum", "sq"}, {"square", "r"}, {"square", "p"}} {
		r := inSum(t, deopt.Limits{})
		at := instr(t, r, c.function, c.name)
		var steps []uint64
		for len(steps) < 8 {
			require.NoError(t, r.Step(t.Context(), 1))
			if r.Frames()[0].At == at {
				steps = append(steps, r.Steps())
			}
		}
		require.NoError(t, r.Restart())
		for _, s := range steps {
			require.NoError(t, r.UntilAny(t.Context(), []*ir.Instr{at}, 0))
			require.Equal(t, s, r.Steps(), c)
		}
		require.NoError(t, r.Step(t.Context(), 1))
		for k := len(steps) - 1; k >= 0; k-- {
			require.NoError(t, r.BackUntil(t.Context(), []*ir.Instr{at}))
			require.Equal(t, steps[k], r.Steps(), c)
		}
		require.NoError(t, r.BackUntil(t.Context(), []*ir.Instr{at}))
		require.Zero(t, r.Steps(), "the exit")
		require.NoError(t, r.UntilAny(t.Context(), nil, 0))
		result, err := r.Ended()
		require.NoError(t, err)
		require.Equal(t, "332833500", result.Value.Format())
		require.NoError(t, r.BackUntil(t.Context(), []*ir.Instr{at}))
		require.Equal(t, at, r.Frames()[0].At, "the last time before the end")
	}
}

// TestRunsOutOrToInstructions requires that a run to the end of a function stops at a given instruction in it, or otherwise after its return.
func TestRunsOutOrToInstructions(t *testing.T) {
	r := inSum(t, deopt.Limits{})
	at := []*ir.Instr{instr(t, r, "square", "p")} // this instruction runs for every hundredth number
	for n := 26; n < 250; n++ {
		require.NoError(t, r.Step(t.Context(), 1))
		require.Len(t, r.Frames(), 2, n)
		require.NoError(t, r.UntilAny(t.Context(), at, 1))
		if n%100 == 0 {
			require.Equal(t, at[0], r.Frames()[0].At, n)
			require.NoError(t, r.UntilAny(t.Context(), at, 1))
		}
		require.Len(t, r.Frames(), 1, n)
		require.NoError(t, r.Step(t.Context(), 4))
	}
}

// TestWatches requires that a watched value is compared after each instruction, and that a cancelled run keeps its place.
func TestWatches(t *testing.T) {
	r := inSum(t, deopt.Limits{})
	value := func(name string) string {
		v, ok := r.Value(0, name)
		require.True(t, ok)
		return v.Value.Format()
	}
	require.NoError(t, r.Watch(t.Context(), func() bool {
		return r.Frames()[0].Func.Name == "sum" && value("acc1") == "6201"
	}))
	require.Equal(t, "6201", value("%acc1"), "5525 and the square of 26")
	require.Equal(t, "26", value("%i"))
	_, ok := r.Value(0, "nothing")
	require.False(t, ok)
	_, ok = r.Value(5, "%i")
	require.False(t, ok)
	was := place(t, r)
	ctx, cancel := context.WithCancel(t.Context())
	n := 0
	require.ErrorIs(t, r.Watch(ctx, func() bool {
		if n++; n == 100 {
			cancel()
		}
		return false
	}), context.Canceled)
	require.Equal(t, was, place(t, r))
	require.ErrorIs(t, r.UntilAny(ctx, []*ir.Instr{instr(t, r, "square", "p")}, 0), context.Canceled)
	require.Equal(t, was, place(t, r))
	require.ErrorIs(t, r.BackUntil(ctx, []*ir.Instr{instr(t, r, "square", "p")}), context.Canceled)
	require.Equal(t, was, place(t, r))
}
