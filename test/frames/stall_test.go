package frames_test

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reframe/internal/clitest"
	"reframe/internal/livetest"
)

// many is a program with more exits than are kept for a reader.
var many = livetest.ObjectHostOptions{Threads: 2, Rounds: 30}

const missing = `(?m)^exits are missing: without breakpoints for \d+\.\d{3} s, while reframe was stopped or its output was not read$`

// unread traces a process to its end before anything reads the output of the trace, with the given flags. It requires that the process computes the
// right result and that the trace ends with status 1, and returns the output and the standard error of the trace.
func unread(t *testing.T, o livetest.ObjectHostOptions, args ...string) (output, words string) {
	t.Helper()
	object, _ := clitest.TickObject(t)
	p, begin := livetest.ObjectHost(t, object, o)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	c := clitest.Command(t, append([]string{"trace", "-p", clitest.PID(p)}, args...)...)
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = to, &stderr
	require.NoError(t, c.Start())
	require.NoError(t, to.Close())
	clitest.WaitTraced(t, p)
	begin()
	require.NoError(t, p.Wait(), "nothing is read yet")
	checksum, _ := livetest.Twin(t, "tick.ll", o)
	require.Contains(t, p.Output(), checksum)
	content, err := io.ReadAll(from)
	require.NoError(t, err)
	require.Error(t, c.Wait())
	require.Equal(t, 1, c.ProcessState.ExitCode(), stderr.String())
	return string(content), stderr.String()
}

// TestTraceWithoutReader requires that a traced process runs to its end while the output of the trace is not read, and that the missing exits are reported.
func TestTraceWithoutReader(t *testing.T) {
	t.Parallel()
	_, words := unread(t, many)
	require.Regexp(t, missing, words)
}

// TestTraceLossy requires that with --lossy a process ends although nothing reads the output, and that each exit is shown or counted as dropped, also where
// the process is stopped for the frames of each.
func TestTraceLossy(t *testing.T) {
	t.Parallel()
	_, module := clitest.TickObject(t)
	for name, run := range map[string]struct {
		rounds int
		flags  []string
	}{"values": {4, nil}, "frames": {1, []string{"--full"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, words := unread(t, livetest.ObjectHostOptions{Threads: 2, Rounds: run.rounds}, append(run.flags, "--lossy", "--json", "--ir", module)...)
			lines := strings.Split(strings.TrimSuffix(content, "\n"), "\n")
			var summary struct {
				Schema         string
				Exits, Dropped int
			}
			require.NoError(t, json.Unmarshal([]byte(lines[len(lines)-1]), &summary))
			require.Equal(t, "reframe.trace.summary/v1", summary.Schema)
			require.Equal(t, 2*1000*run.rounds, summary.Exits)
			require.Positive(t, summary.Dropped)
			require.Equal(t, summary.Exits, len(lines)-1+summary.Dropped)
			require.Regexp(t, fmt.Sprintf("(?m)^%d exits dropped by --lossy: ", summary.Dropped), words)
		})
	}
}

// TestTraceStopped requires of a process whose trace SIGSTOP stops what TestTraceWithoutReader does.
func TestTraceStopped(t *testing.T) {
	t.Parallel()
	object, _ := clitest.TickObject(t)
	p, begin := livetest.ObjectHost(t, object, many)
	c := clitest.Command(t, "trace", "-p", clitest.PID(p), "-o", filepath.Join(t.TempDir(), "out"))
	var words bytes.Buffer
	c.Stderr = &words
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	require.Eventually(t, func() bool { // it was stopped, and runs again
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		return err == nil && strings.Contains(string(status), "\nState:\tS")
	}, livetest.Patience, time.Millisecond)
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	begin()
	require.NoError(t, p.Wait(), "it is not continued yet")
	checksum, _ := livetest.Twin(t, "tick.ll", many)
	require.Contains(t, p.Output(), checksum)
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	require.Error(t, c.Wait())
	require.Equal(t, 1, c.ProcessState.ExitCode(), words.String())
	require.Regexp(t, missing, words.String())
}
