package remote_test

import (
	"context"
	"debug/elf"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/holder"
	"example.com/reframe/ptrace/remote"
	"example.com/reframe/test/livetest"
)

// TestDetachWithInterruptAtHit requires that the process continues with its original code if an interrupt arrives while it is stopped at a hit that
// was not yet read. gdbserver keeps the interrupt as a SIGINT; lldb-server ignores it.
func TestDetachWithInterruptAtHit(t *testing.T) {
	livetest.NeedsTools(t)
	program := livetest.Compiled(t, "gcc", filepath.Join("testdata", "ticks.c"), "-O1", "-no-pie")
	f, err := elf.Open(program)
	require.NoError(t, err)
	defer f.Close()
	symbols, err := f.Symbols()
	require.NoError(t, err)
	var tick machine.Addr
	for _, s := range symbols {
		if s.Name == "tick" {
			tick = machine.Addr(s.Value)
		}
	}
	require.NotZero(t, tick)
	for stub, hold := range stubs {
		t.Run(stub, func(t *testing.T) {
			t.Parallel()
			c := exec.Command(program)
			c.SysProcAttr = &syscall.SysProcAttr{Setpgid: true} // gdbserver sends the interrupt to the process group
			in, err := c.StdinPipe()
			require.NoError(t, err)
			begin(t, c)
			s, err := remote.Open(context.Background(), hold(t, &livetest.Process{PID: c.Process.Pid}), remote.Options{Control: true})
			require.NoError(t, err)
			require.NoError(t, s.Control.Insert(tick))
			require.NoError(t, s.Control.Resume())
			require.Eventually(t, func() bool { // after a one-byte trap instruction the pc is tick+1, until the stub moves it back
				text, err := os.ReadFile(fmt.Sprintf("/proc/%d/syscall", c.Process.Pid))
				words := strings.Fields(string(text))
				return err == nil && len(words) == 3 && slices.Contains([]string{fmt.Sprintf("%#x", uint64(tick)), fmt.Sprintf("%#x", uint64(tick)+1)}, words[2])
			}, livetest.Patience, 5*time.Millisecond)
			stop, err := s.Control.Interrupt()
			require.NoError(t, err)
			require.Contains(t, []holder.StopKind{holder.Hit, holder.Interrupted}, stop.Kind) // Interrupted if the stub had not yet seen the trap
			require.NoError(t, s.Control.Detach())
			require.NoError(t, in.Close())
			_ = c.Wait() // returns an error, because the status is not 0
			require.Equal(t, 7, c.ProcessState.ExitCode(), c.ProcessState)
		})
	}
}
