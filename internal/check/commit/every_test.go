package commit

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestCommitEveryExit runs a program of four threads whose exits are all committed, so that native code never continues by itself. The program must
// print the same as without reframe.
func TestCommitEveryExit(t *testing.T) {
	livetest.Slow(t)
	const program, rounds = "guards.ll", 6
	for _, version := range []int{14, 19, 22} {
		for _, level := range []string{"-O0", "-O2"} {
			t.Run(fmt.Sprintf("llc-%d %s", version, level), func(t *testing.T) {
				h := livetest.ObjectHostOptions{Threads: 4, Rounds: rounds}
				p, begin := livetest.ObjectHost(t, livetest.PICObject(t, version, program, level), h)
				o := frametest.ModuleOptions(t, version, program)
				s := frametest.Open(t, p)
				target, err := s.Target()
				require.NoError(t, err)
				exit, ok := target.FindSymbol("__llvm_deoptimize")
				require.True(t, ok)
				require.NoError(t, s.Insert(ptrace.Breakpoint{Addr: exit.Addr, Hold: true}))
				begin()
				ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
				defer cancel()
				exits := 0
				for {
					e, err := s.Next(ctx)
					require.NoError(t, err)
					if e.Kind == ptrace.Ended {
						break
					}
					exits++
					o.Thread = e.Thread.ID
					out, c, err := prepareCommit(t, s, o, innermost, "")
					require.NoError(t, err)
					require.Equal(t, "total_opt", out.Function)
					require.Equal(t, "call_optimized", out.Committed.Continues.Function)
					require.NoError(t, c.Write())
				}
				require.NoError(t, s.Detach())
				require.NoError(t, p.Wait())
				want, _ := livetest.CVersion(t, program, h)
				require.Contains(t, p.Output(), want)
				require.Greater(t, exits, rounds)
			})
		}
	}
}

// TestCommitEverySite requires that the interpreter can run the rest of a function from each site: registers, memory and results of all kinds must be
// those of native code. The expected number counts the exits of two threads in three rounds, if each exit is committed.
func TestCommitEverySite(t *testing.T) {
	livetest.Slow(t)
	sites := map[string]int{"tick.ll": 6, "memory.ll": 6, "floats.ll": 36, "recursion.ll": 6, "patch.ll": 12}
	var turns livetest.Turns
	for _, program := range slices.Sorted(maps.Keys(sites)) {
		all := sites[program]
		for _, version := range []int{14, 19, 22} {
			for _, level := range []string{"-O0", "-O2"} {
				if turns.Out(7) {
					continue
				}
				t.Run(fmt.Sprintf("%s llc-%d %s", program, version, level), func(t *testing.T) {
					t.Parallel()
					require.Equal(t, all, commitSites(t, version, program, level, 1))
					// Commit only each fifth exit, so that native code runs between commits, also in a loop and deep in a recursion.
					require.Greater(t, commitSites(t, version, program, level, 5), all/12)
				})
			}
		}
	}
}

// commitSites makes a program commit each n-th exit, and returns their number. It requires that the program prints the same as without reframe.
func commitSites(t *testing.T, version int, program, level string, n uint64) (committed int) {
	t.Helper()
	h := livetest.ObjectHostOptions{Threads: 2, Rounds: 3}
	p, begin := livetest.ObjectHost(t, livetest.PICObject(t, version, program, level), h)
	o := frametest.ModuleOptions(t, version, program)
	s := frametest.Open(t, p)
	target, err := s.Target()
	require.NoError(t, err)
	plan, err := trace.Plan(target, trace.Options{Options: o, Warn: func(string) {}})
	require.NoError(t, err)
	for _, site := range plan {
		if len(site.Exits) > 0 {
			addr, err := strconv.ParseUint(string(site.Address), 0, 64)
			require.NoError(t, err)
			require.NoError(t, s.Insert(ptrace.Breakpoint{Addr: machine.Addr(addr), Hold: true}))
		}
	}
	begin()
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	for {
		e, err := s.Next(ctx)
		require.NoError(t, err)
		if e.Kind == ptrace.Ended {
			break
		}
		if e.Number%n != 0 {
			continue
		}
		o.Thread = e.Thread.ID
		_, c, err := prepareCommit(t, s, o, deopt.Choice{Frame: 0}, "")
		require.NoError(t, err)
		require.NoError(t, c.Write())
		committed++
	}
	require.NoError(t, s.Detach())
	require.NoError(t, p.Wait())
	want, _ := livetest.CVersion(t, program, h)
	require.Contains(t, p.Output(), want)
	return committed
}
