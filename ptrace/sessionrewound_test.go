package ptrace

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestSessionThreadsAreNeverInsideAnInstruction requires that a thread that has hit a breakpoint is moved back before it no later than the session
// can see the thread. Otherwise, if the tracer is killed while a thread is after the int3, the thread continues in the middle of an instruction.
// Earlier, 4 of 320 programs printed a wrong result.
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
