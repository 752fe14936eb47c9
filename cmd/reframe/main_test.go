// The tests of this package use the program as its users do: they build it, run it, and check its exit status, its output, and its effect on the
// target.
package main_test

import (
	"bytes"
	"context"
	"debug/elf"
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

	"reframe/internal/livetest"
)

// binary is the path of the program, built as a release is, in a directory that all users may read: some tests run it as another user.
var binary string

func TestMain(m *testing.M) {
	dir, err := os.MkdirTemp("", "reframe-cli-")
	if err == nil {
		err = os.Chmod(dir, 0o755)
	}
	code := 1
	if err == nil {
		os.Setenv("JITDUMPDIR", dir) // where MCJIT's perf listener writes what is gone with it (livetest's processes have their own)
		binary = filepath.Join(dir, "reframe")
		build := exec.Command("go", "build", "-o", binary, ".")
		build.Env = append(os.Environ(), "CGO_ENABLED=0")
		var out []byte
		if out, err = build.CombinedOutput(); err != nil {
			err = fmt.Errorf("%s: %w\n%s", build, err, out)
		} else {
			err = os.Chmod(binary, 0o755) // whatever the umask is
		}
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
	} else {
		code = m.Run()
	}
	os.RemoveAll(dir)
	os.Exit(code)
}

// The README promises one static binary.
func TestBinaryIsStatic(t *testing.T) {
	f, err := elf.Open(binary)
	require.NoError(t, err)
	defer f.Close()
	for _, p := range f.Progs {
		require.NotEqual(t, elf.PT_INTERP, p.Type)
	}
	libraries, err := f.DynString(elf.DT_NEEDED)
	if err == nil {
		require.Empty(t, libraries)
	}
}

// result is the result of one run.
type result struct {
	code           int
	stdout, stderr string
}

// command prepares a run that is killed if it hangs. It raises the timeout of verify, whose steps take as long as the machine is slow.
func command(t *testing.T, args ...string) *exec.Cmd {
	t.Helper()
	if len(args) > 1 && args[0] == "verify" && strings.HasPrefix(args[1], "-") && !slices.Contains(args, "--timeout") {
		args = slices.Insert(slices.Clone(args), 1, "--timeout", livetest.Patience.String())
	}
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	t.Cleanup(cancel)
	c := exec.CommandContext(ctx, binary, args...)
	c.Cancel = func() error {
		t.Errorf("%s hung", c)
		return c.Process.Kill()
	}
	return c
}

// finish runs c and returns its result. A run must never panic.
func finish(t *testing.T, c *exec.Cmd) result {
	t.Helper()
	var stdout, stderr bytes.Buffer
	c.Stdout, c.Stderr = &stdout, &stderr
	err := c.Run()
	require.NotNil(t, c.ProcessState, "%v", err)
	require.True(t, c.ProcessState.Exited(), "%v\n%s", err, &stderr)
	require.NotContains(t, stderr.String(), "goroutine ")
	if verb := c.Args[min(1, len(c.Args)-1)]; (verb == "frames" || verb == "resume") && slices.Contains(c.Args, "--json") && stdout.Len() > 0 {
		valid(t, verb+".schema.json", stdout.String()) // whichever test asks
	}
	return result{c.ProcessState.ExitCode(), stdout.String(), stderr.String()}
}

// reframe runs the program to its end.
func reframe(t *testing.T, args ...string) result {
	t.Helper()
	return finish(t, command(t, args...))
}

// nobody is a user without rights.
const nobody = 65534

// asNobody makes a command run as another user, which requires root.
func asNobody(t *testing.T, c *exec.Cmd) *exec.Cmd {
	t.Helper()
	require.Zero(t, os.Geteuid(), "this test gives up root's rights: run it as root")
	c.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: nobody, Gid: nobody}}
	c.Dir = "/"
	return c
}

