package trace_test

import (
	"bufio"
	"io"
	"regexp"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestTraceUnderNohup requires that a signal which was ignored when reframe started, such as SIGHUP under nohup(1), does not end it, and that another
// signal does.
func TestTraceUnderNohup(t *testing.T) {
	t.Parallel()
	object, _ := clitest.TickObject(t)
	o := livetest.ObjectHostOptions{Threads: 2, Rounds: 5000}
	p, begin := livetest.ObjectHost(t, object, o)
	c := clitest.Command(t, "trace", "-p", clitest.PID(p))
	c.Path, c.Args = livetest.Tool(t, "env"), append([]string{"env", "--ignore-signal=HUP"}, c.Args...)
	out, err := c.StdoutPipe()
	require.NoError(t, err)
	var stderr strings.Builder
	c.Stderr = &stderr
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	tracing := clitest.TracerOf(p.PID)
	begin()
	lines := bufio.NewReader(out)
	for n := range 3000 { // more than the pipe and the buffers before it can hold
		if n == 20 {
			require.NoError(t, c.Process.Signal(syscall.SIGHUP))
			require.NoError(t, syscall.Kill(tracing, syscall.SIGHUP))
		}
		_, err := lines.ReadString('\n')
		require.NoError(t, err)
	}
	require.NoError(t, c.Process.Signal(syscall.SIGINT))
	_, err = io.Copy(io.Discard, lines)
	require.NoError(t, err)
	_ = c.Wait() // the test checks its status
	require.Equal(t, 130, c.ProcessState.ExitCode(), stderr.String())
	require.NoError(t, p.Wait())
}

// TestVerbsWithSignalsHeldOff requires that verbs work the same if a shell or a supervisor has ignored or blocked signals before it started reframe.
func TestVerbsWithSignalsHeldOff(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	host := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: 2})
	numbers := regexp.MustCompile(`\d+\.\d+|0x[0-9a-f]+|\bpid \d+`) // times, addresses
	held := []string{"env", "--ignore-signal", "--block-signal"}
	// run runs reframe with every signal ignored or blocked for which this is possible.
	run := func(args ...string) clitest.Result {
		c := clitest.Command(t, args...)
		c.Path, c.Args = livetest.Tool(t, "env"), append(held[:len(held):len(held)], c.Args...)
		return clitest.Finish(t, c)
	}
	same := func(args ...string) {
		want, r := clitest.Run(t, args...), run(args...)
		require.Equal(t, 0, want.Code, want.Stderr)
		require.Equal(t, want.Code, r.Code, "%s: %s", args, r.Stderr)
		require.Equal(t, numbers.ReplaceAllString(want.Stdout, "N"), numbers.ReplaceAllString(r.Stdout, "N"), "%s", args)
	}
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	for _, verb := range []string{"frames", "resume"} {
		same(verb, "-p", clitest.PID(p), "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t))
	}
	same(append([]string{"trace", "--count", "--"}, host...)...)
	r := run(append([]string{"verify", "--ir", module, "--all", "--"}, host...)...)
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^[1-9]\d* exits verified in .*, 0 different`, r.Stderr)
}

// TestTraceInAnOrphanedGroup requires that in an orphaned process group, such as that of a script under nohup or cron, no SIGHUP reaches the group.
// The kernel would send it if a process of the group is stopped when the program that reframe has started ends.
func TestTraceInAnOrphanedGroup(t *testing.T) {
	t.Parallel()
	const script = `sleep 1000 & kill -STOP $!; "$@"; echo status $?; kill -KILL $!`
	c := clitest.Command(t, "trace", "--count", "--", livetest.Tool(t, "true"))
	c.Path, c.Args = livetest.Tool(t, "sh"), append([]string{"sh", "-c", script, "sh"}, c.Args...)
	c.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	r := clitest.Finish(t, c)
	require.Equal(t, "status 2\n", r.Stdout, "%v: %s", c.ProcessState, r.Stderr)
}
