package delve

import (
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
	c, err := dial(t.Context(), addr, timeout)
	require.NoError(t, err)
	defer c.conn.Close()
	var result struct{}
	require.NoError(t, c.call("Command", map[string]string{"name": name}, &result))
}

// TestRunning requires that a process that runs is refused, and that it still runs afterwards.
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

// TestResumedMeanwhile requires that a target is lost if another client resumes the process, also if the process stops again at once.
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
			other, err := dial(t.Context(), addr, timeout)
			require.NoError(t, err)
			defer other.conn.Close()
			_, err = other.conn.Write([]byte(`{"method":"RPCServer.Command","params":[{"name":"continue"}],"id":1}`))
			require.NoError(t, err)
			require.Eventually(t, func() bool { return idle(t, addr) != nil }, livetest.Patience, time.Millisecond)
			if again {
				command(t, addr, "halt")
			}
			if again && !look {
				_, err = s.Memory.Read(b, sp)
				require.NoError(t, err) // it stopped at the same place
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

// idle returns an error if the process runs.
func idle(t *testing.T, addr string) error {
	t.Helper()
	c, err := dial(t.Context(), addr, timeout)
	require.NoError(t, err)
	defer c.conn.Close()
	_, err = c.getState()
	return err
}

// TestEnd requires that the end of a connection leaves a server for many clients as it was, and does to the process of another server what the note says.
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

// TestEndedProcess requires that a target whose process is killed is lost.
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
