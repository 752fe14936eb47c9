package delve

import (
	"encoding/json"
	"path/filepath"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// command runs a command of Delve as another client.
func command(t *testing.T, addr, name string) {
	t.Helper()
	c, err := dial(t.Context(), addr, livetest.Patience)
	require.NoError(t, err)
	defer c.conn.Close()
	var result struct{}
	require.NoError(t, c.call("Command", map[string]string{"name": name}, &result))
}

// TestRunning requires that a running process is refused, and that it still runs afterwards.
func TestRunning(t *testing.T) {
	p, _, addr := attached(t, "--accept-multiclient", "--continue")
	require.Eventually(t, func() bool { return idle(t, addr) != nil }, livetest.Patience, time.Millisecond)
	_, err := Open(t.Context(), addr, Options{})
	require.ErrorIs(t, err, ErrRunning)
	require.ErrorContains(t, err, "the process runs")
	require.NotEqual(t, byte('t'), system.ThreadState(p.PID, p.PID))
	command(t, addr, "halt")
	s, err := Open(t.Context(), addr, Options{})
	require.NoError(t, err)
	require.NoError(t, s.Close())
}

// TestResumedMeanwhile requires that a target is lost if another client resumes the process, even if the process stops again immediately. A note must
// say that requests alone cannot detect this if the process stops at the same addresses.
func TestResumedMeanwhile(t *testing.T) {
	for _, again := range []bool{false, true} {
		_, before, addr := attached(t, "--accept-multiclient")
		sp, err := before.Threads()[0].Registers.Addr(machine.AMD64.SP)
		require.NoError(t, err)
		both(t, func(t *testing.T, look bool) {
			s, err := open(t.Context(), addr, Options{}, look)
			require.NoError(t, err)
			defer s.Close()
			b := make([]byte, 16)
			_, err = s.Memory.Read(b, sp)
			require.NoError(t, err)
			resume(t, addr)
			if again {
				command(t, addr, "halt")
			}
			if again && !look {
				_, err = s.Memory.Read(b, sp)
				require.NoError(t, err) // it stopped at the same place
				require.Contains(t, s.Notes, unnoticed)
				return
			}
			// Delve marks the process as running before it resumes the threads.
			require.Eventually(t, func() bool { _, err = s.Memory.Read(b, sp); return err != nil }, livetest.Patience, time.Millisecond)
			require.ErrorIs(t, err, holder.ErrLost)
			require.ErrorContains(t, err, "another client of dlv resumed it")
			if !again {
				command(t, addr, "halt")
			}
		})
	}
}

// resume continues the process as another client, and returns when it runs.
func resume(t *testing.T, addr string) {
	t.Helper()
	other, err := dial(t.Context(), addr, livetest.Patience)
	require.NoError(t, err)
	t.Cleanup(func() { other.conn.Close() })
	_, err = other.conn.Write([]byte(`{"method":"RPCServer.Command","params":[{"name":"continue"}],"id":1}`))
	require.NoError(t, err)
	require.Eventually(t, func() bool { return idle(t, addr) != nil }, livetest.Patience, time.Millisecond)
}

// TestResumedBetweenRequests requires an error if, after the registers were read, another client resumes the process, which stops at the same
// addresses before the files of this machine are read.
func TestResumedBetweenRequests(t *testing.T) {
	_, _, addr := attached(t, "--accept-multiclient")
	between := relay(t, addr, func(method, _ string, result json.RawMessage) json.RawMessage {
		if method == "ListBreakpoints" {
			resume(t, addr)
			command(t, addr, "halt")
		}
		return result
	})
	_, err := Open(t.Context(), between, Options{})
	require.ErrorIs(t, err, errMoved)
}

// TestOneThreadSteps requires that a target is lost if another client steps one thread, the last of many.
func TestOneThreadSteps(t *testing.T) {
	p := livetest.C(t, filepath.Join("..", "ptrace", "delve", "testdata", "threads.c"), nil)
	addr := livetest.Headless(t, "attach", strconv.Itoa(p.PID), "--accept-multiclient").Addr
	s, err := Open(t.Context(), addr, Options{})
	require.NoError(t, err)
	defer s.Close()
	last := s.Threads[len(s.Threads)-1]
	require.Len(t, s.Threads, 13)
	sp, err := s.Threads[0].Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	b := make([]byte, 16)
	other, err := dial(t.Context(), addr, livetest.Patience)
	require.NoError(t, err)
	defer other.conn.Close()
	var result struct{}
	require.NoError(t, other.call("Command", map[string]any{"name": "switchThread", "threadID": last.ID}, &result))
	_, err = s.Memory.Read(b, sp)
	require.NoError(t, err)
	require.NoError(t, other.call("Command", map[string]any{"name": "stepInstruction"}, &result))
	_, err = s.Memory.Read(b, sp)
	require.ErrorIs(t, err, errMoved)
}

// idle returns an error if the process is running.
func idle(t *testing.T, addr string) error {
	t.Helper()
	c, err := dial(t.Context(), addr, livetest.Patience)
	require.NoError(t, err)
	defer c.conn.Close()
	_, err = c.getState()
	return err
}

// TestEnd closes the connections to three kinds of servers. The state of a server for many clients must not change. Other servers detach from the
// process or kill it, as the note says.
func TestEnd(t *testing.T) {
	t.Run("many clients", func(t *testing.T) {
		p, _, addr := attached(t, "--accept-multiclient")
		for range 3 {
			s, err := Open(t.Context(), addr, Options{})
			require.NoError(t, err)
			require.Empty(t, s.Notes)
			require.NoError(t, s.Close())
			require.Equal(t, byte('t'), system.ThreadState(p.PID, p.PID))
		}
	})
	t.Run("attach", func(t *testing.T) {
		p, _, addr := attached(t)
		s, err := Open(t.Context(), addr, Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"this dlv was started without --accept-multiclient: after this command it ends, and detaches from the process, which runs on"}, s.Notes)
		require.NoError(t, s.Close())
		require.Eventually(t, func() bool { return system.StatusField(p.PID, "TracerPid") == "0" }, livetest.Patience, time.Millisecond)
		require.Eventually(t, func() bool { return system.ThreadState(p.PID, p.PID) == 'S' }, livetest.Patience, time.Millisecond)
	})
	t.Run("exec", func(t *testing.T) {
		exe := livetest.CBinary(t, "nojit.c")
		s, err := Open(t.Context(), livetest.Headless(t, "exec", exe).Addr, Options{})
		require.NoError(t, err)
		require.Equal(t, []string{"this dlv was started without --accept-multiclient: after this command it ends, and kills the process, which it started"}, s.Notes)
		require.NoError(t, s.Close())
		require.Eventually(t, func() bool { return system.Ended(s.PID, s.PID) }, livetest.Patience, time.Millisecond)
	})
}

// TestEndedProcess requires that a target is lost if its process is killed.
func TestEndedProcess(t *testing.T) {
	p, before, addr := attached(t, "--accept-multiclient")
	sp, err := before.Threads()[0].Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	s, err := Open(t.Context(), addr, Options{})
	require.NoError(t, err)
	defer s.Close()
	require.NoError(t, syscall.Kill(p.PID, syscall.SIGKILL))
	require.Eventually(t, func() bool { return system.Ended(p.PID, p.PID) }, livetest.Patience, time.Millisecond)
	_, err = s.Memory.Read(make([]byte, 16), sp)
	require.ErrorIs(t, err, holder.ErrLost)
	_, err = Open(t.Context(), addr, Options{})
	require.ErrorContains(t, err, "no such process")
}
