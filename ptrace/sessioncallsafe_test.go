package ptrace

import (
	"bufio"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/livetest"
)

// frozenGroup puts a process into a control group of cgroup2, and returns a function that freezes or thaws it. ok is false if this process may not
// create a group.
func frozenGroup(t *testing.T, pid int) (freeze func(string), ok bool) {
	t.Helper()
	mounts, err := os.ReadFile("/proc/self/mounts")
	require.NoError(t, err)
	for line := range strings.Lines(string(mounts)) {
		fields := strings.Fields(line)
		dir := filepath.Join(fields[1], fmt.Sprintf("reframe-test-%d", pid))
		if fields[2] != "cgroup2" || os.Mkdir(dir, 0o755) != nil {
			continue
		}
		t.Cleanup(func() {
			_ = os.WriteFile(filepath.Join(fields[1], "cgroup.procs"), fmt.Append(nil, pid), 0) // an error means that it has ended
			require.NoError(t, os.Remove(dir))
		})
		require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.procs"), []byte(fmt.Sprint(pid)), 0))
		return func(state string) {
			require.NoError(t, os.WriteFile(filepath.Join(dir, "cgroup.freeze"), []byte(state), 0))
		}, true
	}
	return func(string) {}, false
}

// TestTrapHandlerOfAFrozenProcess requires that a process whose control group is frozen while breakpoints are set, or while the session ends,
// continues after the thaw as if it had not been traced. When another breakpoint is set, the trap handler must be installed.
func TestTrapHandlerOfAFrozenProcess(t *testing.T) {
	p := startTraps(t, "plain")
	freeze, ok := frozenGroup(t, p.pid())
	freeze("1")
	t.Cleanup(func() { freeze("0") })
	s := p.trace(Breakpoint{})
	if ok {
		require.Equal(t, "the control group of the process is frozen", s.memory.unhandled)
	}
	freeze("0")
	require.Equal(t, sumOfTraps, p.says("c"))
	require.Equal(t, sumOfTraps, p.says("c"))
	require.NoError(t, s.Insert(Breakpoint{Addr: p.site}))
	require.Empty(t, s.memory.unhandled)
	require.Equal(t, sumOfTraps, p.says("c"))
	require.Equal(t, "other", p.says("a"))
	freeze("1")
	require.NoError(t, s.Detach())
	freeze("0")
	require.Equal(t, sumOfTraps, p.says("c"))
	s = p.trace(Breakpoint{})
	require.Empty(t, s.memory.unhandled)
	require.NoError(t, s.Detach())
	require.Equal(t, "default", p.says("a"))
	require.Equal(t, sumOfTraps, p.says("c"))
}

// TestTrapHandlerAndARestartableSequence requires that a thread which is in a restartable sequence when the first breakpoint is set aborts the
// sequence, as after any interruption, because another thread makes the system calls that install the handler.
func TestTrapHandlerAndARestartableSequence(t *testing.T) {
	path := livetest.CBinary(t, "../ptrace/testdata/sequence.c", "-no-pie")
	names := symbols(t, path)
	cmd := exec.Command(path)
	out, err := cmd.StdoutPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill(); _ = cmd.Wait() })
	lines := bufio.NewReader(out)
	line, err := lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "ready\n", line)
	s, err := Open(context.Background(), cmd.Process.Pid)
	require.NoError(t, err)
	require.NoError(t, s.Insert(Breakpoint{Addr: names["site"]}))
	require.Empty(t, s.memory.unhandled)
	memory, err := os.OpenFile(fmt.Sprintf("/proc/%d/mem", cmd.Process.Pid), os.O_WRONLY, 0)
	require.NoError(t, err)
	defer memory.Close()
	_, err = memory.WriteAt([]byte{1}, int64(names["changed"]))
	require.NoError(t, err)
	for err == nil {
		var e Event
		if e, err = s.Next(context.Background()); e.Kind == Ended {
			break
		}
	}
	require.NoError(t, err)
	line, err = lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "aborted\n", line)
}
