package ptrace

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"os/signal"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/tracer"
	"example.com/reframe/test/livetest"
)

// TestSessionFaultsUnderSignals requires that no signal is lost if one is sent while an instruction faults, and the program's handler repairs the
// fault. The program's handlers must stay unchanged. The same must hold for a thread that runs alone.
func TestSessionFaultsUnderSignals(t *testing.T) {
	livetest.Slow(t)
	n := livetest.Times(1000, 3000)
	path, site, _ := sitesProgram(t)
	poking := symbols(t, path)["poking"]
	require.NotZero(t, poking)
	want := fmt.Sprintf("ready\nalarms %d\n", n*(n-1)/2)
	for how, debug := range map[string]bool{"": false, ", debug registers": true} {
		t.Run("stepped"+how, func(t *testing.T) {
			w := watch(t, []Breakpoint{{Addr: poking, Hardware: debug}, {Addr: site, Hardware: debug}}, path, "alarms", fmt.Sprint(n))
			require.Equal(t, want, w.output)
			require.Equal(t, 7, w.end.ExitCode)
			require.Positive(t, w.others[site])
		})
		t.Run("alone"+how, func(t *testing.T) {
			s, output := launch(t, path, "alarms", fmt.Sprint(n))
			require.NoError(t, s.Insert(Breakpoint{Addr: poking, Hold: true, Hardware: debug}))
			for {
				e, err := s.Next(context.Background())
				require.NoError(t, err)
				if e.Kind == Ended {
					require.Equal(t, 7, e.ExitCode, "signal %d", e.Signal)
					break
				}
				_, err = s.RunSingleThread(context.Background(), e.Thread.ID, SingleThreadOptions{Inside: []machine.Range{{Start: 0, End: 1 << 63}}, Hits: true, Steps: 100, Time: livetest.Patience})
				require.NoError(t, err)
			}
			require.Equal(t, want, output())
			require.NoError(t, s.Detach())
		})
	}
}

// TestSessionOfAChurning requires that a session can attach to a process in which threads start continuously, and can detach from it.
func TestSessionOfAChurning(t *testing.T) {
	livetest.Slow(t)
	path, site, _ := sitesProgram(t, stepped)
	hits := 0
	for range livetest.Times(1, 6) {
		w, s := openAtWork(t, path, "churn", 100_000_000, 5*time.Millisecond) // the process may end before the session attaches: see openAtWork
		require.NoError(t, s.Insert(Breakpoint{Addr: site}))
		args := map[int][]uint64{}
		for range 200 {
			e, err := s.Next(context.Background())
			require.NoError(t, err)
			if e.Kind == Ended {
				break // the process ended before this test was scheduled
			}
			require.Equal(t, Hit, e.Kind)
			hits++
			v, err := e.Thread.Registers.Uint(rdi)
			require.NoError(t, err)
			args[e.Thread.ID] = append(args[e.Thread.ID], v)
		}
		require.NoError(t, s.Detach())
		unbroken(t, args)
		output, code := w.finish(t)
		require.Equal(t, "ready\nchurn 3839999999200000000\n", output)
		require.Equal(t, 7, code)
	}
	require.Positive(t, hits)
}

// TestSessionExecWithoutFirst requires an Exec event for a process whose first thread has ended, and which then executes another program.
func TestSessionExecWithoutFirst(t *testing.T) {
	path, site, _ := sitesProgram(t)
	w := startWaiting(t, path, "another", 2000)
	_, err := w.stdin.Write([]byte("\n"))
	require.NoError(t, err)
	line, err := w.lines.ReadString('\n')
	require.NoError(t, err)
	require.Equal(t, "alone\n", line)
	s, err := Open(context.Background(), w.pid())
	require.NoError(t, err)
	require.NoError(t, s.Insert(Breakpoint{Addr: site}))
	w.begin(t)
	e, err := s.Next(t.Context())
	require.NoError(t, err)
	require.Equal(t, Exec, e.Kind)
	target, err := s.Target()
	require.NoError(t, err)
	require.Len(t, target.Threads(), 1)
	require.NoError(t, s.Insert(Breakpoint{Addr: site}))
	args, end := follow(t, s, site)
	require.Len(t, args[w.pid()], 2000)
	require.Equal(t, 7, end.ExitCode)
	require.NoError(t, s.Detach())
	output, _ := w.finish(t)
	require.Equal(t, "ready\nready\nplain 5999000\n", output)
}

