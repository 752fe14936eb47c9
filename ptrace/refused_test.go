package ptrace

import (
	"context"
	"fmt"
	"math"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// refused opens a process with Capture, Survey and the other functions. All must fail with the same error.
func refused(t *testing.T, pid int, sentinel error, text string) {
	t.Helper()
	for name, try := range map[string]func() error{
		"capture": func() error { _, err := Capture(pid, Options{}); return err },
		"hold":    func() error { _, err := Capture(pid, Options{Hold: true}); return err },
		"survey":  func() error { _, err := Survey(pid, Options{}); return err },
		"open":    func() error { _, err := Open(context.Background(), pid); return err },
	} {
		err := try()
		require.ErrorIs(t, err, sentinel, name)
		require.ErrorContains(t, err, text, name)
		var e *Error
		require.ErrorAs(t, err, &e, name)
		require.Equal(t, pid, e.PID, name)
		require.NotContains(t, err.Error(), "\n", name)
	}
}

func TestNoProcess(t *testing.T) {
	limit, err := strconv.Atoi(strings.TrimSpace(procFile(t, "sys/kernel/pid_max")))
	require.NoError(t, err)
	for _, pid := range []int{0, -1, limit + 1, math.MaxInt} {
		refused(t, pid, ErrNoProcess, fmt.Sprintf("process %d: cannot attach: no such process", pid))
	}
}

func TestZombie(t *testing.T) {
	livetest.NeedsTools(t)
	cmd := exec.Command("true")
	require.NoError(t, cmd.Start())
	defer cmd.Wait() //nolint: its status does not matter
	requireState(t, cmd.Process.Pid, 'Z')
	refused(t, cmd.Process.Pid, ErrNoProcess, "it has ended, and its parent has not waited for it yet")
}

func Test32Bit(t *testing.T) {
	if !livetest.Runs32Bit(t) {
		return // root may trace all processes
	}
	p := livetest.C(t, "bits32.c", []string{"-m32", "-nostdlib", "-static", "-fno-stack-protector", "-fno-pie"})
	before := states(t, p.PID)
	refused(t, p.PID, Err32Bit, "a 32-bit process; only 64-bit ones can be read")
	require.Equal(t, before, states(t, p.PID))
}

// TestKernelThread requires that kernel threads are recognized and refused. In a container none is visible.
func TestKernelThread(t *testing.T) {
	require.False(t, kernelThread(os.Getpid()))
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	require.NoError(t, err)
	tried := 0
	for _, path := range stats {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(path)))
		require.NoError(t, err)
		// Choose a kernel thread that persists: number 2, or a child of it.
		if stat, err := os.ReadFile(path); err != nil || !strings.HasPrefix(string(stat), "2 (kthreadd)") && !strings.HasPrefix(string(stat), fmt.Sprintf("%d (ksoftirqd/", pid)) {
			continue
		}
		tried++
		_, err = Capture(pid, Options{})
		require.ErrorContains(t, err, "a kernel thread, which has no memory of its own")
	}
	t.Logf("%d kernel threads", tried)
}

// TestTraced requires that the error for a traced process names the tracer.
func TestTraced(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1")
	target := capture(t, p.PID, Options{Hold: true})
	_, err := Capture(p.PID, Options{})
	require.ErrorIs(t, err, ErrPermission)
	require.NotEqual(t, "0", system.StatusField(p.PID, "TracerPid"))
	require.ErrorContains(t, err, fmt.Sprintf("process %d (%s) traces it already; have it detach first", os.Getpid(), system.ThreadName(os.Getpid(), os.Getpid())))
	require.Equal(t, byte('t'), system.ThreadState(p.PID, p.PID), "the one who holds it still does")
	target.Release()
	requireState(t, p.PID, 'S')
	require.Len(t, capture(t, p.PID, Options{}).Threads(), 2)
	require.Equal(t, "ready\n", p.Output())
}

const asNobody = "REFRAME_TEST_CAPTURE"

// TestThreadTraced requires that a capture fails if one thread has another tracer. Threads that the capture has already seized must be released
// before the error is created. Otherwise the search for the tracer would find this process.
func TestThreadTraced(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "threads.c", nil, "8", "1", "2")
	tids, err := system.ThreadIDs(p.PID)
	require.NoError(t, err)
	last := tids[len(tids)-1]
	other := newSeizer()
	defer other.end()
	require.NoError(t, other.do(func() error { return system.Request(ptraceSeize, last, 0) }))
	for range livetest.Times(70, 200) {
		for _, hold := range []bool{false, true} {
			_, err := Capture(p.PID, Options{Hold: hold})
			var tracers []string
			for _, tid := range tids {
				tracers = append(tracers, system.StatusField(tid, "TracerPid"))
			}
			require.ErrorIs(t, err, ErrPermission)
			for i, tid := range tids {
				require.Equal(t, tid == last, tracers[i] != "0", "%d of %d", i, len(tids))
			}
		}
	}
}

// TestPermission requires an error with advice if a permission is missing. The test starts itself again as another user.
func TestPermission(t *testing.T) {
	livetest.NeedsTools(t)
	if pid, err := strconv.Atoi(os.Getenv(asNobody)); err == nil {
		refused(t, pid, ErrPermission, "run as root")
		return
	}
	if os.Geteuid() != 0 {
		refused(t, 1, ErrPermission, "run as root")
		return
	}
	p := livetest.C(t, "threads.c", nil, "1")
	dir, err := os.MkdirTemp("", "reframe")
	require.NoError(t, err)
	defer os.RemoveAll(dir)
	require.NoError(t, os.Chmod(dir, 0o755))
	self, err := os.ReadFile("/proc/self/exe")
	require.NoError(t, err)
	path := filepath.Join(dir, "test")
	require.NoError(t, os.WriteFile(path, self, 0o755))
	require.NoError(t, os.Chmod(path, 0o755)) // independently of the umask
	cmd := exec.Command(path, "-test.run=^TestPermission$", "-test.v")
	cmd.Env = []string{fmt.Sprintf("%s=%d", asNobody, p.PID)}
	cmd.Dir = dir
	cmd.SysProcAttr = &syscall.SysProcAttr{Credential: &syscall.Credential{Uid: 65534, Gid: 65534}}
	out, err := cmd.CombinedOutput()
	require.NoError(t, err, "%s", out)
	require.Contains(t, string(out), "PASS: TestPermission")
	time.Sleep(10 * time.Millisecond) // enough time for a failure to show; on a slow machine the test may miss a failure, but never fails wrongly
	require.Equal(t, "ready\n", p.Output())
}
