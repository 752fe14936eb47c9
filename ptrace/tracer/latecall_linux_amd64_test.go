package tracer

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/test/livetest"
)

// TestLateCall requires that a thread gets its own registers back after a system call for the tracer that does not return in time, because the
// thread's control group is frozen meanwhile. Another process freezes the group, because the tracer drops the privileges for that. If this process
// may not create a group, the test makes a call that returns in time.
func TestLateCall(t *testing.T) {
	livetest.NeedsTools(t)
	if dirs := os.Getenv("LATE_CALL_IN"); dirs != "" {
		for _, dir := range strings.Split(dirs, " ") {
			lateCall(t, dir)
		}
		return
	}
	dirs := []string{"nowhere"}
	for _, m := range cgroupMounts() {
		dir := filepath.Join(m.at, fmt.Sprintf("reframe-test-%d", os.Getpid()))
		if os.Mkdir(dir, 0o755) == nil {
			dirs = append(dirs, dir)
		}
	}
	cmd := exec.CommandContext(t.Context(), os.Args[0], "-test.run", "^TestLateCall$", "-test.v")
	cmd.Env = append(os.Environ(), "LATE_CALL_IN="+strings.Join(dirs, " "))
	out, err := cmd.CombinedOutput()
	for _, dir := range dirs[1:] {
		require.Eventually(t, func() bool { return os.Remove(dir) == nil }, livetest.Patience, time.Millisecond)
	}
	require.NoError(t, err, "%s", out)
}

// lateCall freezes the control group of a process before the process makes a call, and thaws the group afterwards.
func lateCall(t *testing.T, dir string) {
	s := traced(t)
	k := &kicker{tid: unix.Gettid(), asleep: &s.asleep} // as in serve, the signal's handler interrupts waits
	require.NoError(t, k.prepare())
	go k.watch(&s.sleeps)
	set := func(file, value string) {
		path := filepath.Join(dir, file)
		if _, err := os.Stat(path); err == nil {
			require.NoError(t, os.WriteFile(path, []byte(value), 0))
		}
	}
	set("cgroup.procs", fmt.Sprint(s.pid))
	t.Cleanup(func() { set("cgroup.freeze", "0"); set("freezer.state", "THAWED") })
	thread := s.threads[s.pid]
	var before, after General
	require.NoError(t, getRegs(s.pid, &before))
	at, found := s.syscallAt()
	require.True(t, found)
	r, err := s.newRemote(thread, s.memory, at)
	require.NoError(t, err)
	set("cgroup.freeze", "1")
	set("freezer.state", "FROZEN")
	_, err = r.call(unix.SYS_GETPID)
	if dir == "nowhere" {
		require.NoError(t, err)
	} else {
		require.ErrorIs(t, err, errLateCall)
	}
	r.end()
	set("cgroup.freeze", "0")
	set("freezer.state", "THAWED")
	if thread.running {
		var ws unix.WaitStatus
		_, err := s.collect(s.pid, &ws, unix.WALL)
		require.NoError(t, err)
		require.True(t, ws.Stopped())
	}
	require.Empty(t, s.owed)
	require.NoError(t, getRegs(s.pid, &after))
	require.Equal(t, before, after, dir)
}
