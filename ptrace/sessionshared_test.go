package ptrace

import (
	"context"
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"
)

// TestSessionSharedCode requires that nothing is written into shared memory, which processes without a tracer may execute: neither a breakpoint, nor
// one at the return of a function that a thread runs alone.
func TestSessionSharedCode(t *testing.T) {
	const shared, back = 0x20000000, 0x20000006
	path := livetest.CProgram(t, "gcc", []string{"-O1", "-no-pie", "-Wall", "-Werror"}, "testdata/sharedcode.c")
	called := symbols(t, path)["called"]
	ctx, cancel := context.WithTimeout(t.Context(), livetest.Patience)
	defer cancel()
	s, output := launch(t, path)
	require.NoError(t, s.Insert(Breakpoint{Addr: called, Hold: true}))
	e, err := s.Next(ctx)
	require.NoError(t, err)
	require.Equal(t, called, e.At)
	hits := 0
	err = s.Insert(Breakpoint{Addr: shared, Hold: true}, Breakpoint{Addr: called, Hold: true})
	if livetest.HeldPlaces(t) > 0 {
		require.NoError(t, err)
		hits = 2
	} else {
		require.EqualError(t, err, fmt.Sprintf("process %d: cannot set a breakpoint: a breakpoint at 0x20000000: the code is in shared memory (MAP_SHARED, 20000000-20001000 /dev/zero (deleted)): "+
			"a breakpoint there would end other processes that run it, and this machine has no debug register that stops a thread; "+
			"read the process with reframe frames, which writes nothing, or start it with the code in private memory", s.PID()))
	}
	sp, err := e.Thread.Registers.Uint(arch.SP)
	require.NoError(t, err)
	run, err := s.RunSingleThread(ctx, e.Thread.ID, SingleThreadOptions{Returns: []Return{{Addr: back, CFA: machine.Addr(sp + 8)}}, Steps: 1 << 20, Time: livetest.Patience})
	require.NoError(t, err)
	require.Equal(t, [2]any{"", 0}, [2]any{run.Stopped, run.Return})
	require.Equal(t, machine.Addr(back), mustPC(t, run.Thread))
	for e.Kind != Ended {
		e, err = s.Next(ctx)
		require.NoError(t, err)
		if e.At == shared {
			hits--
		}
	}
	require.Zero(t, hits)
	require.NoError(t, s.Detach())
	require.Equal(t, "child exited 0\n", output())
}
