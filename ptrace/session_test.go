package ptrace

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/machine"
	"example.com/reframe/test/livetest"

	"example.com/reframe/ptrace/tracer"
)

// rdi is the register of a function's first argument (System V ABI, AMD64 supplement, 3.2.3).
const rdi machine.DWARFReg = 5

// watched holds the events that a session reported.
type watched struct {
	args   map[int][]uint64 // the arguments of each thread at the first address, in order
	others map[machine.Addr]int
	end    Event
	output string
}

// launch starts a traced program, with its output in a file.
func launch(t *testing.T, command ...string) (s *Session, output func() string) {
	t.Helper()
	path := filepath.Join(t.TempDir(), "output")
	out, err := os.Create(path)
	require.NoError(t, err)
	defer out.Close()
	stdout := os.Stdout
	os.Stdout = out
	defer func() { os.Stdout = stdout }()
	s, err = Launch(context.Background(), command)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() }) // has no effect if the test has detached already
	return s, func() string {
		b, err := os.ReadFile(path)
		require.NoError(t, err)
		return string(b)
	}
}

// watch runs a program to its end with breakpoints. After an exec, which removes the breakpoints, watch sets them again.
func watch(t *testing.T, list []Breakpoint, command ...string) watched {
	t.Helper()
	s, output := launch(t, command...)
	require.NoError(t, s.Insert(list...))
	w := watched{args: map[int][]uint64{}, others: map[machine.Addr]int{}}
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	for {
		e, err := s.Next(ctx)
		require.NoError(t, err)
		switch {
		case e.Kind == Exec:
			require.NoError(t, s.Insert(list...))
		case e.Kind == Ended:
			w.end, w.output = e, output()
			hits, err := s.Hits()
			require.NoError(t, err)
			told := 0
			for _, args := range w.args {
				told += len(args)
			}
			require.Contains(t, hits, Hits{list[0].Addr, uint64(told)})
			require.NoError(t, s.Detach())
			return w
		case e.Kind == Missed:
			require.Fail(t, "it missed something", "%v", e)
		case e.At == list[0].Addr:
			v, err := e.Thread.Registers.Uint(rdi)
			require.NoError(t, err)
			require.Equal(t, list[0].Addr, mustPC(t, e.Thread))
			w.args[e.Thread.ID] = append(w.args[e.Thread.ID], v)
		default:
			w.others[e.At]++
		}
	}
}

func mustPC(t *testing.T, th machine.Thread) machine.Addr {
	t.Helper()
	pc, err := th.Registers.Addr(arch.PC)
	require.NoError(t, err)
	return pc
}

func sequence(from, to uint64) (list []uint64) {
	for n := from; n < to; n++ {
		list = append(list, n)
	}
	return list
}

// stepped is a flag that changes a site of sites.c, so that its instruction cannot be emulated and must be executed while all other threads are
// stopped.
const stepped = "-DSTEPPED"

// sitesProgram builds testdata/sites.c, and returns its path and the addresses of its functions.
func sitesProgram(t testing.TB, cflags ...string) (path string, site, faulty machine.Addr) {
	t.Helper()
	path = livetest.CBinary(t, "sites.c", append([]string{"-no-pie"}, cflags...)...)
	all := symbols(t, path)
	return path, all["site"], all["faulty"]
}

// ofThreads returns the number of times that each of the sixteen threads of sites.c calls its site.
func ofThreads() uint64 { return uint64(livetest.Times(300, 2000)) }

// sumOfThreads returns the sum that the threads compute.
func sumOfThreads(each uint64) uint64 { return 3*(16*each)*(16*each-1)/2 + 16*each }

// sitesCases lists how threads continue from a breakpoint in sites.c: whether a hit stops all threads, and how the instruction is executed.
var sitesCases = []struct {
	name   string
	hold   bool
	cflags []string
	debug  bool // the breakpoint is in a debug register
}{
	{"emulated", false, nil, false},
	{"stepped", false, []string{stepped}, false},
	{"held", true, nil, false},
	{"held and stepped", true, []string{stepped}, false},
	{"debug registers", false, nil, true},
	{"held and debug registers", true, []string{stepped}, true},
}