// TestSessionKeepsStopped requires that all threads of a process which SIGSTOP has stopped stay stopped until SIGCONT. A thread that resumed to step
// over a breakpoint must stop again.
func TestSessionKeepsStopped(t *testing.T) {
	livetest.Slow(t)
	path, site, _ := sitesProgram(t, stepped)
	for _, mode := range []string{"plain", "threads"} {
		for range livetest.Times(5, 20) {
			w := startWaiting(t, path, mode, 1_000_000_000)
			s, err := Open(context.Background(), w.pid())
			require.NoError(t, err)
			require.NoError(t, s.Insert(Breakpoint{Addr: site}))
			w.begin(t)
			for range 50 + rand.IntN(100) {
				_, err := s.Next(context.Background())
				require.NoError(t, err)
			}
			require.NoError(t, unix.Kill(w.pid(), unix.SIGSTOP))
			quiet := false
			for deadline := time.Now().Add(livetest.Patience); !quiet && time.Now().Before(deadline); {
				// On a slow machine the process makes fewer calls in that time.
				ctx, cancel := context.WithTimeout(context.Background(), 200*time.Millisecond)
				_, err := s.Next(ctx)
				cancel()
				quiet = err != nil
			}
			require.True(t, quiet, "%s: calls go on", mode)
			require.NoError(t, unix.Kill(w.pid(), unix.SIGCONT))
			_, err = s.Next(context.Background())
			require.NoError(t, err)
			require.NoError(t, s.Detach())
			require.NoError(t, w.cmd.Process.Kill())
			_ = w.cmd.Wait()
		}
	}
}

// TestSessionOverwritten requires that code which the program wrote over a breakpoint stays unchanged, when a thread runs alone and at the end. A
// breakpoint that is set again must be in memory again.
func TestSessionOverwritten(t *testing.T) {
	path, site, faulty := sitesProgram(t, stepped)
	s, output := launch(t, path, "plain", "2000")
	require.NoError(t, s.Insert(Breakpoint{Addr: faulty}, Breakpoint{Addr: site, Hold: true}))
	e, err := s.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, site, e.At)
	mem, err := os.OpenFile(filepath.Join("/proc", fmt.Sprint(s.PID()), "mem"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer mem.Close()
	// The byte is the program's REX.W prefix of bswap. With REX.X the instruction has the same effect.
	code := func() byte {
		var b [1]byte
		_, err := mem.ReadAt(b[:], int64(site))
		require.NoError(t, err)
		return b[0]
	}
	require.Equal(t, tracer.Trap[0], code())
	_, err = mem.WriteAt([]byte{0x4a}, int64(site)) // REX.WX
	require.NoError(t, err)
	_, err = s.RunSingleThread(context.Background(), e.Thread.ID, SingleThreadOptions{Inside: []machine.Range{{Start: 0, End: 1 << 63}}, Steps: 40, Time: livetest.Patience})
	require.NoError(t, err)
	require.Equal(t, byte(0x4a), code())
	require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: true}))
	require.Equal(t, tracer.Trap[0], code())
	b := make([]byte, 1)
	target, err := s.Target()
	require.NoError(t, err)
	require.NoError(t, target.ReadMemory(b, site))
	require.Equal(t, byte(0x4a), b[0])
	require.NoError(t, s.Remove(site))
	require.Equal(t, byte(0x4a), code())
	_, err = mem.WriteAt([]byte{0x48}, int64(site))
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	eventually(t, output, sitesOutput["plain"])
}

// TestSessionOverwrittenIsPassedOnce requires that a thread which was reported at a breakpoint passes it when it resumes, whatever the program has
// written there. It must not be reported a second time when the breakpoint is set again.
func TestSessionOverwrittenIsPassedOnce(t *testing.T) {
	path, site, _ := sitesProgram(t, stepped)
	const each = 8_000_000 // large enough that the breakpoint is set again while the threads run
	s, output := launch(t, path, "threads", fmt.Sprint(each))
	require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: true}))
	mem, err := os.OpenFile(filepath.Join("/proc", fmt.Sprint(s.PID()), "mem"), os.O_RDWR, 0)
	require.NoError(t, err)
	defer mem.Close()
	type call struct {
		thread int
		n      uint64
	}
	told, missed := map[call]int{}, 0
	for {
		e, err := s.Next(context.Background())
		require.NoError(t, err)
		if e.Kind == Ended {
			break
		}
		if e.Kind == Missed {
			missed++
			continue
		}
		n, err := e.Thread.Registers.Uint(rdi)
		require.NoError(t, err)
		told[call{e.Thread.ID, n}]++
		require.Equal(t, 1, told[call{e.Thread.ID, n}], "call %d of thread %d", n, e.Thread.ID)
		list, err := s.Look() // Look sets the breakpoint again
		require.NoError(t, err)
		missed += len(list)
		_, err = mem.WriteAt([]byte{0x48}, int64(site)) // the program's own byte
		require.NoError(t, err)
	}
	require.Positive(t, missed)
	const all = 16 * each
	require.Equal(t, fmt.Sprintf("ready\nthreads %d\n", uint64(3*all*(all-1)/2+all)), output())
	require.NoError(t, s.Detach())
}

