package trace_test

import (
	"fmt"
	"math/rand/v2"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestWatcherKilled requires that a process finishes normally and no trace of reframe remains, neither in its code nor as its tracer, whenever and
// however reframe ends. With FIDELITY=all every victim is combined with every way to end reframe, which makes 440 runs, otherwise with a twelfth of
// them.
func TestWatcherKilled(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	// A process whose parent was killed becomes this process's child (PR_SET_CHILD_SUBREAPER(2const)).
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	random := rand.New(rand.NewPCG(6, 6))
	before := time.Now()
	killed, compared := 0, 0
	for n, v := range clitest.Victims {
		for m, w := range clitest.Endings {
			for k, verb := range []string{"trace", "verify"} {
				halfway := v.Options.Middle != ""
				if verb == "verify" && halfway { // this combination would run for too long
					continue
				}
				if livetest.Out(12, n+m+k) { // each way and each victim is still tested several times
					continue
				}
				args := append([]string{verb, "--ir", livetest.IR(t, 19, v.Program)}, w.Args...)
				if verb == "verify" {
					args = append(args, "--all")
				}
				stop := m%2 == 0 && !w.Writes && !halfway
				pause := time.Duration(random.IntN(150)) * time.Millisecond
				t.Run(fmt.Sprintf("%s, %s, %s", verb, v.Name, w.Name), func(t *testing.T) {
					killed++
					if killAttached(t, v, w, args, pause, stop) {
						compared++
					}
					if !w.Attach {
						killed++
						killLaunched(t, v, w, args, pause)
					}
				})
			}
		}
	}
	t.Logf("%d watchers were killed in %v; the code of %d processes was compared", killed, time.Since(before), compared)
	require.Greater(t, compared, 4)
}

// killAttached kills a reframe that has attached to a process. compared reports whether the code of the process was compared with a copy from before.
func killAttached(t *testing.T, v clitest.Victim, w clitest.Ending, args []string, pause time.Duration, stop bool) (compared bool) {
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, 19, v.Program, "-O2"), v.Options)
	code := clitest.ExecutableMemory(t, p.PID)
	c := clitest.Watch(t, nil, append(args[:len(args):len(args)], "-p", clitest.PID(p))...)
	clitest.WaitTraced(t, p)
	tracing := clitest.TracerOf(p.PID)
	begin()
	time.Sleep(pause)
	if err := w.End(c); err != nil {
		require.ErrorIs(t, err, os.ErrProcessDone)
	}
	if stop {
		_ = unix.Kill(p.PID, unix.SIGSTOP) // an error means that it has ended
	}
	c.Over(t, tracing)
	compared = stop && clitest.RequireRestored(t, p.PID, code)
	_ = unix.Kill(p.PID, unix.SIGCONT)
	require.NoError(t, p.Wait(), p.Output())
	clitest.RequireFinished(t, v, p.Output())
	return compared
}

// killLaunched kills a reframe that has started the process itself.
func killLaunched(t *testing.T, v clitest.Victim, w clitest.Ending, args []string, pause time.Duration) {
	file := filepath.Join(t.TempDir(), "output")
	out, err := os.Create(file)
	require.NoError(t, err)
	host := livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, v.Program, "-O2"), v.Options)
	// Standard output is the process's own; the exits go to standard error.
	c := clitest.Watch(t, out, append(append(args[:len(args):len(args)], "--"), host...)...)
	out.Close()
	tracing, process := clitest.TracedHost(t, c.Process.Pid)
	time.Sleep(pause)
	if err := w.End(c); err != nil {
		require.ErrorIs(t, err, os.ErrProcessDone)
	}
	c.Over(t, tracing)
	checksum, _ := livetest.CVersion(t, v.Program, v.Options)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return strings.Contains(string(text), checksum)
	}, livetest.Patience, time.Millisecond)
	clitest.RequireEndedWell(t, process)
	text, err := os.ReadFile(file)
	require.NoError(t, err)
	clitest.RequireFinished(t, v, string(text))
}
