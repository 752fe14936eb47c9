package ptrace

import (
	"bufio"
	"bytes"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"strconv"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// TestCaptureThatIsHeldUp requires that the time in which the capture itself was not scheduled does not count towards the limit for a thread to stop.
// Otherwise stopped threads would be reported as running on a busy machine.
func TestCaptureThatIsHeldUp(t *testing.T) {
	livetest.Slow(t)
	const target = "REFRAME_TEST_CAPTURE"
	if pid, err := strconv.Atoi(os.Getenv(target)); err == nil {
		captureUntilTold(t, pid)
		return
	}
	p := livetest.C(t, "threads.c", nil, "0", "15", "0")
	cmd := exec.Command(os.Args[0], "-test.run=^TestCaptureThatIsHeldUp$")
	cmd.Env = append(os.Environ(), fmt.Sprintf("%s=%d", target, p.PID))
	var output bytes.Buffer
	cmd.Stdout, cmd.Stderr = &output, &output
	told, err := cmd.StdinPipe()
	require.NoError(t, err)
	require.NoError(t, cmd.Start())
	t.Cleanup(func() { _ = cmd.Process.Kill() })
	random := rand.New(rand.NewPCG(1, 2))
	for range 15 {
		time.Sleep(time.Duration(random.IntN(30_000)) * time.Microsecond) // to a random moment, on any machine
		require.NoError(t, cmd.Process.Signal(syscall.SIGSTOP))
		time.Sleep(system.StopPatience + 50*time.Millisecond) // a slow machine stops it for longer
		require.NoError(t, cmd.Process.Signal(syscall.SIGCONT))
	}
	require.NoError(t, told.Close())
	require.NoError(t, cmd.Wait(), "%s", &output)
	require.True(t, p.Alive())
}

// captureUntilTold captures a process repeatedly until standard input is closed.
func captureUntilTold(t *testing.T, pid int) {
	end := make(chan struct{})
	go func() {
		_, _ = bufio.NewReader(os.Stdin).ReadByte()
		close(end)
	}()
	for {
		target, err := Capture(pid, Options{})
		require.NoError(t, err)
		require.Len(t, target.Threads(), 16)
		for _, th := range target.Threads() {
			require.Empty(t, th.Missing, "thread %d", th.ID)
		}
		target.Close()
		select {
		case <-end:
			return
		default:
		}
	}
}
