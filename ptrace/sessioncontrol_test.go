package ptrace

import (
	"context"
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace/system"
	"example.com/reframe/test/livetest"
)

// open attaches to a process, and detaches when the test ends.
func open(t *testing.T, pid int) *Session {
	t.Helper()
	s, err := Open(context.Background(), pid)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() }) // has no effect if the test has detached already
	return s
}

// TestSessionLeavesStopped requires that a process that was stopped before a session is stopped afterwards.
func TestSessionLeavesStopped(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "2", "1", "2")
	p.Signal(t, syscall.SIGSTOP)
	requireState(t, p.PID, 'T')
	require.NoError(t, open(t, p.PID).Detach())
	p.Freeze(t)
	time.Sleep(100 * time.Millisecond) // no thread may run in this time; a slow machine may miss a failure, but never fails wrongly
	tids, err := system.ThreadIDs(p.PID)
	require.NoError(t, err)
	require.Len(t, tids, 6)
	for _, tid := range tids {
		require.Equal(t, byte('T'), system.ThreadState(p.PID, tid))
	}
	p.Signal(t, syscall.SIGCONT)
	requireState(t, p.PID, 'S')
	requireText(t, p.PID)
	require.Equal(t, "ready\n", p.Output())
}

// TestSessionOfSleepers requires that threads which sleep in the kernel sleep for the rest of their time, even if the session resumes and stops them
// meanwhile.
func TestSessionOfSleepers(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "2", "0", "2")
	p.Quiet(t, 0)
	before := states(t, p.PID)
	for range 5 {
		s := open(t, p.PID)
		requireState(t, p.PID, 't')
		for range 3 {
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Millisecond) // nothing happens in this time, on any machine
			_, err := s.Next(ctx)
			cancel()
			require.ErrorIs(t, err, context.DeadlineExceeded)
			require.NoError(t, s.Stop())
			target, err := s.Target()
			require.NoError(t, err)
			require.Len(t, target.Threads(), 5)
		}
		require.NoError(t, s.Detach())
		requireStates(t, p.PID, before)
	}
	requireText(t, p.PID)
	require.Equal(t, "ready\n", p.Output())
}

// TestRunTo requires that a process runs to a function, where it has the expected arguments, and that its code is unchanged.
func TestRunTo(t *testing.T) {
	path := executable(t, "steps.c", "-no-pie")
	step := symbols(t, path)["step"]
	require.NotZero(t, step)
	p := program(t, "steps.c", []string{"-no-pie"})
	for range 3 {
		s := open(t, p.PID)
		for range 2 {
			th, err := s.RunTo(t.Context(), step)
			require.NoError(t, err)
			require.Equal(t, p.PID, th.ID)
			require.Equal(t, "steps", th.Name)
			for reg, want := range map[machine.DWARFReg]uint64{rdi: 0x1122334455667788, 4: 1<<64 - 2, 16: uint64(step)} {
				got, err := th.Registers.Uint(reg)
				require.NoError(t, err)
				require.Equal(t, want, got, machine.AMD64.RegisterName(reg))
			}
			v, err := th.Registers.Bytes(17)
			require.NoError(t, err)
			require.Equal(t, 2.5, math.Float64frombits(binary.LittleEndian.Uint64(v)))
			requireText(t, p.PID) // also while the thread is stopped there
		}
		target, err := s.Target()
		require.NoError(t, err)
		require.Len(t, target.Threads(), 1)
		require.Equal(t, step, mustPC(t, target.Threads()[0]))
		sp, err := target.Threads()[0].Registers.Addr(machine.AMD64.SP)
		require.NoError(t, err)
		b := make([]byte, 8)
		require.NoError(t, target.ReadMemory(b, sp))
		m := target.ModuleAt(machine.Addr(binary.LittleEndian.Uint64(b)))
		require.NotNil(t, m)
		require.Equal(t, path, m.Path, "the return address lies in main")
		require.NoError(t, s.Detach())
		requireText(t, p.PID)
		require.Equal(t, "0", system.StatusField(p.PID, "TracerPid"))
	}
	requireState(t, p.PID, 'S')
	// The process must continue: its sleep must end.
	before := system.StatusField(p.PID, "voluntary_ctxt_switches")
	require.Eventually(t, func() bool { return system.StatusField(p.PID, "voluntary_ctxt_switches") != before }, livetest.Patience, 10*time.Millisecond) // an interval in which nothing happens, on any machine
	require.True(t, p.Alive())
}

