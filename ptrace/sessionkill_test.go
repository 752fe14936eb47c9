package ptrace

import (
	"context"
	"encoding/binary"
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/ptrace/tracer"
	"example.com/reframe/test/livetest"
)

// sitesOutput maps each mode of sites.c to its output with a count of 2000.
var sitesOutput = map[string]string{
	"plain":   "ready\nplain 5999000\n",
	"threads": "ready\nthreads 1535984000\n",
	"fork":    "ready\nfork 6011800\n",
	"vfork":   "ready\nvfork 6002584\n",
	"exec":    "ready\nfirst half 5999000\nready\nplain 5999000\n",
	"signals": "ready\nsignals 5999000\n",
	"fault":   "ready\nfault 11998000\n",
	"end":     "ready\nleft 5999000\n",
	"come":    "ready\ncome 12287872000\n",
}

// eventually reads a file until it has the expected content.
func eventually(t *testing.T, read func() string, want string, about ...any) {
	t.Helper()
	for deadline := time.Now().Add(livetest.Patience); read() != want; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			require.Equal(t, want, read(), about...)
		}
	}
}

// TestSessionDetach requires that a program from which a session detaches during its work, with its threads anywhere, finishes as if it had not been
// traced.
func TestSessionDetach(t *testing.T) {
	livetest.Slow(t)
	path, site, faulty := sitesProgram(t, stepped)
	random := rand.New(rand.NewPCG(6, 1))
	for mode, want := range sitesOutput {
		for range 3 {
			after := 1 + random.IntN(2500)
			s, output := launch(t, path, mode, "2000")
			require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: after%2 == 0, Hardware: after%4 > 1}, Breakpoint{Addr: faulty, Hardware: after%3 == 0}))
			for range after {
				e, err := s.Next(context.Background())
				require.NoError(t, err)
				if e.Kind == Ended {
					break
				}
			}
			require.NoError(t, s.Detach())
			eventually(t, output, want, mode, after)
		}
	}
}

// TestSessionDetachFromOneThatRunsAlone requires that the program also finishes as without a session if the detach interrupts a single-threaded run,
// while the thread is outside of the stepped code and hits a breakpoint that was set for the run. Killing reframe during verify --entry once ended
// such a program by SIGTRAP.
func TestSessionDetachFromOneThatRunsAlone(t *testing.T) {
	path, site, _ := sitesProgram(t)
	for range 40 {
		s, output := launch(t, path, "plain", "20000")
		require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: true}))
		e, err := s.Next(context.Background())
		require.NoError(t, err)
		require.NoError(t, s.Remove(site))
		ctx, cancel := context.WithCancel(context.Background())
		time.AfterFunc(time.Millisecond, cancel) // at any moment, on any machine
		// The thread reaches the place repeatedly, but its CFA never equals the one given, so the run does not end.
		run, err := s.RunSingleThread(ctx, e.Thread.ID, SingleThreadOptions{Inside: []machine.Range{{Start: site, End: site + 1}}, Returns: []Return{{Addr: site, CFA: 1 << 63}}, Steps: 1 << 40, Time: livetest.Patience})
		require.ErrorIs(t, err, context.Canceled, "%+v", run)
		require.NoError(t, s.Detach())
		eventually(t, output, "ready\nplain 599990000\n")
	}
}

// TestSessionAloneIsLateAtOnce runs a thread alone with a time limit that ends before the thread has passed the breakpoint at its start. The thread's
// next stop there must not be a new hit. Otherwise native code would appear to be one site ahead on a busy machine.
func TestSessionAloneIsLateAtOnce(t *testing.T) {
	const calls = 25
	path, site, _ := sitesProgram(t)
	for _, hardware := range []bool{false, true} {
		s, output := launch(t, path, "plain", fmt.Sprint(calls))
		starve(t, s.PID())
		require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: true, Hardware: hardware}))
		e, err := s.Next(context.Background())
		require.NoError(t, err)
		o := SingleThreadOptions{Inside: []machine.Range{{Start: site, End: site + 1}}, Hits: true, Steps: 1 << 40, Time: 1}
		for n := uint64(1); n < calls; n++ {
			run := &SingleThreadRun{}
			for tries := 0; run.Hit == 0; tries++ {
				require.Less(t, tries, 10000)
				run, err = s.RunSingleThread(context.Background(), e.Thread.ID, o)
				require.NoError(t, err)
			}
			require.Equal(t, site, run.Hit)
			is, err := run.Thread.Registers.Uint(argument(run.Thread.Registers.Arch()))
			require.NoError(t, err)
			require.Equal(t, n, is)
		}
		require.NoError(t, s.Detach())
		eventually(t, output, fmt.Sprintf("ready\nplain %d\n", 3*calls*(calls-1)/2+calls))
	}
}

