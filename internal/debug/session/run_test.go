package session_test

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// inSum returns a run at the exit of deoptimize.ll, where @sum resumes. Its loop calls @square, which prints each hundredth number.
func inSum(t *testing.T, l deopt.Limits) *session.Run {
	t.Helper()
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	before, sum, found := strings.Cut(string(text), "define i64 @sum(")
	require.True(t, found)
	module := before + `define i64 @square(i64 %x) noinline {
entry:
  %s = mul i64 %x, %x
  %r = urem i64 %x, 100
  %h = icmp eq i64 %r, 0
  br i1 %h, label %print, label %out
print:
  %p = call i32 @puts(ptr @msg)
  br label %out
out:
  ret i64 %s
}
define i64 @sum(` + strings.Replace(sum, "%sq = mul i64 %i, %i", "%sq = call i64 @square(i64 %i)", 1)
	p := livetest.Lli(t, 19, livetest.Raw(t, module), "mcjit")
	o := frametest.Known(t, p)
	described, err := layout.Read(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{described}
	v := frametest.Look(t, p, true, o)
	r, err := session.Start(frametest.StackOf(v, frametest.One(t, v, "sum_opt")), l)
	require.NoError(t, err)
	return r
}

// place describes the place of a run, with the loop's values.
func place(t *testing.T, r *session.Run) string {
	t.Helper()
	frames := r.Frames()
	if len(frames) == 0 {
		return "ended"
	}
	text := fmt.Sprintf("%d: ", r.Steps())
	for _, f := range frames {
		text += fmt.Sprintf("@%s %s line %d, ", f.Func.Name, f.At.Block.Ref(), f.At.Line)
	}
	values, err := r.Values(len(frames) - 1)
	require.NoError(t, err)
	for _, v := range values {
		if v.Name == "%i" || v.Name == "%acc" {
			text += v.Name + " = " + v.Value.Format() + " "
		}
	}
	return text
}

// perTurn is the number of instructions of an iteration: five and two phis of @sum, and five of @square if it prints nothing.
const perTurn = 5 + 2 + 5

// TestStepsThroughALoop requires the place and the values that the test computes for a number of iterations. The guard has failed at 26, with the sum
// of the squares of smaller numbers.
func TestStepsThroughALoop(t *testing.T) {
	r := inSum(t, deopt.Limits{})
	line := r.Frames()[0].At.Line
	i, acc := 26, 5525
	for turn := range 40 {
		require.Equal(t, fmt.Sprintf("%d: @sum %%loop line %d, %%i = %d %%acc = %d ", perTurn*turn, line, i, acc), place(t, r))
		require.NoError(t, r.Step(t.Context(), 1))
		require.Len(t, r.Frames(), 2, "in @square")
		require.NoError(t, r.Finish(t.Context()))
		require.Len(t, r.Frames(), 1, "behind it")
		require.NoError(t, r.Next(t.Context(), 4)) // the additions, the comparison and the branch
		acc, i = acc+i*i, i+1
	}
	require.NoError(t, r.Restart())
	for turn := range 40 {
		require.NoError(t, r.Until(t.Context(), r.Frames()[0].At.Block))
		require.EqualValues(t, perTurn*(turn+1), r.Steps())
	}
	require.Empty(t, r.Output())
	require.NoError(t, r.Continue(t.Context()))
	result, err := r.Ended()
	require.NoError(t, err)
	require.Equal(t, "332833500", result.Value.Format())
	require.Equal(t, strings.Repeat("ready\n", 9), r.Output(), "of 100, 200 and so on")
	require.ErrorContains(t, r.Step(t.Context(), 1), "the run has ended")
}

// TestGoesBack requires that a run that goes back has the same places and values as before. It goes back after single steps, after jumps of all
// kinds, and from its end.
func TestGoesBack(t *testing.T) {
	r := inSum(t, deopt.Limits{})
	stood := []string{place(t, r)}
	const steps = 6000 // more than chunk
	for range steps {
		require.NoError(t, r.Step(t.Context(), 1))
		stood = append(stood, place(t, r))
	}
	at := steps
	for _, n := range []int{1, 1, 2, 1, 50, 1, 3000, 1, 7} {
		require.NoError(t, r.Back(t.Context(), uint64(n)))
		at -= n
		require.Equal(t, stood[at], place(t, r), "back by %d", n)
	}
	require.NoError(t, r.Step(t.Context(), 3))
	require.Equal(t, stood[at+3], place(t, r))
	require.NoError(t, r.Back(t.Context(), 1e9))
	require.Equal(t, stood[0], place(t, r))
	require.NoError(t, r.Back(t.Context(), 1))
	require.Equal(t, stood[0], place(t, r), "before the exit there is nothing")

	for _, jump := range []func() error{
		func() error { return r.Next(t.Context(), 2500) },
		func() error { return r.Until(t.Context(), r.Frames()[0].At.Block) },
		func() error { return r.Step(t.Context(), 1) },
	} {
		require.NoError(t, jump())
	}
	here := 0
	for stood[here] != place(t, r) {
		here++
	}
	require.Greater(t, here, 4000)
	for _, n := range []int{1, 5, 4000, 1} {
		require.NoError(t, r.Back(t.Context(), uint64(n)))
		here -= n
		require.Equal(t, stood[here], place(t, r), "back by %d", n)
	}

	require.NoError(t, r.Continue(t.Context()))
	end := r.Steps()
	require.NoError(t, r.Back(t.Context(), 1))
	require.Equal(t, ir.OpRet, r.Frames()[0].At.Op)
	require.Equal(t, end-1, r.Steps())
	require.NoError(t, r.Step(t.Context(), 1))
	result, err := r.Ended()
	require.NoError(t, err)
	require.Equal(t, "332833500", result.Value.Format())
}

// TestFailsAndIsGivenUp requires that a run that fails is stopped at the failed instruction, and can go back from it. A cancelled run must keep its
// place.
func TestFailsAndIsGivenUp(t *testing.T) {
	r := inSum(t, deopt.Limits{Steps: 500})
	require.NoError(t, r.Continue(t.Context()))
	_, err := r.Ended()
	require.ErrorContains(t, err, "not finished after 500 steps")
	failed := r.Steps()
	require.NoError(t, r.Back(t.Context(), 2))
	require.Equal(t, failed-2, r.Steps())
	_, err = r.Ended()
	require.NoError(t, err)
	was := place(t, r)

	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	require.ErrorIs(t, r.Continue(ctx), context.Canceled)
	require.Equal(t, was, place(t, r))
	require.ErrorIs(t, r.Back(ctx, 100), context.Canceled)
	require.Equal(t, was, place(t, r), "nor does it go back")
	require.NoError(t, r.Step(t.Context(), 1))
	require.Equal(t, failed-1, r.Steps())
}

// TestAMillionSteps requires that a million single steps take bounded memory, and that the run can go back to each of them. An iteration is five
// steps.
func TestAMillionSteps(t *testing.T) {
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	p := livetest.Lli(t, 19, livetest.Raw(t, strings.ReplaceAll(string(text), "i64 1000", "i64 1000000")), "mcjit")
	o := frametest.Known(t, p)
	described, err := layout.Read(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{described}
	v := frametest.Look(t, p, true, o)
	r, err := session.Start(frametest.StackOf(v, frametest.One(t, v, "sum_opt")), deopt.Limits{})
	require.NoError(t, err)
	i := func() string {
		values, err := r.Values(0)
		require.NoError(t, err)
		for _, v := range values {
			if v.Name == "%i" {
				return v.Value.Format()
			}
		}
		return ""
	}
	held := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapAlloc)
	}
	require.NoError(t, r.Step(t.Context(), 1000))
	before := held()
	for n := 1000; n < 1_000_000; n += 1000 {
		require.NoError(t, r.Step(t.Context(), 1000))
	}
	require.Less(t, held()-before, int64(8<<20), "bytes")
	require.Equal(t, "200026", i())
	require.EqualValues(t, 7*200_000, r.Steps())
	for _, back := range []struct {
		by   uint64
		want string
	}{{1, "200025"}, {499_999, "100026"}, {5, "100025"}, {499_990, "27"}, {5, "26"}, {5, "26"}} {
		require.NoError(t, r.Back(t.Context(), back.by))
		require.Equal(t, back.want, i(), "back by %d", back.by)
	}
}
