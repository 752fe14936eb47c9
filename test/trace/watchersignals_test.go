package trace_test

import (
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestTwoSignals requires that a second signal does not suppress the summary, and that the process can be traced again immediately. timeout(1) sends
// a signal to its command and then to the group, and a closing terminal also sends two.
func TestTwoSignals(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	for _, verb := range [][]string{{"trace", "--count"}, {"trace"}, {"verify", "--ir", module}} {
		t.Run(strings.Join(verb[:min(2, len(verb))], " "), func(t *testing.T) {
			t.Parallel()
			p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 1 << 30})
			for n := range livetest.Times(6, 20) {
				c := clitest.Command(t, append(verb[:len(verb):len(verb)], "-p", clitest.PID(p))...)
				var stderr strings.Builder
				c.Stdout, c.Stderr = io.Discard, &stderr
				require.NoError(t, c.Start())
				clitest.WaitTraced(t, p)
				if n == 0 {
					begin()
				}
				require.NoError(t, c.Process.Signal(syscall.SIGTERM))
				if err := c.Process.Signal([]syscall.Signal{syscall.SIGTERM, syscall.SIGHUP}[n%2]); err != nil {
					require.ErrorContains(t, err, "already finished")
				}
				_ = c.Wait()                                                                                               // the test checks its status
				require.Contains(t, []int{143, 129}, c.ProcessState.ExitCode(), "%v: %s", c.ProcessState, stderr.String()) // of two pending signals, the lower number is delivered first
				require.Regexp(t, `(?m)^\d+ exits?( verified)?.* in .*; .*interrupted$`, stderr.String())
			}
			p.Kill()
		})
	}
}

// TestWatchedAgainAtOnce requires that another watcher can attach while the tracer of a killed watcher is still restoring code.
func TestWatchedAgainAtOnce(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, _ := clitest.TickObject(t)
	p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Threads: 4, Rounds: 1 << 30})
	ways := [][]syscall.Signal{{syscall.SIGKILL}, {syscall.SIGTERM, syscall.SIGTERM, syscall.SIGTERM}, {syscall.SIGHUP, syscall.SIGINT, syscall.SIGTERM}}
	next := [][]string{{"trace", "--limit", "1"}, {"frames"}, {"maps"}, {"trace", "--dry-run"}}
	for n := range 12 {
		c := clitest.Command(t, "trace", "--count", "-p", clitest.PID(p))
		require.NoError(t, c.Start())
		clitest.WaitTraced(t, p)
		if n == 0 {
			begin()
		}
		for _, s := range ways[n%len(ways)] {
			if err := c.Process.Signal(s); err != nil {
				require.ErrorIs(t, err, os.ErrProcessDone)
			}
		}
		_ = c.Wait() // the test itself ended it
		r := clitest.Run(t, append(next[n%len(next)], "-p", clitest.PID(p))...)
		require.Less(t, r.Code, 3, r.Stderr)
		require.NotContains(t, r.Stderr, "cannot attach")
	}
	p.Kill()
}

// TestGuardIsBornSafe requires that a signal to the process group, as a terminal sends it, never reaches the tracer, however recently it was started,
// but does reach the launched program.
func TestGuardIsBornSafe(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, _ := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 1 << 30})
	for range 20 {
		words, err := os.Create(filepath.Join(t.TempDir(), "words")) // a file, because the program would keep a pipe open
		require.NoError(t, err)
		c := clitest.Command(t, append([]string{"trace", "--count", "--"}, host...)...)
		c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
		c.Stderr = words
		require.NoError(t, c.Start())
		group := -c.Process.Pid
		require.Eventually(t, func() bool { return clitest.ChildOf(c.Process.Pid) != 0 }, livetest.Patience, time.Microsecond)
		require.NoError(t, syscall.Kill(group, syscall.SIGTERM))
		_ = c.Wait()                             // the test checks its status
		_ = syscall.Kill(group, syscall.SIGKILL) // the program may not have existed when the signal was sent
		text, err := os.ReadFile(words.Name())
		require.NoError(t, err)
		require.NoError(t, words.Close())
		require.NotContains(t, string(text), "guard process was killed")
		require.Regexp(t, ` exits? in |obj_host ended before its first instruction`, string(text)) // the signal also ends the command
	}
}

// TestFirstSignalEnds requires that a verb which has nothing to restore ends at the first signal.
func TestFirstSignalEnds(t *testing.T) {
	t.Parallel()
	pipe := filepath.Join(t.TempDir(), "pipe")
	require.NoError(t, syscall.Mkfifo(pipe, 0o600))
	c := clitest.Command(t, "lint", pipe)
	require.NoError(t, c.Start())
	w, err := os.OpenFile(pipe, os.O_WRONLY, 0) // waits until the command has opened the pipe, which it reads until this end is closed
	require.NoError(t, err)
	defer w.Close()
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	_ = c.Wait() // the test checks its status
	ws := c.ProcessState.Sys().(syscall.WaitStatus)
	require.True(t, ws.Signaled(), "%v", c.ProcessState)
	require.Equal(t, syscall.SIGINT, ws.Signal())
}
