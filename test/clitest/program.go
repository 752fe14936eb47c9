// Package clitest runs the program in tests as its users do, and checks its exit status, its output, and its effect on the target. Its main functions
// are Main, which builds the program, and Run.
//
// It trusts the program and the tools that the tests call.
package clitest

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// Result is the result of one run.
type Result struct {
	Code           int
	Stdout, Stderr string
}

// Command prepares a run, which is killed if it hangs. It raises the timeout of verify, whose steps can be slow on a loaded machine.
func Command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if len(args) > 1 && args[0] == "verify" && strings.HasPrefix(args[1], "-") && !slices.Contains(args, "--timeout") {
		args = slices.Insert(slices.Clone(args), 1, "--timeout", livetest.Patience.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, Binary(), args...)
	c.Cancel = func() error {
		if ctx.Err() == context.DeadlineExceeded { // otherwise the end of the test has canceled it
			t.Errorf("%s hung", c)
		}
		return c.Process.Kill()
	}
	return c
}

// Finish runs c and returns its result. It requires that the program does not panic.
func Finish(t *testing.T, c *exec.Cmd) Result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	require.NotNil(t, c.ProcessState, "%v", err)
	require.True(t, c.ProcessState.Exited(), "%v\n%s", err, &stderr)
	require.NotContains(t, stderr.String(), "goroutine ")
	if verb := c.Args[min(1, len(c.Args)-1)]; (verb == "frames" || verb == "resume") && slices.Contains(c.Args, "--json") && stdout.Len() > 0 {
		RequireValid(t, verb+".schema.json", stdout.String()) // every test that prints this JSON validates it
	}
	return Result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// Run runs the program and returns its result.
func Run(t *testing.T, args ...string) Result {
	t.Helper()
	return Finish(t, Command(t, args...))
}

// NobodyUID is the uid of a user without privileges.
const NobodyUID = 65534

// AsNobody makes a command run as another user, which requires root.
func AsNobody(t *testing.T, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	livetest.NeedsTools(t)
	require.Zero(t, os.Geteuid(), "this test gives up root's rights: run it as root")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: NobodyUID, Gid: NobodyUID}}
	c.Dir = "/"
	return c
}

// Fails requires the exit status, and exactly one line on stderr, which contains all of the texts.
func (r Result) Fails(t *testing.T, code int, texts ...string) {
	t.Helper()
	require.Equal(t, code, r.Code, "%s%s", r.Stdout, r.Stderr)
	line, rest, ended := strings.Cut(r.Stderr, "\n")
	require.True(t, ended, "%q", r.Stderr)
	require.True(t, strings.HasPrefix(line, "reframe: "), "%q", r.Stderr)
	if code == 64 {
		require.Regexp(t, `^try: reframe( [a-z]+)? --help\n$`, rest)
	} else {
		require.Empty(t, rest)
	}
	for _, text := range texts {
		require.Contains(t, line, text)
	}
}

// Notes requires the exit status, and exactly one note on stderr, which contains all of the texts.
func (r Result) Notes(t *testing.T, code int, texts ...string) {
	t.Helper()
	r.Fails(t, code, append([]string{"reframe: note: "}, texts...)...)
}

// FailsEmpty is like Fails, and also requires that stdout is empty.
func (r Result) FailsEmpty(t *testing.T, code int, texts ...string) {
	t.Helper()
	r.Fails(t, code, texts...)
	require.Empty(t, r.Stdout)
}

// Object decodes the only JSON object on stdout.
func (r Result) Object(t *testing.T) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.Stdout))
	d.UseNumber()
	var out map[string]any
	require.NoError(t, d.Decode(&out), "%s%s", r.Stdout, r.Stderr)
	require.False(t, d.More(), "something follows the object")
	return out
}

// ThreadStatus returns one field of a thread's status file (proc_pid_status(5)).
func ThreadStatus(pid, tid int, field string) string {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	if err != nil {
		return ""
	}
	for line := range strings.Lines(string(text)) {
		if name, value, ok := strings.Cut(line, ":"); ok && name == field {
			return strings.TrimSpace(value)
		}
	}
	return ""
}

// Threads returns the current threads of a process.
func Threads(pid int) []int {
	dirs, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is well-formed
	var tids []int
	for _, dir := range dirs {
		if tid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// RequireUnharmed requires that a process which waited in a system call still waits there: it is alive, no thread is stopped, and no tracer is
// attached. A released thread may run for a moment until it waits again.
func RequireUnharmed(t *testing.T, p *livetest.Process) {
	t.Helper()
	var state string
	ok := func() bool {
		state = ""
		for _, tid := range Threads(p.PID) {
			state += fmt.Sprintf("thread %d: %s, traced by %s\n", tid, ThreadStatus(p.PID, tid, "State"), ThreadStatus(p.PID, tid, "TracerPid"))
		}
		waits := strings.HasPrefix(ThreadStatus(p.PID, p.PID, "State"), "S")
		return waits && !strings.Contains(state, "stop") && strings.Count(state, "traced by 0\n") >= strings.Count(state, "(")
	}
	require.Eventually(t, func() bool { return p.Alive() && ok() }, livetest.Patience, time.Millisecond, "%v %s", p.Alive(), &state)
	require.NotContains(t, p.Output(), "disturbed")
}

// Frames returns the frames of all threads in a report.
func Frames(t *testing.T, report map[string]any) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, thread := range Objects(t, report["threads"]) {
		out = append(out, Objects(t, thread["frames"])...)
	}
	return out
}

// Objects converts a JSON array of objects.
func Objects(t *testing.T, v any) []map[string]any {
	t.Helper()
	array, ok := v.([]any)
	require.True(t, ok, "%v is no array", v)
	var out []map[string]any
	for _, one := range array {
		o, ok := one.(map[string]any)
		require.True(t, ok, "%v is no object", one)
		out = append(out, o)
	}
	return out
}

// FrameOf returns the only frame of a function.
func FrameOf(t *testing.T, report map[string]any, function string) map[string]any {
	t.Helper()
	var found []map[string]any
	for _, f := range Frames(t, report) {
		if f["function"] == function {
			found = append(found, f)
		}
	}
	require.Len(t, found, 1, "frames of %s", function)
	return found[0]
}

// TempFile writes a temporary file of the test.
func TempFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// EditedCopy returns a copy of a text file with one change.
func EditedCopy(t *testing.T, path, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from, path)
	return TempFile(t, filepath.Base(path), strings.Replace(string(text), from, to, 1))
}

func DeoptimizeLayout(t *testing.T) string {
	return livetest.Testdata(t, "programs", "deoptimize.layout.json")
}

// PID returns a process's number for the command line.
func PID(p *livetest.Process) string { return strconv.Itoa(p.PID) }
