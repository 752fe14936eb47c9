package ptrace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSessionThreadsAreNeverInsideAnInstruction requires that a thread that has hit a breakpoint is moved back before it as soon as the session can
// see the thread. Before this, a tracer could be killed while a thread was still after the int3, and the thread continued in the middle of an
// instruction: 4 of 320 programs printed a wrong result.
func TestSessionThreadsAreNeverInsideAnInstruction(t *testing.T) {
	path, site, _ := sitesProgram(t, stepped)
	const length = 3 // size of bswap %rdi: 48 0f cf
	s, output := launch(t, path, "threads", "50")
	require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: true}))
	others := 0
	for {
		e, err := s.Next(context.Background())
		require.NoError(t, err)
		if e.Kind == Ended {
			break
		}
		target, err := s.Target()
		require.NoError(t, err)
		for _, thread := range target.Threads() {
			pc, err := thread.Registers.Addr(arch.PC)
			require.NoError(t, err)
			require.False(t, pc > site && pc < site+length, "thread %d is at %v, in the instruction at %v", thread.ID, pc, site)
			if pc == site && thread.ID != e.Thread.ID {
				others++
			}
		}
	}
	require.Positive(t, others, "no two threads came there at the same time")
	require.Equal(t, "ready\nthreads 959600\n", output())
}
