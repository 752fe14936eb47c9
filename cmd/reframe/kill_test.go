package main_test

import (
	"os/exec"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reframe/internal/livetest"
)

// kills is how often each test kills the program while it looks, at moments spread over
// the time that a look takes.
const kills = 50

// reframe is killed at any moment of frames: the target runs on.
func TestKilledDuringFrames(t *testing.T) {
	p := livetest.Lli(t, 19, "deoptimize.ll", "mcjit")
	killAtAnyMoment(t, p, "--ir", p.IR)
	// It is whole: it can be looked at, and carried on from.
	r := reframe(t, "resume", "-p", pid(p), "--ir", p.IR, "--layout", layout(t))
	require.Equal(t, 0, r.code, r.stderr)
}

// The same with 64 threads: some sleep, some spin, some wait, some come and go. Those
// whose system call would be interrupted say so and end the process.
func TestKilledDuringFramesOfManyThreads(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "30", "1", "30", "2")
	killAtAnyMoment(t, p)
}

func killAtAnyMoment(t *testing.T, p *livetest.Process, args ...string) {
	t.Helper()
	args = append([]string{"frames", "-p", pid(p)}, args...)
	began := time.Now()
	r := reframe(t, args...)
	whole := time.Since(began)
	require.Contains(t, []int{0, 2}, r.code, r.stderr)
	interrupted := 0
	for n := range kills {
		c := exec.Command(binary, args...)
		require.NoError(t, c.Start())
		time.Sleep(whole * time.Duration(n) / kills)
		require.NoError(t, c.Process.Kill())
		if err := c.Wait(); strings.Contains(err.Error(), "killed") {
			interrupted++
		}
		unharmed(t, p)
	}
	require.Greater(t, interrupted, kills/2, "most runs had ended when they were to be killed")
	progress(t, p)
}

// progress requires that a process which has threads that run gets on.
func progress(t *testing.T, p *livetest.Process) {
	t.Helper()
	before := switches(p)
	if before == 0 {
		return
	}
	require.Eventually(t, func() bool { return switches(p) > before }, 5*time.Second, time.Millisecond)
}