// TestSessionHits requires that every hit is reported exactly once, in the order of each thread, and that the program computes the same as without a
// session.
func TestSessionHits(t *testing.T) {
	livetest.Slow(t)
	const n = 2000
	for at, c := range sitesCases {
		parts := 0
		path, site, faulty := sitesProgram(t, c.cflags...)
		hold := c.hold
		run := func(t *testing.T, mode string) watched {
			return watch(t, []Breakpoint{{Addr: site, Hold: hold, Hardware: c.debug}, {Addr: faulty, Hardware: c.debug}}, path, mode, fmt.Sprint(n))
		}
		single := func(t *testing.T, w watched, want []uint64) {
			t.Helper()
			require.Len(t, w.args, 1)
			for _, args := range w.args {
				require.True(t, slices.Equal(want, args), "%d of %d", len(args), len(want))
			}
			require.Equal(t, 7, w.end.ExitCode)
		}
		part := func(mode string, test func(t *testing.T)) {
			if parts++; livetest.Out(5, parts+at) {
				return // each part of the test runs with one or two cases, so that all cases are covered
			}
			t.Run(mode+" "+c.name, test)
		}
		part("plain", func(t *testing.T) {
			w := run(t, "plain")
			single(t, w, sequence(0, n))
			require.Equal(t, "ready\nplain 5999000\n", w.output)
		})
		part("fork", func(t *testing.T) {
			w := run(t, "fork")
			single(t, w, sequence(0, n))
			require.Equal(t, "ready\nfork 6011800\n", w.output)
		})
		part("vfork", func(t *testing.T) {
			w := run(t, "vfork")
			single(t, w, sequence(0, n))
			require.Equal(t, "ready\nvfork 6002584\n", w.output)
		})
		part("exec", func(t *testing.T) {
			w := run(t, "exec")
			single(t, w, append(sequence(0, n), sequence(0, n)...))
			require.Equal(t, "ready\nfirst half 5999000\nready\nplain 5999000\n", w.output)
		})
		part("fault", func(t *testing.T) {
			w := run(t, "fault")
			single(t, w, sequence(0, n))
			require.Equal(t, n+n/1000, w.others[faulty]) // after each fault the instruction is executed again
			require.Equal(t, "ready\nfault 11998000\n", w.output)
		})
		part("signals", func(t *testing.T) {
			w := run(t, "signals")
			require.Len(t, w.args, 1)
			var own []uint64
			handled := -1 // the loop itself makes one call with argument 0, which is not counted
			for _, args := range w.args {
				for _, a := range args {
					if a == 0 {
						handled++
					} else {
						own = append(own, a)
					}
				}
			}
			require.True(t, slices.Equal(sequence(1, n), own), len(own))
			require.Positive(t, handled)
			require.Equal(t, "ready\nsignals 5999000\n", w.output)
		})
		part("threads", func(t *testing.T) {
			each := ofThreads()
			w := watch(t, []Breakpoint{{Addr: site, Hold: hold, Hardware: c.debug}, {Addr: faulty, Hardware: c.debug}}, path, "threads", fmt.Sprint(each))
			require.Len(t, w.args, 16)
			var firsts []uint64
			for _, args := range w.args {
				require.True(t, slices.Equal(sequence(args[0], args[0]+each), args), len(args))
				firsts = append(firsts, args[0]/each)
			}
			require.ElementsMatch(t, sequence(0, 16), firsts)
			require.Equal(t, fmt.Sprintf("ready\nthreads %d\n", sumOfThreads(each)), w.output)
			require.Equal(t, 7, w.end.ExitCode)
		})
		part("end", func(t *testing.T) {
			w := run(t, "end")
			for _, args := range w.args {
				want := sequence(0, uint64(len(args)))
				if len(args) > n+1 && args[n+1] == 0 { // the thread that ends the process
					want = append(sequence(0, n+1), sequence(0, n)...)
				}
				require.True(t, slices.Equal(want, args), "one of %d", len(args))
			}
			require.Equal(t, "ready\nleft 5999000\n", w.output)
			require.Equal(t, 3, w.end.ExitCode)
		})
	}
	for _, cflags := range livetest.ShareOf([][]string{nil, {stepped}}, "come") {
		path, site, _ := sitesProgram(t, cflags...)
		t.Run(fmt.Sprintf("come %v", cflags), func(t *testing.T) {
			w := watch(t, []Breakpoint{{Addr: site, Hardware: cflags == nil}}, path, "come", "200")
			require.Len(t, w.args, 8*16)
			for _, args := range w.args {
				require.True(t, slices.Equal(sequence(args[0], args[0]+200), args), len(args))
			}
			require.Equal(t, "ready\ncome 122867200\n", w.output)
		})
	}
}

// tracerPID returns the number of the tracer process.
func tracerPID(s *Session) int { return s.driver.(*tracer.Conn).PID() }
