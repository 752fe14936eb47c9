package frames_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// withTracing returns the start of a command line that runs a program as another user with only CAP_SYS_PTRACE. The program may trace all processes,
// but may not open files that belong to their users, such as /proc/PID/mem.
func withTracing(t *testing.T) []string {
	t.Helper()
	return []string{livetest.Tool(t, "setpriv"), "--reuid", "65534", "--regid", "65534", "--clear-groups", "--bounding-set", "-all,+sys_ptrace", "--inh-caps", "-all,+sys_ptrace", "--ambient-caps", "-all,+sys_ptrace"}
}

// commandUnder returns a command that runs reframe through the command line under.
func commandUnder(t *testing.T, under []string, args ...string) *exec.Cmd {
	t.Helper()
	c := clitest.Command(t, args...)
	c.Path, c.Args = under[0], slices.Concat(under, []string{clitest.Binary()}, args)
	return c
}

// TestCapSysPtraceAlone requires that frames, record and trace need only CAP_SYS_PTRACE for another user's process. Breakpoints are then written with
// ptrace(2). A child that the process forks must not contain breakpoints.
func TestCapSysPtraceAlone(t *testing.T) {
	t.Parallel()
	object, _ := clitest.TickObject(t)
	o := livetest.ObjectHostOptions{Threads: 2, Rounds: 2, Middle: "fork"}
	p, begin := livetest.ObjectHost(t, object, o)
	under := withTracing(t)
	r := clitest.Finish(t, commandUnder(t, under, "frames", "-p", clitest.PID(p)))
	require.Equal(t, 0, r.Code, r.Stderr)
	require.Regexp(t, `(?m)^  #\d+ +native  main\+0x`, r.Stdout)

	dir, err := os.MkdirTemp("", "reframe")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o777))
	core := filepath.Join(dir, "core")
	for _, memory := range []string{"minimal", "writable"} {
		r = clitest.Finish(t, commandUnder(t, under, "record", "-p", clitest.PID(p), "--memory", memory, "--force", "-o", core))
		require.Equal(t, 0, r.Code, r.Stderr)
		r = clitest.Run(t, "frames", "--core", core)
		require.Equal(t, 0, r.Code, r.Stderr)
		require.Regexp(t, `(?m)^  #\d+ +native  main\+0x`, r.Stdout, memory)
		vector, err := os.ReadFile("/proc/" + clitest.PID(p) + "/auxv")
		require.NoError(t, err)
		require.NotEmpty(t, vector)
		file, err := os.ReadFile(core)
		require.NoError(t, err)
		require.Contains(t, string(file), string(vector), "the core's auxiliary vector is that of the process")
	}

	c := commandUnder(t, under, "trace", "-p", clitest.PID(p), "--count")
	var out strings.Builder
	c.Stdout, c.Stderr = &out, &out
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	begin()
	require.NoError(t, c.Wait(), "%s", &out)
	require.Regexp(t, `(?m)^4000 exits in .*; the process exited with status 0$`, out.String())
	require.NoError(t, p.Wait())
	checksum, child := livetest.CVersion(t, "tick.ll", o)
	require.Contains(t, p.Output(), checksum)
	require.Contains(t, p.Output(), child)
}
