package ptrace

import (
	"fmt"
	"runtime"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
)

// TestUrgently requires that other threads do not preempt a thread in Urgently, if this process may set its scheduling, and that the thread's earlier
// scheduling is restored afterwards.
func TestUrgently(t *testing.T) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		runtime.LockOSThread() // the thread ends with the goroutine
		before, err := unix.SchedGetAttr(0, 0)
		require.NoError(t, err)
		why := fmt.Errorf("what it returns")
		require.Equal(t, why, system.Urgently(func() error {
			now, err := unix.SchedGetAttr(0, 0)
			require.NoError(t, err)
			try := *before
			try.Nice = before.Nice - 1
			if unix.SchedSetAttr(0, &try, 0) == nil { // this process has the permission
				require.True(t, now.Policy == unix.SCHED_RR || now.Nice == -20, "%+v", now)
				require.NoError(t, unix.SchedSetAttr(0, now, 0))
			}
			return why
		}))
		after, err := unix.SchedGetAttr(0, 0)
		require.NoError(t, err)
		require.Equal(t, before, after)
	}()
	<-done
}

// TestStackEndsAtTheThreadsBlock requires that the copy of a stack ends at the thread's own block, even if the memory after it is writable.
func TestStackEndsAtTheThreadsBlock(t *testing.T) {
	p := program(t, "stackend.c", nil)
	p.Quiet(t, 0)
	var end uint64
	_, err := fmt.Sscanf(p.Output(), "ends at 0x%x", &end)
	require.NoError(t, err)
	target := capture(t, p.PID, Options{})
	require.Len(t, target.Threads(), 2)
	sp, err := target.Threads()[1].Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	b := make([]byte, 4096)
	require.Less(t, uint64(sp)+4096, end)
	require.NoError(t, target.ReadMemory(b, sp), "the frames")
	require.Contains(t, string(b), "ZZZZZZZZ")
	require.ErrorContains(t, target.ReadMemory(b[:8], machine.Addr(end)), NotCopied, "what is not the thread's")
	require.ErrorContains(t, target.ReadMemory(b[:8], machine.Addr(end)+100<<10), NotCopied)
}
