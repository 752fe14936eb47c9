package ptrace

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"
	"unsafe"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// withoutRseq lets tests start processes whose memory only the process itself changes. Otherwise the kernel writes into a thread's rseq area
// (rseq(2)) whenever the thread resumes.
func withoutRseq(t *testing.T) { t.Setenv("GLIBC_TUNABLES", "glibc.pthread.rseq=0") }

// TestCaptureLeavesNoTrace requires that a capture leaves each process unchanged.
func TestCaptureLeavesNoTrace(t *testing.T) {
	withoutRseq(t)
	for _, c := range []struct {
		name    string
		args    []string // sleepers, spinners, waiters
		threads int
	}{
		{"pause", nil, 1},
		{"nanosleep and futex", []string{"2", "0", "2"}, 5},
		{"64 threads", []string{"40", "0", "23"}, 64},
	} {
		t.Run(c.name, func(t *testing.T) {
			p := livetest.C(t, "threads.c", nil, c.args...)
			p.Quiet(t, 0)
			before, memory := states(t, p.PID), hashMemory(t, p.PID)
			for range 10 {
				target := capture(t, p.PID, Options{})
				require.Len(t, target.Threads(), c.threads)
				require.Equal(t, p.PID, target.Threads()[0].ID)
				for _, th := range target.Threads() {
					require.Empty(t, th.Missing)
					require.Equal(t, "threads", th.Name)
				}
				require.Positive(t, target.Pause)
				requireStates(t, p.PID, before)
			}
			require.Equal(t, memory, hashMemory(t, p.PID))
			requireText(t, p.PID)
			require.Equal(t, "ready\n", p.Output())
			require.True(t, p.Alive())
		})
	}
}

// TestCaptureRunning requires that running threads still run after a capture.
func TestCaptureRunning(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "1", "2", "1")
	for range 20 {
		require.Len(t, capture(t, p.PID, Options{}).Threads(), 5)
	}
	ticks := func() string { return strings.Fields(procFile(t, "%d/stat", p.PID))[13] }
	before := ticks()
	require.Eventually(t, func() bool { return ticks() != before }, livetest.Patience, 10*time.Millisecond, "no thread runs any more")
	require.Equal(t, "ready\n", p.Output())
	require.Contains(t, states(t, p.PID), "TracerPid:\t0")
	require.NotRegexp(t, `TracerPid:\t[1-9]`, states(t, p.PID))
}

func TestCaptureStopped(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "2", "1", "2")
	p.Freeze(t)
	before := states(t, p.PID)
	require.NotContains(t, before, "State:\tS")
	for range 10 {
		target := capture(t, p.PID, Options{})
		require.Len(t, target.Threads(), 6)
		for _, th := range target.Threads() {
			require.Empty(t, th.Missing)
		}
		requireStates(t, p.PID, before)
	}
	held := capture(t, p.PID, Options{Hold: true})
	requireState(t, p.PID, 't')
	held.Release()
	requireStates(t, p.PID, before)
	p.Signal(t, syscall.SIGCONT)
	requireState(t, p.PID, 'S')
	time.Sleep(10 * time.Millisecond) // enough time for a failure to show; on a slow machine the test may miss a failure, but never fails wrongly
	require.Equal(t, "ready\n", p.Output())
}

// TestCaptureWhileStopping requires that a process that is stopped and continued during captures is in the last requested state afterwards.
func TestCaptureWhileStopping(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "2", "1", "2")
	for range 20 {
		for _, c := range []struct {
			signal syscall.Signal
			state  byte
		}{{syscall.SIGSTOP, 'T'}, {syscall.SIGCONT, 'S'}} {
			done := make(chan error)
			go func() {
				target, err := Capture(p.PID, Options{})
				if err == nil {
					target.Close()
				}
				done <- err
			}()
			p.Signal(t, c.signal)
			require.NoError(t, <-done)
			requireState(t, p.PID, c.state)
		}
	}
	require.Equal(t, "ready\n", p.Output())
}

// TestCaptureChurn captures a process whose threads start and end continuously.
func TestCaptureChurn(t *testing.T) {
	livetest.Slow(t)
	p := livetest.C(t, "threads.c", nil, "3", "1", "3", "3")
	for range 50 {
		target, err := Capture(p.PID, Options{})
		require.NoError(t, err)
		require.GreaterOrEqual(t, len(target.Threads()), 11)
		for _, th := range target.Threads() {
			require.Empty(t, th.Missing, "thread %d", th.ID)
		}
		target.Close()
	}
	require.Equal(t, "ready\n", p.Output())
	require.True(t, p.Alive())
}

