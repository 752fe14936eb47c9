package ptrace

import (
	"context"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/tracer"
	"example.com/reframe/test/livetest"
)

// watchdogHolds waits until the watchdog of a tracer has seized it.
func watchdogHolds(t *testing.T, tracing int) {
	t.Helper()
	seized := func() bool {
		by := strings.TrimSpace(system.StatusField(tracing, "TracerPid"))
		return by != "0" && by != ""
	}
	require.Eventually(t, seized, livetest.Patience, time.Millisecond)
}

// killTracer runs a target with a breakpoint and kills the tracer after some hits: with hold while the target is stopped at one, otherwise while it
// runs. With alone it also kills the watchdog, and this process does not restore the code. It returns the output and the status of the target, and
// the signal that ended it.
func killTracer(t *testing.T, path string, site machine.Addr, mode, count string, hold, alone bool) (output string, code int, ended syscall.Signal) {
	t.Helper()
	n, err := strconv.Atoi(count)
	require.NoError(t, err)
	w := startWaiting(t, path, mode, n)
	s, err := Open(context.Background(), w.pid())
	require.NoError(t, err)
	require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: hold}))
	watchdogHolds(t, tracerPID(s))
	w.begin(t)
	hits := rand.IntN(400)
	for n := 0; err == nil; n++ {
		if n == hits && alone {
			watchdog, err := strconv.Atoi(strings.TrimSpace(system.StatusField(tracerPID(s), "TracerPid")))
			require.NoError(t, err)
			require.NoError(t, syscall.Kill(watchdog, syscall.SIGKILL))
		}
		if n == hits {
			require.NoError(t, syscall.Kill(tracerPID(s), syscall.SIGKILL))
		}
		_, err = s.Next(context.Background())
	}
	require.ErrorIs(t, err, tracer.ErrKilled)
	if !alone {
		require.ErrorIs(t, s.Detach(), tracer.ErrKilled)
	}
	output, code = w.finish(t)
	if alone {
		require.ErrorIs(t, s.Detach(), tracer.ErrKilled)
	}
	return output, code, w.cmd.ProcessState.Sys().(syscall.WaitStatus).Signal()
}

// tracerKills lists the targets whose tracers are killed.
var tracerKills = []struct {
	mode, count, want string
	cflags            []string
}{
	{"plain", "20000", "ready\nplain 599990000\n", nil},
	{"plain", "20000", "ready\nplain 599990000\n", []string{stepped}},
	{"threads", "2000", sitesOutput["threads"], nil},
	{"threads", "2000", sitesOutput["threads"], []string{stepped}},
}

// TestTracerKilledWhileTargetIsStopped requires that a target whose tracer is killed while the target is stopped finishes as if it had not been
// traced. The watchdog restores the code before the kernel resumes the threads.
func TestTracerKilledWhileTargetIsStopped(t *testing.T) {
	livetest.Slow(t)
	for _, k := range tracerKills {
		path, site, _ := sitesProgram(t, k.cflags...)
		for range livetest.Times(5, 50) {
			output, code, _ := killTracer(t, path, site, k.mode, k.count, true, false)
			require.Equal(t, k.want, output, "%s %v", k.mode, k.cflags)
			require.Equal(t, 7, code)
		}
	}
}

// TestTracerKilledWhileTargetRuns requires that a target whose tracer is killed while the target runs finishes as if it had not been traced. The
// target's SIGTRAP handler waits for the watchdog.
func TestTracerKilledWhileTargetRuns(t *testing.T) {
	livetest.Slow(t)
	killTracers(t, false)
}

// TestTracerAndWatchdogKilledWhileTargetRuns requires that a running target also finishes correctly if no process is left to restore the code. The
// SIGTRAP handler then restores it.
func TestTracerAndWatchdogKilledWhileTargetRuns(t *testing.T) {
	livetest.Slow(t)
	killTracers(t, true)
}

