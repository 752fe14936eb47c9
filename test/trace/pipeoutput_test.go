package trace_test

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestSignalWhilePipeIsAwaited requires that one signal ends a verb that waits for a reader of a pipe, or for a reader that does not read, and that
// the program continues.
func TestSignalWhilePipeIsAwaited(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	for _, verb := range [][]string{{"trace"}, {"verify", "--ir", module}} {
		t.Run(verb[0], func(t *testing.T) {
			p, _ := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			c := clitest.Command(t, append(verb, "-p", clitest.PID(p), "-o", pipe)...)
			var stderr strings.Builder
			c.Stderr = &stderr
			require.NoError(t, c.Start())
			require.Eventually(t, func() bool { return opens(c.Process.Pid) }, livetest.Patience, time.Millisecond)
			require.NoError(t, c.Process.Signal(syscall.SIGTERM))
			_ = c.Wait() // the status is checked below
			require.Equal(t, 143, c.ProcessState.ExitCode(), "%v: %s", c.ProcessState, stderr.String())
			require.Equal(t, "reframe: interrupted; -o "+pipe+" has no reader\n", stderr.String())
			require.True(t, p.Alive())
			p.Kill()
		})
	}
}

// TestSignalWhileNothingIsRead requires that one signal ends a trace whose output is not read, from the file of -o or from standard output.
func TestSignalWhileNothingIsRead(t *testing.T) {
	t.Parallel()
	object, _ := clitest.TickObject(t)
	for _, to := range []string{"-o", "standard output"} {
		t.Run(to, func(t *testing.T) {
			t.Parallel()
			p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Threads: 1, Rounds: 1 << 30})
			pipe := filepath.Join(t.TempDir(), "pipe")
			require.NoError(t, syscall.Mkfifo(pipe, 0o600))
			ends, err := os.OpenFile(pipe, os.O_RDWR, 0) // a reader that does not read
			require.NoError(t, err)
			defer ends.Close()
			c := clitest.Command(t, "trace", "-p", clitest.PID(p))
			if to == "-o" {
				c.Args = append(c.Args, "-o", pipe)
			} else {
				c.Stdout = ends
			}
			require.NoError(t, c.Start())
			begin()
			require.Eventually(t, func() bool { // the pipe is full, so a write blocks
				n, err := unix.Poll([]unix.PollFd{{Fd: int32(ends.Fd()), Events: unix.POLLOUT}}, 0)
				return err == nil && n == 0
			}, livetest.Patience, time.Millisecond)
			require.NoError(t, c.Process.Signal(syscall.SIGTERM))
			_ = c.Wait() // the status is checked below
			require.Equal(t, 143, c.ProcessState.ExitCode(), "%v", c.ProcessState)
			require.True(t, p.Alive())
			p.Kill()
		})
	}
}

// opens reports whether a thread of a process waits in open(2).
func opens(pid int) bool {
	tasks, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/syscall", pid))
	for _, task := range tasks {
		if text, err := os.ReadFile(task); err == nil && strings.HasPrefix(string(text), fmt.Sprintf("%d ", unix.SYS_OPENAT)) {
			return true
		}
	}
	return false
}