// TestRunToAgain requires that a thread which was reported must reach the address again, and that no thread is lost if several reach it at the same
// moment.
func TestRunToAgain(t *testing.T) {
	livetest.Slow(t)
	path, site, faulty := sitesProgram(t)
	n := livetest.Times(100, 300)
	for mode, threads := range map[string]int{"plain": 1, "threads": 16, "fault": 1} {
		t.Run(mode, func(t *testing.T) {
			s, output := launch(t, path, mode, fmt.Sprint(n))
			args := map[int][]uint64{}
			var err error
			for arrivals := 0; err == nil && arrivals <= threads*n; arrivals++ {
				_, err = s.RunTo(t.Context(), site, 0x10000) // no memory is mapped at this address
				require.ErrorContains(t, err, "0x10000")
				var th machine.Thread
				if th, err = s.RunTo(t.Context(), site); err == nil {
					v, err := th.Registers.Uint(rdi)
					require.NoError(t, err)
					args[th.ID] = append(args[th.ID], v)
				}
			}
			require.ErrorIs(t, err, ErrProcessExited)
			require.ErrorContains(t, err, "cannot run it to "+site.String())
			require.Len(t, args, threads)
			unbroken(t, args)
			for _, list := range args {
				require.Len(t, list, n)
			}
			require.NoError(t, s.Detach())
			require.Contains(t, output(), mode+" ")
		})
	}
	// The thread reaches two addresses alternately. The instruction at one of them faults and is executed again.
	s, _ := launch(t, path, "fault", fmt.Sprint(n))
	for i := range uint64(n) {
		for _, want := range []machine.Addr{faulty, site} {
			th, err := s.RunTo(t.Context(), site, faulty)
			require.NoError(t, err)
			if i == 0 && want == site && mustPC(t, th) == faulty {
				th, err = s.RunTo(t.Context(), site, faulty)
				require.NoError(t, err)
			}
			require.Equal(t, want, mustPC(t, th))
			v, err := th.Registers.Uint(rdi)
			require.NoError(t, err)
			require.Equal(t, i, v)
		}
	}
	require.NoError(t, s.Detach())
}

// TestRunToPassesOthers requires that RunTo keeps other breakpoints, counts their hits, and does not stop at them.
func TestRunToPassesOthers(t *testing.T) {
	path, site, faulty := sitesProgram(t)
	for _, hold := range []bool{false, true} {
		s, output := launch(t, path, "fault", "100")
		require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: hold}))
		require.NoError(t, s.Count(Counting{Every: 7}))
		for range 51 {
			_, err := s.RunTo(t.Context(), faulty)
			require.NoError(t, err)
		}
		hits, err := s.Hits()
		require.NoError(t, err)
		require.Equal(t, []Hits{{site, 49}}, hits) // the first call of faulty is executed twice
		_, end := follow(t, s, faulty)
		require.Equal(t, 7, end.ExitCode)
		require.NoError(t, s.Detach())
		require.Equal(t, "ready\nfault 29900\n", output())
	}
}

// TestPass requires that a thread passes the requested number of hits, which are counted, and that the next hit is reported.
func TestPass(t *testing.T) {
	path, site, _ := sitesProgram(t)
	s, output := launch(t, path, "fault", "100")
	require.NoError(t, s.Insert(Breakpoint{Addr: site, Hold: true}))
	at := uint64(0)
	for _, n := range []uint64{0, 9, 1, 50, 1000} {
		e, err := s.Next(t.Context())
		require.NoError(t, err)
		require.Equal(t, Hit, e.Kind)
		argument, err := e.Thread.Registers.Uint(rdi)
		require.NoError(t, err)
		require.Equal(t, at, argument)
		require.Equal(t, at+1, e.Number)
		hits, err := s.Hits()
		require.NoError(t, err)
		require.Equal(t, []Hits{{site, at + 1}}, hits)
		require.NoError(t, s.Pass(e.Thread.ID, n))
		require.ErrorIs(t, s.Pass(1<<22, n), ErrProcessExited)
		at += n + 1
	}
	_, end := follow(t, s, site)
	require.Equal(t, 7, end.ExitCode)
	hits, err := s.Hits()
	require.NoError(t, err)
	require.Equal(t, []Hits{{site, 100}}, hits)
	require.NoError(t, s.Detach())
	require.Equal(t, "ready\nfault 29900\n", output())
}