// queue sends a signal with a value. Queued signals of the same kind are not merged (sigqueue(3)).
func queue(t *testing.T, pid int, signal, value int) {
	t.Helper()
	const siQueue = -1
	var info [128]byte
	*(*int32)(unsafe.Pointer(&info[0])) = int32(signal)
	*(*int32)(unsafe.Pointer(&info[8])) = siQueue
	*(*int32)(unsafe.Pointer(&info[24])) = int32(value)
	for {
		_, _, errno := unix.Syscall(unix.SYS_RT_SIGQUEUEINFO, uintptr(pid), uintptr(signal), uintptr(unsafe.Pointer(&info)))
		if errno != unix.EAGAIN { // the queue is full
			require.Zero(t, errno)
			return
		}
		time.Sleep(time.Millisecond) // pauses at least once, however slowly the pipe is emptied
	}
}

// sigrtmax is the signal that the kernel delivers after all other pending signals.
const sigrtmax = syscall.Signal(64)

// TestCaptureSignals requires that each signal that arrives during a capture is delivered exactly once, with the data sent with it.
func TestCaptureSignals(t *testing.T) {
	livetest.Slow(t)
	p := program(t, "signals.c", nil)
	const sigrtmin, enough = 34, 20
	sent := make(chan struct{})
	n := 0
	var captures atomic.Int32
	go func() {
		defer close(sent)
		for n < 2000 || captures.Load() <= enough { // a slow machine reaches these numbers later
			n++
			queue(t, p.PID, sigrtmin, n)
			time.Sleep(50 * time.Microsecond) // signals are sent continuously, also on a slow machine
		}
	}()
	for done := false; !done; captures.Add(1) {
		target, err := Capture(p.PID, Options{})
		require.NoError(t, err)
		target.Close()
		select {
		case <-sent:
			done = true
		default:
		}
	}
	require.Greater(t, captures.Load(), int32(enough))
	p.Signal(t, sigrtmax)
	want := fmt.Sprintf("signals %d sum %d\n", n, n*(n+1)/2)
	require.Eventually(t, func() bool { return strings.Contains(p.Output(), "signals ") }, livetest.Patience, time.Millisecond)
	require.Equal(t, "ready\n"+want, p.Output())
}

// TestHeldSignal requires that a signal that arrives while a process is held waits until it is resumed.
func TestHeldSignal(t *testing.T) {
	p := program(t, "signals.c", nil)
	target := capture(t, p.PID, Options{Hold: true})
	queue(t, p.PID, 34, 5)
	time.Sleep(20 * time.Millisecond) // the signal must not arrive during this time; a slow machine may miss a failure, but never fails wrongly
	require.Equal(t, byte('t'), system.ThreadState(p.PID, p.PID))
	target.Release()
	requireState(t, p.PID, 'S')
	p.Signal(t, sigrtmax)
	require.Eventually(t, func() bool { return strings.Contains(p.Output(), "signals 1 sum 5\n") }, livetest.Patience, time.Millisecond, p.Output())
}

// TestHeld requires that all memory of a held process can be read, and that the process is unchanged after it is resumed.
func TestHeld(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "2", "1", "2")
	before := procFile(t, "%d/task/%d/syscall", p.PID, p.PID)
	target := capture(t, p.PID, Options{Hold: true})
	const while = 20 * time.Millisecond // a slow machine holds it longer
	time.Sleep(while)
	tids, err := system.ThreadIDs(p.PID)
	require.NoError(t, err)
	require.Len(t, tids, 6)
	for _, tid := range tids {
		require.Equal(t, byte('t'), system.ThreadState(p.PID, tid))
	}
	for _, r := range target.maps {
		if r.Read && r.Path != "[vvar]" && r.Path != "[vvar_vclock]" && r.Path != "[vsyscall]" {
			b := make([]byte, 64)
			require.NoError(t, target.ReadMemory(b, r.Start), "%v %s", r.Start, r.Path)
			require.Equal(t, peek(t, p.PID, r.Start, 64), b)
		}
	}
	sp, err := target.Threads()[0].Registers.Addr(machine.AMD64.SP)
	require.NoError(t, err)
	pause := target.Release()
	require.Greater(t, pause, while)
	require.Equal(t, pause, target.Pause)
	require.Equal(t, pause, target.Release(), "twice")
	require.Eventually(t, func() bool { return procFile(t, "%d/task/%d/syscall", p.PID, p.PID) == before }, livetest.Patience, time.Millisecond)
	require.Equal(t, "ready\n", p.Output())
	// The copied memory can still be read, but memory that may have changed since cannot.
	b := make([]byte, 64)
	require.NoError(t, target.ReadMemory(b, sp))
	for _, r := range target.maps {
		if r.Path == "[heap]" {
			require.ErrorContains(t, target.ReadMemory(b, r.Start), "not copied")
		}
	}
	target.Close()
	_ = target.ReadMemory(b, target.maps[0].Start) // must not panic
}

