package ptrace

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// TestTracerKeepsWhatItNeeds requires that a tracer has only the capabilities that doc/user/threats.md lists for its target.
func TestTracerKeepsWhatItNeeds(t *testing.T) {
	const dacOverride, kill, sysPtrace, sysAdmin = 1 << 1, 1 << 5, 1 << 19, 1 << 21 // linux/capability.h
	own, err := strconv.ParseUint(strings.TrimSpace(system.StatusField(os.Getpid(), "CapEff")), 16, 64)
	require.NoError(t, err)
	requireKeeps := func(t *testing.T, s *Session, want uint64) {
		t.Helper()
		t.Cleanup(func() { _ = s.Detach() })
		has := system.StatusField(tracerPID(s), "CapPrm")
		require.Equal(t, fmt.Sprintf("%016x", own&want), strings.TrimSpace(has))
	}
	cat := livetest.Tool(t, "cat")
	t.Run("launched", func(t *testing.T) {
		s, err := LaunchWith(context.Background(), []string{cat}, LaunchOptions{Stdout: os.DevNull})
		require.NoError(t, err)
		requireKeeps(t, s, dacOverride|sysPtrace)
	})
	t.Run("launched and bound", func(t *testing.T) {
		s, err := LaunchWith(context.Background(), []string{cat}, LaunchOptions{Stdout: os.DevNull, Bound: true})
		require.NoError(t, err)
		requireKeeps(t, s, dacOverride|sysPtrace|kill)
	})
	t.Run("under a seccomp filter", func(t *testing.T) {
		under := append(livetest.Without(t, "kcmp"), cat)
		c := exec.Command(under[0], under[1:]...)
		in, err := c.StdinPipe()
		require.NoError(t, err)
		require.NoError(t, c.Start())
		t.Cleanup(func() {
			in.Close()
			_ = c.Wait()
		})
		const filtered = "2" // SECCOMP_MODE_FILTER
		require.Eventually(t, func() bool { return strings.TrimSpace(system.StatusField(c.Process.Pid, "Seccomp")) == filtered }, livetest.Patience, time.Millisecond)
		s, err := Open(context.Background(), c.Process.Pid)
		require.NoError(t, err)
		requireKeeps(t, s, dacOverride|sysPtrace|sysAdmin)
	})
}