// fails requires the status, and one line on stderr that holds all of the texts.
func (r result) fails(t *testing.T, code int, texts ...string) {
	t.Helper()
	require.Equal(t, code, r.code, "%s%s", r.stdout, r.stderr)
	line, rest, ended := strings.Cut(r.stderr, "\n")
	require.True(t, ended, "%q", r.stderr)
	require.True(t, strings.HasPrefix(line, "reframe: "), "%q", r.stderr)
	if code == 64 {
		require.Regexp(t, `^try: reframe( [a-z]+)? --help\n$`, rest)
	} else {
		require.Empty(t, rest)
	}
	for _, text := range texts {
		require.Contains(t, line, text)
	}
}

// notes requires the status, and one note on stderr that contains all of the texts.
func (r result) notes(t *testing.T, code int, texts ...string) {
	t.Helper()
	r.fails(t, code, append([]string{"reframe: note: "}, texts...)...)
}

// failsEmpty is fails for a run that also printed no data.
func (r result) failsEmpty(t *testing.T, code int, texts ...string) {
	t.Helper()
	r.fails(t, code, texts...)
	require.Empty(t, r.stdout)
}

// object decodes the only JSON object on stdout.
func (r result) object(t *testing.T) map[string]any {
	t.Helper()
	d := json.NewDecoder(strings.NewReader(r.stdout))
	d.UseNumber()
	var out map[string]any
	require.NoError(t, d.Decode(&out), "%s%s", r.stdout, r.stderr)
	require.False(t, d.More(), "something follows the object")
	return out
}

// status returns one field of a thread's status file (proc_pid_status(5)).
func status(pid, tid int, field string) string {
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

// threads lists the threads of a process that exist now.
func threads(pid int) []int {
	dirs, _ := filepath.Glob(fmt.Sprintf("/proc/%d/task/*", pid)) // the pattern is well-formed
	var tids []int
	for _, dir := range dirs {
		if tid, err := strconv.Atoi(filepath.Base(dir)); err == nil {
			tids = append(tids, tid)
		}
	}
	return tids
}

// unharmed requires that a process that waited in the kernel still does: it is alive, no thread is stopped, and no tracer is attached. A thread that
// was just released runs for a moment until it waits again.
func unharmed(t *testing.T, p *livetest.Process) {
	t.Helper()
	var state string
	ok := func() bool {
		state = ""
		for _, tid := range threads(p.PID) {
			state += fmt.Sprintf("thread %d: %s, traced by %s\n", tid, status(p.PID, tid, "State"), status(p.PID, tid, "TracerPid"))
		}
		waits := strings.HasPrefix(status(p.PID, p.PID, "State"), "S")
		return waits && !strings.Contains(state, "stop") && strings.Count(state, "traced by 0\n") >= strings.Count(state, "(")
	}
	require.Eventually(t, func() bool { return p.Alive() && ok() }, livetest.Patience, time.Millisecond, "%v %s", p.Alive(), &state)
	require.NotContains(t, p.Output(), "disturbed")
}

// frames lists the frames of all threads in a report.
func frames(t *testing.T, report map[string]any) []map[string]any {
	t.Helper()
	var out []map[string]any
	for _, thread := range list(t, report["threads"]) {
		out = append(out, list(t, thread["frames"])...)
	}
	return out
}

// list converts a JSON array of objects.
func list(t *testing.T, v any) []map[string]any {
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

// frameOf returns the only frame of a function.
func frameOf(t *testing.T, report map[string]any, function string) map[string]any {
	t.Helper()
	var found []map[string]any
	for _, f := range frames(t, report) {
		if f["function"] == function {
			found = append(found, f)
		}
	}
	require.Len(t, found, 1, "frames of %s", function)
	return found[0]
}

// write writes a temporary file of the test.
func write(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// edited returns a copy of a text file with one change.
func edited(t *testing.T, path, from, to string) string {
	t.Helper()
	text, err := os.ReadFile(path)
	require.NoError(t, err)
	require.Contains(t, string(text), from, path)
	return write(t, filepath.Base(path), strings.Replace(string(text), from, to, 1))
}

func layout(t *testing.T) string { return livetest.Testdata(t, "programs", "deoptimize.layout.json") }

// pid returns a process's number for the command line.
func pid(p *livetest.Process) string { return strconv.Itoa(p.PID) }