// starve makes a process run only rarely, as on a busy machine: another process with higher priority spins on the same processor.
func starve(t *testing.T, pid int) {
	t.Helper()
	var all, one unix.CPUSet
	require.NoError(t, unix.SchedGetaffinity(0, &all))
	for n := range 1024 {
		if all.IsSet(n) {
			one.Set(n)
			break
		}
	}
	busy := exec.Command("sh", "-c", "while :; do :; done")
	require.NoError(t, busy.Start())
	t.Cleanup(func() { _ = busy.Process.Kill(); _ = busy.Wait() })
	for _, p := range []int{pid, busy.Process.Pid} {
		require.NoError(t, unix.SchedSetaffinity(p, &one))
	}
	require.NoError(t, unix.Setpriority(unix.PRIO_PROCESS, pid, 19))
}

// argument returns the register of a function's first argument.
func argument(a *machine.Arch) machine.DWARFReg {
	if a == machine.ARM64 {
		return 0
	}
	return rdi
}

// TestSessionWatcher is the helper program that TestSessionKilled runs and kills.
func TestSessionWatcher(t *testing.T) {
	command, site := os.Getenv("WATCHED"), os.Getenv("WATCHED_SITE")
	if command == "" {
		return
	}
	s, err := Launch(context.Background(), strings.Fields(command))
	require.NoError(t, err)
	var b Breakpoint
	_, err = fmt.Sscan(site, (*uint64)(&b.Addr))
	require.NoError(t, err)
	b.Hardware = os.Getenv("WATCHED_HARDWARE") == "true"
	require.NoError(t, s.Insert(b))
	for {
		if e, err := s.Next(context.Background()); err != nil || e.Kind == Ended {
			return
		}
	}
}

// TestSessionKilled requires that a program whose tracer is killed finishes as if it had not been traced.
func TestSessionKilled(t *testing.T) {
	livetest.Slow(t)
	path, site, _ := sitesProgram(t, stepped)
	random := rand.New(rand.NewPCG(6, 2))
	for mode, want := range sitesOutput {
		for n := range 6 {
			file := filepath.Join(t.TempDir(), "output")
			out, err := os.Create(file)
			require.NoError(t, err)
			cmd := exec.Command(os.Args[0], "-test.run", "^TestSessionWatcher$")
			cmd.Env = append(os.Environ(), "WATCHED="+path+" "+mode+" 2000", fmt.Sprintf("WATCHED_SITE=%d", uint64(site)), fmt.Sprintf("WATCHED_HARDWARE=%v", n%2 == 0))
			cmd.Stdout = out
			require.NoError(t, cmd.Start())
			out.Close()
			read := func() string {
				b, err := os.ReadFile(file)
				require.NoError(t, err)
				return strings.TrimSuffix(string(b), "PASS\n") // the output of a watcher that ended before it was killed
			}
			for read() == "" {
				time.Sleep(time.Millisecond) // repeat until the watcher has started, on any machine
			}
			time.Sleep(time.Duration(random.IntN(60)) * time.Millisecond) // at a random moment, on any machine
			require.NoError(t, cmd.Process.Signal(syscall.SIGKILL))
			_ = cmd.Wait() // an error means that it was killed
			eventually(t, read, want, mode)
		}
	}
}

