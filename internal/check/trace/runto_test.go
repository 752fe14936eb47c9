package trace_test

import (
	"context"
	"errors"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
)

// standing starts a program of obj_host.c and runs it to one of its exits.
func standing(t *testing.T, program string, o trace.RunToOptions) (*ptrace.Session, *trace.Moment) {
	t.Helper()
	s, known := frametest.Launched19(t, program)
	o.Modules, o.Warn = known.Modules, func(string) {}
	at, err := trace.RunTo(t.Context(), s, o)
	require.NoError(t, err)
	return s, at
}

// TestRunTo requires that a process runs from one exit to another and to its end as if it were not traced.
func TestRunTo(t *testing.T) {
	s, at := standing(t, "tick.ll", trace.RunToOptions{ExitFilter: trace.ExitFilter{Records: []uint64{1}}})
	o := trace.RunToOptions{Options: deopt.Options{}, ExitFilter: trace.ExitFilter{Function: loose("^tick$")}, Warn: func(string) {}}
	require.Equal(t, "0", frametest.Slot(t, at.Frame, "%i").Value)
	require.Same(t, at.Frame, at.View.Threads[0].Frames[0])
	require.Len(t, at.View.Threads, 2) // the first one waits for the other
	ctx := context.Background()
	for _, c := range []struct {
		hit  uint64
		want string
	}{{0, "0x1"}, {1, "0x2"}, {10, "0xc"}, {987, "0x3e7"}, {1, "0x0"}, {2500, "0x1f4"}} { // 12+987 is 999; a round later 2500 more
		o.Hit = c.hit
		at, err := trace.RunTo(ctx, s, o)
		require.NoError(t, err)
		require.Equal(t, c.want, string(at.Frame.Slots[0].Hex), "hit %d", c.hit)
		target, err := s.Target()
		require.NoError(t, err)
		code := make([]byte, 1)
		require.NoError(t, target.ReadMemory(code, at.Frame.Address()))
		require.NotEqual(t, byte(0xcc), code[0])
	}
	hits, err := s.Hits()
	require.NoError(t, err)
	require.Len(t, hits, 1)
	o.Hit = 500
	_, err = trace.RunTo(ctx, s, o)
	early := (*trace.NotReachedError)(nil)
	require.True(t, errors.As(err, &early), "%v", err)
	require.Equal(t, trace.NotReachedError{End: trace.End{Kind: trace.EndExited}, Hits: 499, Want: 500}, *early)
	_, err = trace.RunTo(ctx, s, o)
	require.ErrorIs(t, err, ptrace.ErrProcessExited)
}

// TestRunToGivesUp requires that a process is unchanged after a timeout.
func TestRunToGivesUp(t *testing.T) {
	s, at := standing(t, "tick.ll", trace.RunToOptions{ExitFilter: trace.ExitFilter{Records: []uint64{1}}, Hit: 7})
	require.Equal(t, "6", frametest.Slot(t, at.Frame, "%i").Value)
	ctx, cancel := context.WithCancelCause(context.Background())
	cause := errors.New("enough")
	cancel(cause)
	_, err := trace.RunTo(ctx, s, trace.RunToOptions{ExitFilter: trace.ExitFilter{Records: []uint64{99}}, Warn: func(string) {}})
	require.ErrorIs(t, err, cause)
}

// TestRunToSymbol requires that the exit at a symbol is the frame that calls it, with values that the callee later overwrites.
func TestRunToSymbol(t *testing.T) {
	_, at := standing(t, "guards.ll", trace.RunToOptions{At: []*names.Pattern{loose("call_optimized")}})
	require.Nil(t, at.Frame.Record)
	require.Equal(t, "entry", at.Frame.Function)
	require.Equal(t, "call_optimized", at.View.Threads[0].Frames[0].Function)
}

// TestRunToBehindFault requires that a fault at the breakpoint's own instruction, whose handler leaves the function, does not hide the next exit:
// @load of null.ll is called with 0, 1, 2, 3, and faults for 0 and 3.
func TestRunToBehindFault(t *testing.T) {
	for hit, want := range []string{"0", "1", "2", "3"} {
		_, at := standing(t, "null.ll", trace.RunToOptions{ExitFilter: trace.ExitFilter{Records: []uint64{81}}, Hit: uint64(hit) + 1})
		require.Equal(t, want, frametest.Slot(t, at.Frame, "%n").Value)
	}
}

// loose makes a pattern of a valid text.
func loose(text string) *names.Pattern {
	p, err := names.Loose(text)
	if err != nil {
		panic(err)
	}
	return p
}
