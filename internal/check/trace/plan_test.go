package trace

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestSharedCode requires that a plan for code in shared memory shows that breakpoints would be refused, or held by debug registers; and that a trace
// refuses them and the program continues.
func TestSharedCode(t *testing.T) {
	p, begin, o := frametest.Hosted(t, 19, "tick.ll", "-O2", livetest.ObjectHostOptions{Threads: 1, Rounds: 1, Shared: true})
	target, err := ptrace.Survey(p.PID, ptrace.Options{})
	require.NoError(t, err)
	defer target.Close()
	options := Options{Options: o, Warn: func(text string) { t.Error(text) }}
	list, err := Plan(target, options)
	var shared []Planned
	for _, x := range list {
		if x.Shared {
			shared = append(shared, x)
		}
	}
	require.Len(t, shared, 1)
	require.Equal(t, "tick", shared[0].Exits[0].Function)
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	s, open := ptrace.Open(ctx, p.PID)
	require.NoError(t, open)
	begin()
	exits := 0
	_, failed := Run(ctx, s, options, func(*Exited) error { exits++; return nil })
	require.NoError(t, s.Detach())
	if livetest.HeldPlaces(t) > 0 {
		require.NoError(t, err)
		require.True(t, shared[0].Hardware)
		require.NoError(t, failed)
		require.Equal(t, 1000, exits)
	} else {
		require.EqualError(t, err, "1 place is in shared memory (MAP_SHARED) and would be refused: a breakpoint there would end other processes that run the same code, and debug registers can hold 0 breakpoints here")
		require.False(t, shared[0].Hardware)
		require.ErrorContains(t, failed, fmt.Sprintf("process %d: cannot set a breakpoint: a breakpoint at %s: the code is in shared memory (MAP_SHARED, ", p.PID, shared[0].Address))
		require.Zero(t, exits)
	}
	sum, _ := livetest.CVersion(t, "tick.ll", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	require.Contains(t, ended(t, p), sum)
}
