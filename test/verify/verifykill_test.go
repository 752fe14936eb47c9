package verify_test

import (
	"bufio"
	"fmt"
	"io"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// crossers are verifications that run native code for long: through native calls that print, allocate and call back, and from the entries of
// functions, each with two runs of the interpreter.
var crossers = []struct {
	program string
	args    []string
}{
	{"crossing.ll", nil},
	{"crossing.ll", []string{"--from-entry"}},
	{"crossing.ll", []string{"--entry", "spell"}},
	{"baseline.ll", []string{"--from-entry", "--layout", "baseline.layout.json"}},
	{"recursion.ll", []string{"--from-entry"}},
}

// TestVerifyKilledWhileItCrosses requires that a process which is verified from its entries or across native calls prints the same as without
// reframe, and has its original code, if reframe is killed at any moment. The moment is given as a number of exits, so it does not depend on the
// speed of the machine.
func TestVerifyKilledWhileItCrosses(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	// As in TestWatcherKilled, orphaned tracers become children of this process.
	require.NoError(t, unix.Prctl(unix.PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0))
	random := rand.New(rand.NewPCG(19, 2))
	killed, late, compared := 0, 0, 0
	for n, c := range crossers {
		args := append([]string{"verify", "--all", "--json", "--ir", livetest.IR(t, 19, c.program)}, c.args...)
		if len(c.args) > 2 {
			args[len(args)-1] = livetest.Testdata(t, "programs", args[len(args)-1])
		}
		o := livetest.ObjectHostOptions{Rounds: 60}
		object := livetest.PICObject(t, 19, c.program, "-O2")
		host := livetest.ObjectHostCommand(t, object, o)
		want := clitest.OutputUntraced(t, host)
		require.NotEmpty(t, want)
		for m, w := range clitest.Endings[:8] { // those that send a signal
			for k := range livetest.Times(2, 12) {
				if livetest.Out(2, n+m+k) {
					continue
				}
				exits, pause := random.IntN(6), time.Duration(random.IntN(20_000))*time.Microsecond
				t.Run(fmt.Sprintf("%s %v, %s after %d exits and %v", c.program, c.args, w.Name, exits, pause), func(t *testing.T) {
					ended := false
					if w.Attach || k%2 == 1 {
						var same bool
						if same, ended = killedCrossing(t, object, o, w, args, exits, pause, want); same {
							compared++
						}
					} else {
						ended = killedCrossingOf(t, host, w, args, exits, pause, want)
					}
					if killed++; ended {
						late++
					}
				})
			}
		}
	}
	t.Logf("%d were killed, %d of them when they had ended; the code of %d was compared", killed, late, compared)
	require.Less(t, late, killed/2)
	require.Positive(t, compared)
}

// exitsOf waits until reframe has printed the given number of lines, and reads the rest in the background.
func exitsOf(t *testing.T, r io.Reader, exits int) {
	t.Helper()
	lines := bufio.NewReader(r)
	for range exits {
		if _, err := lines.ReadString('\n'); err != nil {
			require.ErrorIs(t, err, io.EOF)
			break
		}
	}
	go io.Copy(io.Discard, lines)
}

// killedCrossing kills a reframe that has attached to a process, while the process is stopped by a signal. It reports whether the code was compared,
// and whether reframe had ended before.
func killedCrossing(t *testing.T, object string, o livetest.ObjectHostOptions, w clitest.Ending, args []string, exits int, pause time.Duration, want string) (compared, ended bool) {
	p, begin := livetest.ObjectHost(t, object, o)
	code := clitest.ExecutableMemory(t, p.PID)
	c := clitest.Command(t, append(args[:len(args):len(args)], "-p", clitest.PID(p))...)
	c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	out, in, err := os.Pipe()
	require.NoError(t, err)
	c.Stdout, c.Stderr = in, nil
	require.NoError(t, c.Start())
	in.Close()
	clitest.WaitTraced(t, p)
	tracing := clitest.TracerOf(p.PID)
	begin()
	exitsOf(t, out, exits)
	time.Sleep(pause)
	_ = w.End(clitest.Watching{Cmd: c, Reader: out, Terminal: nil}) // an error means that it has ended
	_ = unix.Kill(p.PID, unix.SIGSTOP)                              // an error means that it has ended
	clitest.Watching{Cmd: c, Reader: out, Terminal: nil}.Over(t, tracing)
	ended = verifiedAll(c)
	compared = clitest.RequireRestored(t, p.PID, code)
	_ = unix.Kill(p.PID, unix.SIGCONT)
	require.NoError(t, p.Wait(), p.Output())
	require.Equal(t, "ready\n"+want, p.Output()) // the first line reports that the object was loaded
	return compared, ended
}

// killedCrossingOf kills a reframe that has started the process itself.
func killedCrossingOf(t *testing.T, host []string, w clitest.Ending, args []string, exits int, pause time.Duration, want string) (ended bool) {
	file := filepath.Join(t.TempDir(), "output")
	out, err := os.Create(file)
	require.NoError(t, err)
	defer out.Close()
	c := clitest.Command(t, append(append(args[:len(args):len(args)], "--"), host...)...)
	said, in, err := os.Pipe()
	require.NoError(t, err)
	c.Stdout, c.Stderr = out, in // standard output is the program's own; the exits go to standard error
	require.NoError(t, c.Start())
	in.Close()
	tracing, process := clitest.TracedHost(t, c.Process.Pid)
	exitsOf(t, said, exits)
	time.Sleep(pause)
	_ = w.End(clitest.Watching{Cmd: c, Reader: said, Terminal: nil}) // an error means that it has ended
	clitest.Watching{Cmd: c, Reader: said, Terminal: nil}.Over(t, tracing)
	clitest.RequireEndedWell(t, process)
	require.Eventually(t, func() bool {
		text, err := os.ReadFile(file)
		require.NoError(t, err)
		return string(text) == want
	}, livetest.Patience, time.Millisecond)
	return verifiedAll(c)
}

// verifiedAll reports whether a verification ended normally.
func verifiedAll(c *exec.Cmd) bool { return slices.Contains([]int{0, 1, 3}, c.ProcessState.ExitCode()) }
