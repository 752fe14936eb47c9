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

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// many describes a program with more exits than the output queue holds.
var many = livetest.ObjectHostOptions{Threads: 2, Rounds: 30}

const gap = `exits are missing: reframe was stopped, or its output was not read, and the process ran without breakpoints for \d+\.\d{3} s$`

const missing = `(?m)^exits are missing: without breakpoints for \d+\.\d{3} s, while reframe was stopped or its output was not read$`

// unread runs a verb on a host of an object. It reads the verb's output only after the process has ended. It requires the right result of the process
// and the verb's exit status, and returns the verb's output and standard error.
func unread(t *testing.T, object string, o livetest.ObjectHostOptions, status int, verb string, flags ...string) (output, words string) {
	t.Helper()
	p, begin := livetest.ObjectHost(t, object, o)
	from, to, err := os.Pipe()
	require.NoError(t, err)
	defer from.Close()
	c := clitest.Command(t, append([]string{verb, "-p", clitest.PID(p)}, flags...)...)
	var stderr bytes.Buffer
	c.Stdout, c.Stderr = to, &stderr
	require.NoError(t, c.Start())
	require.NoError(t, to.Close())
	clitest.WaitTraced(t, p)
	begin()
	require.NoError(t, p.Wait(), "nothing is read yet")
	checksum, _ := livetest.CVersion(t, "tick.ll", o)
	require.Contains(t, p.Output(), checksum)
	content, err := io.ReadAll(from)
	require.NoError(t, err)
	require.Error(t, c.Wait())
	require.Equal(t, status, c.ProcessState.ExitCode(), stderr.String())
	return string(content), stderr.String()
}

// stalling returns the verbs, with flags, that stop a process at breakpoints.
func stalling(module string) map[string][]string {
	return map[string][]string{
		"values": {"trace"},
		"frames": {"trace", "--full"},
		"verify": {"verify", "--ir", module, "--all", "--json"},
	}
}

// TestWithoutReader requires that a process runs to its end while the output of a verb is not read. The verb must report the gap in its summary, and
// before that at the place where the output resumes or in a warning.
func TestWithoutReader(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, _ := clitest.TickObject(t)
	for _, flags := range [][]string{nil, {"--full"}} {
		t.Run(fmt.Sprint("trace", flags), func(t *testing.T) {
			t.Parallel()
			output, words := unread(t, object, many, 1, "trace", flags...)
			require.Regexp(t, missing, words)
			require.Regexp(t, `(?m)^\d+\.\d{6}  `+gap, output)
		})
	}
	t.Run("verify", func(t *testing.T) {
		t.Parallel()
		object, module := clitest.WrongTick(t)
		_, words := unread(t, object, many, 3, "verify", "--ir", module, "--tail", "4000") // writes long differences
		require.Regexp(t, missing, words)
		require.Regexp(t, `(?m)^reframe: `+gap, words)
	})
}

// TestTraceLossy requires that with --lossy a process ends although nothing reads the output, and that each exit is shown or counted as dropped, also
// if the process is stopped at each exit to read its frames.
func TestTraceLossy(t *testing.T) {
	livetest.Slow(t)
	t.Parallel()
	object, module := clitest.TickObject(t)
	for name, run := range map[string]struct {
		rounds int
		flags  []string
	}{"values": {4, nil}, "frames": {1, []string{"--full"}}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content, words := unread(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: run.rounds}, 1, "trace", append(run.flags, "--lossy", "--json", "--ir", module)...)
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

// TestStopped requires that a process runs to its end while SIGSTOP has stopped the verb, and that the verb reports the gap as in TestWithoutReader.
func TestStopped(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	for name, verb := range stalling(module) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, begin := livetest.ObjectHost(t, object, many)
			out := filepath.Join(t.TempDir(), "out")
			c := clitest.Command(t, append(verb, "-p", clitest.PID(p), "-o", out)...)
			var words bytes.Buffer
			c.Stderr = &words
			require.NoError(t, c.Start())
			clitest.WaitTraced(t, p)
			begin()
			require.Eventually(t, func() bool { // wait until exits are reported
				content, err := os.Stat(out)
				return err == nil && content.Size() > 0
			}, livetest.Patience, time.Millisecond)
			require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
			require.NoError(t, p.Wait(), "it is not continued yet")
			checksum, _ := livetest.CVersion(t, "tick.ll", many)
			require.Contains(t, p.Output(), checksum)
			require.NoError(t, c.Process.Signal(syscall.SIGCONT))
			require.Error(t, c.Wait())
			require.Equal(t, 1, c.ProcessState.ExitCode(), words.String())
			require.Regexp(t, missing, words.String())
		})
	}
}

// TestDebugStopped requires that a process which runs to a breakpoint does not wait for a debugger that SIGSTOP has stopped, and that the debugger
// reports the interruption.
func TestDebugStopped(t *testing.T) {
	t.Parallel()
	object, module := clitest.TickObject(t)
	p, begin := livetest.ObjectHost(t, object, many)
	// The condition is true at no exit.
	c := clitest.Command(t, "debug", "--ir", module, "-x", clitest.TempFile(t, "session.txt", "break tick if %i == 5000\ncontinue\n"), "-p", clitest.PID(p))
	var out, words bytes.Buffer
	c.Stdout, c.Stderr = &out, &words
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	require.Eventually(t, func() bool { // wait until the process has been stopped and has continued
		status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.PID))
		return err == nil && strings.Contains(string(status), "\nState:\tS")
	}, livetest.Patience, time.Millisecond)
	require.NoError(t, c.Process.Signal(syscall.SIGSTOP))
	begin()
	require.NoError(t, p.Wait(), "it is not continued yet")
	checksum, _ := livetest.CVersion(t, "tick.ll", many)
	require.Contains(t, p.Output(), checksum)
	require.NoError(t, c.Process.Signal(syscall.SIGCONT))
	require.NoError(t, c.Wait(), words.String())
	require.Contains(t, out.String(), "the process exited with status 0")
	require.Regexp(t, `(?m)`+gap, words.String()+out.String())
}