// TestSessionOfAPartlyTraced requires that a process with one thread under another tracer is refused immediately and left unchanged. The threads work
// for most of a second; if one has ended before the checks, on a busy machine, the test tries another process.
func TestSessionOfAPartlyTraced(t *testing.T) {
	livetest.Slow(t)
	path, _, _ := sitesProgram(t)
	for range 100 {
		if refusedPartlyTraced(t, path) {
			return
		}
	}
	require.Fail(t, "threads had always ended")
}

func refusedPartlyTraced(t *testing.T, path string) (done bool) {
	w := startWaiting(t, path, "threads", 100_000_000)
	defer func() { _ = w.cmd.Process.Kill() }()
	w.begin(t)
	var tids []int
	for deadline := time.Now().Add(livetest.Patience); len(tids) != 17; time.Sleep(time.Millisecond) {
		all, err := system.ThreadIDs(w.pid())
		if err != nil || len(all) < len(tids) {
			return false // a thread has ended
		}
		require.Less(t, time.Now(), deadline)
		tids = all
	}
	other := newSeizer()
	defer other.end()
	if err := other.do(func() error { return system.Request(unix.PTRACE_SEIZE, tids[9], 0) }); errors.Is(err, unix.ESRCH) {
		return false
	} else {
		require.NoError(t, err)
	}
	_, refused := Open(context.Background(), w.pid())
	var tracers []string
	for i, tid := range tids {
		if i != 9 {
			tracers = append(tracers, strings.TrimSpace(system.StatusField(tid, "TracerPid")))
		}
	}
	if now, err := system.ThreadIDs(w.pid()); err != nil || !slices.Equal(now, tids) {
		return false
	}
	require.Error(t, refused)
	for _, tracer := range tracers {
		require.Equal(t, "0", tracer)
	}
	err := other.do(func() error {
		err := system.Request(unix.PTRACE_INTERRUPT, tids[9], 0)
		if err == nil {
			_, err = unix.Wait4(tids[9], nil, unix.WALL, nil)
		}
		return errors.Join(err, system.Request(unix.PTRACE_DETACH, tids[9], 0))
	})
	if errors.Is(err, unix.ESRCH) {
		return false // the thread ended when it was interrupted
	}
	require.NoError(t, err)
	output, code := w.finish(t)
	require.Equal(t, "ready\nthreads 3839999999200000000\n", output)
	require.Equal(t, 7, code)
	return true
}

// TestSessionLaunchedAsWithout requires that a launched program has the same ignored and blocked signals, files and limits as without a session.
func TestSessionLaunchedAsWithout(t *testing.T) {
	livetest.NeedsTools(t)
	signal.Ignore(unix.SIGHUP, unix.SIGINT)
	defer signal.Reset(unix.SIGHUP, unix.SIGINT)
	const look = `grep -E '^Sig(Ign|Blk|Cgt)' /proc/self/status; ls /proc/$$/fd; ulimit -Sn; env | sort`
	want, err := exec.Command("sh", "-c", look).Output()
	require.NoError(t, err)
	_, ignored, _ := strings.Cut(string(want), "SigIgn:\t")
	var set uint64 // includes signals that were ignored before
	_, err = fmt.Sscanf(ignored, "%x\n", &set)
	require.NoError(t, err)
	require.EqualValues(t, 3, set&3)
	s, output := launch(t, "sh", "-c", look)
	e, err := s.Next(context.Background())
	for err == nil && e.Kind != Ended {
		e, err = s.Next(context.Background())
	}
	require.NoError(t, err)
	require.Equal(t, 0, e.ExitCode)
	require.NoError(t, s.Detach())
	require.Equal(t, string(want), output())
}