// TestRunToGivenUp requires that after ctx of RunTo has ended, the process runs without breakpoints, and that RunTo can be called again.
func TestRunToGivenUp(t *testing.T) {
	livetest.Slow(t)
	path, site, faulty := sitesProgram(t)
	const count = 30_000_000 // large enough that the process still runs if the stop, or reframe itself, is delayed
	w := startWaiting(t, path, "threads", count)
	s := open(t, w.pid())
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond) // the process waits for its input meanwhile, on any machine
	defer cancel()
	_, err := s.RunTo(ctx, site)
	require.ErrorIs(t, err, context.DeadlineExceeded)
	requireText(t, w.pid())
	requireState(t, w.pid(), 'S')
	for k := range 20 { // a late report must not count for the next request
		ctx, cancel := context.WithTimeout(t.Context(), time.Duration(k)*100*time.Microsecond) // at a random moment, on any machine
		_, _ = s.RunTo(ctx, faulty, site)                                                      // either result is possible
		cancel()
		if k == 3 {
			w.begin(t)
		}
	}
	args := map[int][]uint64{}
	for range 500 {
		th, err := s.RunTo(t.Context(), site)
		require.NoError(t, err)
		target, err := s.Target()
		require.NoError(t, err)
		at := slices.IndexFunc(target.Threads(), func(o machine.Thread) bool { return o.ID == th.ID })
		require.Equal(t, site, mustPC(t, target.Threads()[at]), "it stands there")
		v, err := th.Registers.Uint(rdi)
		require.NoError(t, err)
		args[th.ID] = append(args[th.ID], v)
	}
	unbroken(t, args)
	require.NoError(t, s.Detach())
	output, code := w.finish(t)
	require.Equal(t, 7, code)
	const n int64 = 16 * count
	require.Equal(t, fmt.Sprintf("ready\nthreads %d\n", 3*n*(n-1)/2+n), output)
}

// TestRunToNowhere requires an error from RunTo if the process ends, or executes another program, before it reaches the address.
func TestRunToNowhere(t *testing.T) {
	path, site, faulty := sitesProgram(t)
	for _, mode := range []string{"plain", "threads", "end", "leader"} {
		s, _ := launch(t, path, mode, "50")
		_, err := s.RunTo(t.Context(), faulty)
		require.ErrorIs(t, err, ErrProcessExited, mode)
		_, err = s.RunTo(t.Context(), faulty)
		require.ErrorIs(t, err, ErrProcessExited, mode)
		require.NoError(t, s.Detach())
	}
	s, output := launch(t, path, "exec", "50")
	_, err := s.RunTo(t.Context(), faulty)
	require.ErrorContains(t, err, "it became another program")
	_, err = s.RunTo(t.Context(), site)
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	eventually(t, output, "ready\nfirst half 3725\nready\nplain 3725\n")

	p := livetest.C(t, "threads.c", nil, "1")
	s = open(t, p.PID)
	time.AfterFunc(20*time.Millisecond, p.Kill) // on a slow machine RunTo may not have begun, and the test allows both
	_, err = s.RunTo(t.Context(), symbolOf(t, p.PID, "main"))
	require.ErrorIs(t, err, ErrProcessExited)
	require.NoError(t, s.Detach())
}

// symbolOf returns the address of a function in a running program.
func symbolOf(t *testing.T, pid int, name string) machine.Addr {
	t.Helper()
	target, err := Survey(pid, Options{})
	require.NoError(t, err)
	defer target.Close()
	sym, ok := target.FindSymbol(name)
	require.True(t, ok)
	return sym.Addr
}

// TestSessionRegisters requires that a session returns the same registers as a capture, including vector registers.
func TestSessionRegisters(t *testing.T) {
	at := symbols(t, executable(t, "regs.c", "-no-pie"))
	p := program(t, "regs.c", []string{"-no-pie"}, "pause")
	require.Eventually(t, func() bool {
		return mustPC(t, capture(t, p.PID, Options{}).Threads()[1]) == at["paused"]
	}, livetest.Patience, time.Millisecond)
	want := capture(t, p.PID, Options{})
	s := open(t, p.PID)
	target, err := s.Target()
	require.NoError(t, err)
	require.Len(t, target.Threads(), 2)
	for n, th := range target.Threads() {
		require.Equal(t, want.Threads()[n].ID, th.ID)
		for reg := range machine.DWARFReg(33) {
			a, err := want.Threads()[n].Registers.Bytes(reg)
			require.NoError(t, err)
			b, err := th.Registers.Bytes(reg)
			require.NoError(t, err)
			require.Equal(t, a, b, machine.AMD64.RegisterName(reg))
		}
	}
	require.NoError(t, s.Detach())
	requireText(t, p.PID)
	requireState(t, p.PID, 'S')
}

// TestSessionKilledWhileHeld requires that, if a process is killed while the session has stopped it, the parent soon sees the end of the process,
// whatever the session does.
func TestSessionKilledWhileHeld(t *testing.T) {
	p := livetest.C(t, "threads.c", nil, "3")
	s, err := Open(context.Background(), p.PID)
	require.NoError(t, err)
	p.Kill() // returns after the parent has waited for it
	_, err = s.Target()
	require.ErrorIs(t, err, ErrProcessExited)
	e, err := s.Next(context.Background())
	require.NoError(t, err)
	require.Equal(t, Ended, e.Kind)
	require.Equal(t, int(syscall.SIGKILL), e.Signal)
	require.NoError(t, s.Detach())
}
