package frames_test

import (
	"bytes"
	"fmt"
	"os"
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
	"example.com/reframe/test/livetest"
)

// kills is the number of times that each test kills the program, at moments spread over the duration of a run.
var kills = livetest.Times(25, 50)

// TestKilledDuringFrames requires that the target continues if reframe is killed at any moment of frames.
func TestKilledDuringFrames(t *testing.T) {
	livetest.Slow(t)
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	killAtAnyMoment(t, p, "--ir", p.IR)
	// The target must be intact: frames and resume must work.
	r := clitest.Run(t, "resume", "-p", clitest.PID(p), "--ir", p.IR, "--layout", clitest.DeoptimizeLayout(t))
	require.Equal(t, 0, r.Code, r.Stderr)
}

// TestKilledDuringFramesOfManyThreads requires that a target of 64 threads also continues if reframe is killed during frames. Some of the threads
// sleep, spin or wait, others start and end. A thread ends the process if a system call is interrupted.
func TestKilledDuringFramesOfManyThreads(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "threads.c", nil, "30", "1", "30", "2")
	killAtAnyMoment(t, p)
	before := cpuTicks(t, p)
	require.Eventually(t, func() bool { return cpuTicks(t, p) > before }, livetest.Patience, time.Millisecond, "it makes no progress")
}

func killAtAnyMoment(t *testing.T, p *livetest.Process, args ...string) {
	t.Helper()
	args = append([]string{"frames", "-p", clitest.PID(p)}, args...)
	whole, interrupted := takes(t, args...), 0
	for n := 0; interrupted < kills; n++ {
		require.Less(t, n, 10*kills, "most runs have ended when they are to be killed")
		c := exec.Command(clitest.Binary(), args...)
		require.NoError(t, c.Start())
		time.Sleep(whole * time.Duration(n%kills) / time.Duration(kills))
		require.NoError(t, c.Process.Kill())
		_ = c.Wait() // the error gives the exit status, which is checked
		if !c.ProcessState.Exited() {
			interrupted++
		}
		clitest.RequireUnharmed(t, p)
	}
}

// takes returns the duration of a run on an otherwise idle machine.
func takes(t *testing.T, args ...string) time.Duration {
	t.Helper()
	least := livetest.Patience
	for range 3 {
		began := time.Now()
		clitest.Run(t, args...)
		least = min(least, time.Since(began))
	}
	return least
}

// cpuTicks returns the processor time of a process in clock ticks: utime of proc_pid_stat(5), which includes threads that have ended.
func cpuTicks(t *testing.T, p *livetest.Process) int {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.PID))
	require.NoError(t, err)
	fields := strings.Fields(string(text[bytes.LastIndexByte(text, ')')+1:]))
	ticks, err := strconv.Atoi(fields[14-3]) // the state, which follows the name, is field 3
	require.NoError(t, err)
	return ticks
}