// TestSessionGuardKilled requires that the target continues after its tracer was killed, and that this process restores the code under breakpoints.
func TestSessionGuardKilled(t *testing.T) {
	livetest.Slow(t)
	path, _, faulty := sitesProgram(t)
	// The program does not reach the breakpoint in this mode, so it survives while it has no tracer.
	s, output := launch(t, path, "plain", "2000000000")
	require.NoError(t, s.Insert(Breakpoint{Addr: faulty}))
	ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond) // nothing happens in this time, on any machine
	defer cancel()
	_, err := s.Next(ctx)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	code := func() byte {
		b, err := readAll(live(s.PID()), faulty, 1)
		require.NoError(t, err)
		return b[0]
	}
	require.Equal(t, tracer.Trap[0], code())
	require.NoError(t, syscall.Kill(tracerPID(s), syscall.SIGKILL))
	_, err = s.Next(context.Background())
	require.ErrorIs(t, err, tracer.ErrKilled)
	require.ErrorContains(t, s.Detach(), "the guard process was killed: the code under 1 breakpoints was restored")
	require.NotEqual(t, tracer.Trap[0], code())
	eventually(t, output, "ready\nplain 5999999999000000000\n")
}

// TestSessionGuardOfDebugRegistersKilled requires that debug registers, which keep their values when a tracer ends, are cleared in all threads,
// including threads that have started since the registers were set.
func TestSessionGuardOfDebugRegistersKilled(t *testing.T) {
	livetest.Slow(t)
	if !livetest.DebugRegisters(t) {
		return // on this machine no hardware breakpoint is hit; see TestSessionDebugRegisterWithoutReason
	}
	path, _, faulty := sitesProgram(t)
	w := startWaiting(t, path, "threads", 2_000_000_000)
	s, err := Open(context.Background(), w.pid())
	require.NoError(t, err)
	require.NoError(t, s.Insert(Breakpoint{Addr: faulty, Hardware: true})) // the program does not reach faulty in this mode
	w.begin(t)
	const threads = 17
	for n := 0; n < threads; {
		ctx, cancel := context.WithTimeout(context.Background(), 100*time.Millisecond) // time for at least one more thread, on any machine
		_, err = s.Next(ctx)
		cancel()
		require.ErrorIs(t, err, context.DeadlineExceeded)
		n = len(listThreads(t, w.pid()))
	}
	require.NoError(t, s.Stop()) // by now each thread has been resumed since it started
	_, err = s.Next(cancelled())
	require.ErrorIs(t, err, context.Canceled)
	require.NoError(t, syscall.Kill(tracerPID(s), syscall.SIGKILL))
	_, err = s.Next(context.Background())
	require.ErrorIs(t, err, tracer.ErrKilled)
	require.Equal(t, threads, debugged(t, w.pid(), faulty))
	require.ErrorContains(t, s.Detach(), "the guard process was killed: the code under 0 breakpoints was restored, 1 breakpoints were removed from debug registers")
	require.Equal(t, 0, debugged(t, w.pid(), faulty))
	require.NoError(t, syscall.Kill(w.pid(), syscall.SIGKILL))
	w.finish(t)
}

func cancelled() context.Context {
	ctx, cancel := context.WithCancel(context.Background())
	cancel()
	return ctx
}

func listThreads(t *testing.T, pid int) []int {
	t.Helper()
	list, err := system.ThreadIDs(pid)
	require.NoError(t, err)
	return list
}

// debugged returns the number of threads that have an address in a debug register.
func debugged(t *testing.T, pid int, addr machine.Addr) (n int) {
	t.Helper()
	runtime.LockOSThread()
	defer runtime.UnlockOSThread()
	register := func(tid, number int) uint64 {
		const offset = 848 // offset of u_debugreg in struct user (sys/user.h)
		var b [8]byte
		_, err := unix.PtracePeekUser(tid, uintptr(offset+8*number), b[:])
		require.NoError(t, err)
		return binary.LittleEndian.Uint64(b[:])
	}
	for _, tid := range listThreads(t, pid) {
		// The files of a killed tracer are closed some time before the kernel detaches it from its threads.
		require.Eventually(t, func() bool { return strings.TrimSpace(system.StatusField(tid, "TracerPid")) == "0" }, livetest.Patience, time.Millisecond)
		require.NoError(t, unix.PtraceSeize(tid))
		require.NoError(t, unix.PtraceInterrupt(tid))
		var ws unix.WaitStatus
		_, err := unix.Wait4(tid, &ws, unix.WALL, nil)
		require.NoError(t, err)
		for number := range 4 {
			if register(tid, 7)>>(2*number)&3 != 0 && register(tid, number) == uint64(addr) {
				n++
			}
		}
		require.NoError(t, unix.PtraceDetach(tid))
	}
	return n
}
