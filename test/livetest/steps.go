package livetest

import (
	"runtime"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"
)

// FreezeAfter lets the main thread of a process run a number of further instructions by single steps, and leaves all threads stopped as Freeze does.
// A signal could stop a thread only at a few instructions of a short loop, which depend on the processor. Single steps reach each of them.
func (p *Process) FreezeAfter(t testing.TB, instructions int) {
	t.Helper()
	runtime.LockOSThread() // ptrace(2): the thread that attached must make all requests
	defer runtime.UnlockOSThread()
	require.NoError(t, unix.PtraceAttach(p.PID))
	stopped := func() {
		var status unix.WaitStatus
		for {
			_, err := unix.Wait4(p.PID, &status, unix.WALL, nil)
			if err != unix.EINTR {
				require.NoError(t, err)
				break
			}
		}
		require.True(t, status.Stopped(), "%#x", status)
	}
	for stopped(); instructions > 0; instructions-- {
		require.NoError(t, unix.PtraceSingleStep(p.PID))
		stopped()
	}
	_, _, errno := unix.Syscall6(unix.SYS_PTRACE, unix.PTRACE_DETACH, uintptr(p.PID), 0, uintptr(syscall.SIGSTOP), 0, 0)
	require.Zero(t, errno, "%v", errno)
	p.await(t, "all its threads have stopped", func() bool { return p.others(t, 'T') == 0 })
}