// killTracers kills the tracers of running targets. On arm64, SIGTRAP ends the target if a thread is being single-stepped, as at every breakpoint
// there, because the kernel does not disable single-stepping when the tracer is killed.
func killTracers(t *testing.T, alone bool) {
	t.Helper()
	right, all := 0, 0
	for _, k := range tracerKills {
		path, site, _ := sitesProgram(t, k.cflags...)
		for range livetest.Times(5, 50) {
			output, code, ended := killTracer(t, path, site, k.mode, k.count, false, alone)
			all++
			if runtime.GOARCH == "arm64" && ended == syscall.SIGTRAP {
				continue
			}
			require.Equal(t, k.want, output, "%s %v: %v", k.mode, k.cflags, ended)
			require.Equal(t, 7, code)
			right++
		}
	}
	t.Logf("%d of %d targets were right", right, all)
	require.Positive(t, right)
}

// TestStandingWatcher is the helper program that TestTracerAndWatcherKilled runs and kills.
func TestStandingWatcher(t *testing.T) {
	command := os.Getenv("STANDING")
	if command == "" {
		return
	}
	s, err := Launch(context.Background(), strings.Fields(command))
	require.NoError(t, err)
	var b Breakpoint
	var hits int
	_, err = fmt.Sscan(os.Getenv("STANDING_AT"), (*uint64)(&b.Addr), &hits)
	require.NoError(t, err)
	b.Hold = true
	require.NoError(t, s.Insert(b))
	watchdogHolds(t, tracerPID(s))
	for range hits {
		_, err := s.Next(context.Background())
		require.NoError(t, err)
	}
	fmt.Fprintln(os.Stderr, tracerPID(s))
	select {}
}

// TestTracerAndWatcherKilled requires that a target also finishes correctly if the tracer and the session's own process are killed together.
func TestTracerAndWatcherKilled(t *testing.T) {
	livetest.Slow(t)
	for _, k := range tracerKills {
		path, site, _ := sitesProgram(t, k.cflags...)
		for range livetest.Times(5, 50) {
			file := filepath.Join(t.TempDir(), "output")
			out, err := os.Create(file)
			require.NoError(t, err)
			cmd := exec.Command(os.Args[0], "-test.run", "^TestStandingWatcher$")
			cmd.Env = append(os.Environ(), "STANDING="+path+" "+k.mode+" "+k.count, fmt.Sprintf("STANDING_AT=%d %d", uint64(site), 1+rand.IntN(400)))
			cmd.Stdout = out
			said, err := cmd.StderrPipe()
			require.NoError(t, err)
			require.NoError(t, cmd.Start())
			out.Close()
			var tracing int
			_, err = fmt.Fscan(said, &tracing)
			require.NoError(t, err)
			// Kill the tracer first. After reframe has ended, the tracer begins to remove the handler, and a kill during that may end the target
			// (doc/user/threats.md).
			require.NoError(t, syscall.Kill(tracing, syscall.SIGKILL))
			require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			_ = cmd.Wait() // an error means that it was killed
			eventually(t, func() string {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				return string(b)
			}, k.want, k.mode, k.cflags)
		}
	}
}

// TestTracerIsSpared requires that, if memory runs out, the kernel kills another process before the tracer, if the kernel permits that setting. A
// program that the tracer starts must have the default setting.
func TestTracerIsSpared(t *testing.T) {
	value := func(pid int) int {
		text, err := os.ReadFile(fmt.Sprintf("/proc/%d/oom_score_adj", pid))
		require.NoError(t, err)
		n, err := strconv.Atoi(strings.TrimSpace(string(text)))
		require.NoError(t, err)
		return n
	}
	own := value(os.Getpid())
	permitted := exec.Command("sh", "-c", "echo -900 > /proc/self/oom_score_adj").Run() == nil
	s, _ := launch(t, livetest.Tool(t, "true"))
	require.Equal(t, own, value(s.PID()))
	if permitted {
		require.Equal(t, -900, value(tracerPID(s)))
	} else {
		require.LessOrEqual(t, value(tracerPID(s)), own)
	}
}
