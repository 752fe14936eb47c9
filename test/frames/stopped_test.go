package frames_test

import (
	"bufio"
	"fmt"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestStoppedBySignal requires that a process which a signal has stopped stays stopped, and is not reported as running.
func TestStoppedBySignal(t *testing.T) {
	t.Parallel()
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	known := []string{"-p", clitest.PID(p), "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t)}
	core := filepath.Join(t.TempDir(), "core")
	stopped := func() bool { return strings.HasPrefix(clitest.ThreadStatus(p.PID, p.PID, "State"), "T") }
	for _, signal := range []syscall.Signal{syscall.SIGSTOP, syscall.SIGCONT} {
		p.Signal(t, signal)
		is := signal == syscall.SIGSTOP
		require.Eventually(t, func() bool { return stopped() == is }, livetest.Patience, 1e6)
		after := map[bool]string{true: "stopped by a signal as before", false: "running again"}[is]
		for verb, want := range map[string]string{
			"frames":  fmt.Sprintf(`\Apid %d  .*   paused \d+\.\d\d ms, %s\n`, p.PID, after),
			"explain": fmt.Sprintf(`\Apid %d  .*   paused \d+\.\d\d ms, %s\n`, p.PID, after),
			"resume":  fmt.Sprintf(`(?m)^pid %d was stopped for \d+\.\d+ ms and is %s$`, p.PID, after),
			"commit":  fmt.Sprintf(`(?m)^pid %d was stopped for \d+\.\d+ ms and is %s$`, p.PID, after),
			"record":  fmt.Sprintf(`(?m)^it was stopped for \d+\.\d+ ms and is %s$`, after),
		} {
			args := append([]string{verb}, known...)
			switch verb {
			case "record":
				args = append(args, "-o", core, "--force")
			case "commit":
				args = append([]string{"resume", "--commit", "--dry-run"}, known...)
			}
			r := clitest.Run(t, args...)
			require.Less(t, r.Code, 2, r.Stderr)
			require.Regexp(t, want, r.Stdout+r.Stderr, verb)
			require.Eventually(t, func() bool { return stopped() == is }, livetest.Patience, 1e6, verb)
		}
		r := clitest.Run(t, append([]string{"frames", "--json"}, known...)...)
		clitest.RequireValid(t, "frames.schema.json", r.Stdout)
		require.Equal(t, is, r.Object(t)["target"].(map[string]any)["stopped"] == true)
		r = clitest.Run(t, append([]string{"explain", "--json"}, known...)...)
		clitest.RequireValid(t, "explain.schema.json", r.Stdout)
	}
	clitest.RequireUnharmed(t, p)
}

// TestTraceWaitsForStopped requires that trace reports that it waits for a stopped process, and shows its exits when the process continues.
func TestTraceWaitsForStopped(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	for _, args := range [][]string{{"trace", "--limit", "1"}, {"verify", "--limit", "1", "--all"}, {"record", "--hit", "1", "-o", filepath.Join(t.TempDir(), "core")}} {
		p, begin := livetest.ObjectHost(t, object, livetest.ObjectHostOptions{Rounds: 1})
		p.Signal(t, syscall.SIGSTOP)
		require.Eventually(t, func() bool { return strings.HasPrefix(clitest.ThreadStatus(p.PID, p.PID, "State"), "T") }, livetest.Patience, 1e6)
		begin()
		c := clitest.Command(t, append(args, "-p", clitest.PID(p), "--ir", module)...)
		stderr, err := c.StderrPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		words := bufio.NewReader(stderr)
		line, err := words.ReadString('\n')
		require.NoError(t, err)
		require.Equal(t, fmt.Sprintf("reframe: process %d is stopped by a signal, and no exit occurs until it continues: kill -CONT %[1]d\n", p.PID), line)
		p.Signal(t, syscall.SIGCONT)
		for err == nil {
			_, err = words.ReadString('\n')
		}
		require.NoError(t, c.Wait())
		require.NoError(t, p.Wait())
		checksum, _ := livetest.CVersion(t, "tick.ll", livetest.ObjectHostOptions{Rounds: 1})
		require.Contains(t, p.Output(), checksum)
	}
}
