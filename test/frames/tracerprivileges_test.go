package frames_test

import (
	"fmt"
	"os"
	"strconv"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// TestTracerPrivileges requires that all threads of the tracer of an attached process, and of the watchdog that traces the tracer, have only
// CAP_SYS_PTRACE and cannot gain other capabilities. The tracer also has CAP_DAC_OVERRIDE.
func TestTracerPrivileges(t *testing.T) {
	t.Parallel()
	const sysPtrace, dacOverride = 1 << 19, 1 << 1 // linux/capability.h
	own, err := strconv.ParseUint(clitest.ThreadStatus(os.Getpid(), os.Getpid(), "CapEff"), 16, 64)
	require.NoError(t, err)
	object, _ := clitest.TickObject(t)
	o := livetest.ObjectHostOptions{Threads: 2, Rounds: 2}
	p, begin := livetest.ObjectHost(t, object, o)
	c := clitest.Command(t, "trace", "-p", clitest.PID(p), "--count")
	require.NoError(t, c.Start())
	clitest.WaitTraced(t, p)
	tracer := clitest.TracerOf(p.PID)
	watchdog := 0
	require.Eventually(t, func() bool {
		watchdog = clitest.TracerOf(tracer)
		return watchdog != 0
	}, livetest.Patience, time.Millisecond)
	for name, pid := range map[string]int{"rf-guard": tracer, "rf-watchdog": watchdog} {
		require.Equal(t, name, clitest.ThreadStatus(pid, pid, "Name"))
		kept := own & sysPtrace
		if name == "rf-guard" {
			kept |= own & dacOverride
		}
		has := fmt.Sprintf("%016x", kept)
		for _, tid := range clitest.Threads(pid) {
			for field, want := range map[string]string{"CapEff": has, "CapPrm": has, "CapInh": "0000000000000000", "CapAmb": "0000000000000000", "NoNewPrivs": "1"} {
				require.Eventually(t, func() bool { return clitest.ThreadStatus(pid, tid, field) == want }, livetest.Patience, time.Millisecond,
					"%s, thread %d: %s", name, tid, field)
			}
		}
	}
	begin()
	require.NoError(t, c.Wait())
	require.NoError(t, p.Wait())
	checksum, _ := livetest.CVersion(t, "tick.ll", o)
	require.Contains(t, p.Output(), checksum)
}