// TestHeldProcessIsKilled requires that the memory of a held process is unavailable after the process was killed, and that the reason says so.
func TestHeldProcessIsKilled(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "2", "1", "2")
	target := capture(t, p.PID, Options{Hold: true})
	heap := slices.IndexFunc(target.maps, func(r machine.Mapping) bool { return r.Path == "[heap]" })
	b := make([]byte, 64)
	require.NoError(t, target.ReadMemory(b, target.maps[heap].Start))
	p.Signal(t, syscall.SIGKILL)
	require.Eventually(t, func() bool {
		return frame.CodeOf(target.ReadMemory(b, target.maps[heap].Start)) == frame.MemoryGone
	}, livetest.Patience, time.Millisecond)
}

// TestStackIsCopied requires that the copies of stacks equal the memory in /proc/PID/mem of a sleeping process.
func TestStackIsCopied(t *testing.T) {
	withoutRseq(t)
	p := livetest.C(t, "threads.c", nil, "3", "0", "3")
	p.Quiet(t, 0)
	for _, size := range []int{0, 4096, 8 << 20} {
		target := capture(t, p.PID, Options{StackBytes: size})
		for _, th := range target.Threads() {
			sp, err := th.Registers.Addr(machine.AMD64.SP)
			require.NoError(t, err)
			m, ok := target.Mapping(sp)
			require.True(t, ok)
			limit := size
			if limit == 0 {
				limit = 512 << 10
			}
			from := sp - 128
			n := min(limit, int(stackEnd(peek(t, p.PID, from, int(m.End-from)), from)-from))
			b := make([]byte, n)
			require.NoError(t, target.ReadMemory(b, from), "%d bytes", n)
			require.Equal(t, peek(t, p.PID, from, n), b)
			if size == 4096 {
				require.Error(t, target.ReadMemory(make([]byte, 1), from+4096))
			}
		}
	}
	for _, size := range []int{-1, 1, 4095, 1<<30 + 1} {
		_, err := Capture(p.PID, Options{StackBytes: size})
		require.Error(t, err)
	}
}

// stackEnd returns the start of the thread's own block, or the end of the memory that starts in a stack. glibc's block on x86-64 begins with its own
// address, and contains it again as the third word (tcbhead_t).
func stackEnd(memory []byte, at machine.Addr) machine.Addr {
	word := func(i int) machine.Addr { return machine.Addr(machine.AMD64.Uint(memory[i:][:8])) }
	for i := 0; i+24 <= len(memory); i += 8 {
		if here := at + machine.Addr(i); word(i) == here && word(i+16) == here {
			return here
		}
	}
	return at + machine.Addr(len(memory))
}

func TestCaptureWithoutLeader(t *testing.T) {
	p := program(t, "leader.c", nil)
	p.Signal(t, syscall.SIGUSR1)
	requireState(t, p.PID, 'Z')
	for _, hold := range []bool{false, true} {
		target := capture(t, p.PID, Options{Hold: hold})
		require.Len(t, target.Threads(), 2)
		require.Equal(t, machine.Thread{ID: p.PID, Name: "leader", Missing: "the thread has ended, and the process continues without it"}, target.Threads()[0])
		sp, err := target.Threads()[1].Registers.Addr(machine.AMD64.SP)
		require.NoError(t, err)
		require.NoError(t, target.ReadMemory(make([]byte, 256), sp))
		require.NotNil(t, target.Modules[0].Image)
		target.Close()
	}
	target, err := Survey(p.PID, Options{})
	require.NoError(t, err)
	defer target.Close()
	require.NotEmpty(t, target.Modules)
}

// TestCaptureDying requires that the capture of a dying process succeeds, or returns the error for a process that has ended.
func TestCaptureDying(t *testing.T) {
	livetest.Slow(t)
	good, gone, rounds := 0, 0, livetest.Times(15, 40)
	for i := range rounds {
		p := livetest.C(t, "threads.c", nil, "3", "1", "3", "1")
		killed := make(chan struct{})
		go func() {
			time.Sleep(time.Duration(i) * 100 * time.Microsecond) // the capture may begin at any moment; a slow machine only changes which
			p.Kill()
			close(killed)
		}()
		for over := false; !over; {
			target, err := Capture(p.PID, Options{Hold: i%2 == 1})
			switch {
			case err == nil:
				good++
				target.Close()
			case errors.Is(err, ErrProcessExited), errors.Is(err, ErrNoProcess):
				gone++
				over = true
			default:
				require.NoError(t, err)
			}
		}
		<-killed
	}
	require.Equal(t, rounds, gone)
	t.Logf("%d captures before the end", good)
}
