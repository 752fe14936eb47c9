package verify

import (
	"context"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/llvm/sites"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

func verified(t *testing.T, command []string, o Options) (*Summary, []*Verified) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	s := frametest.Launched(t, command)
	o.Wait = true
	if o.Warn == nil {
		o.Warn = func(string) {}
	}
	if o.Time == 0 { // the time must suffice for single-stepping on a slow machine
		o.Time = livetest.Patience / 2
	}
	var all []*Verified
	summary, err := Run(ctx, s, o, func(v *Verified) error {
		all = append(all, v)
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	return summary, all
}

// verifiedPrograms are verified completely, except for those with very many exits.
var verifiedPrograms = map[string]Options{
	"tick.ll": {Limit: 40}, "guards.ll": {}, "patch.ll": {}, "state.ll": {}, "memory.ll": {}, "floats.ll": {}, "recursion.ll": {Limit: 200}, "null.ll": {},
}

// TestVerifyFindsNothing requires no difference at any exit of any program, for each release and level, and that almost all exits can be compared.
func TestVerifyFindsNothing(t *testing.T) {
	livetest.Slow(t)
	all := os.Getenv("FIDELITY") == "all"
	exits, same, calls := uint64(0), uint64(0), map[string]uint64{}
	n := 0
	for _, program := range slices.Sorted(maps.Keys(verifiedPrograms)) {
		for _, version := range []int{14, 19, 22} {
			for level := range 4 {
				if n++; !all && n%11 != 0 { // so that successive runs cover each program, release and level
					continue
				}
				object := livetest.PICObject(t, version, program, fmt.Sprintf("-O%d", level))
				command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Threads: 2, Rounds: livetest.Times(12, 40)})
				o := verifiedPrograms[program]
				if !all && o.Limit > 50 {
					o.Limit = 50
				}
				o.Options = frametest.ModuleOptions(t, version, program)
				summary, list := verified(t, command, o)
				about := fmt.Sprintf("%s, LLVM %d, -O%d", program, version, level)
				for _, v := range list {
					require.NotEqual(t, Different, v.Status, "%s: exit %d: %+v", about, v.Number, v.Report())
				}
				require.Equal(t, uint64(len(list)), summary.Exits, about)
				require.NotEmpty(t, summary.CompiledFrom, about)
				for _, from := range summary.CompiledFrom {
					require.NotEqual(t, string(sites.Contradicted), from.Sure, "%s: %s", about, from.Why)
				}
				require.Positive(t, summary.Same, about)
				for why, count := range summary.Reasons {
					require.Equal(t, "native code raised SIGSEGV", why, about)
					calls[why] += count
				}
				exits += summary.Exits
				same += summary.Same
			}
		}
	}
	t.Logf("%d exits: %d the same, %v", exits, same, calls)
}

// TestVerifyChoosesExits requires that exits are skipped, excluded and limited by their number, and that all are counted.
func TestVerifyChoosesExits(t *testing.T) {
	object := livetest.PICObject(t, 19, "patch.ll", "-O1")
	command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 10})
	o := frametest.ModuleOptions(t, 19, "patch.ll")
	whole, _ := verified(t, command, Options{Options: o})
	require.Equal(t, Summary{Schema: SummarySchema, Exits: 50, Same: 50, Reasons: map[string]uint64{}, ExitOnly: map[string]uint64{}, SkippedWhy: map[string]uint64{}, Seconds: whole.Seconds, CompiledFrom: whole.CompiledFrom, End: trace.End{Kind: trace.EndExited}}, *whole)
	for _, c := range []struct {
		o      Options
		exits  []uint64 // the numbers of the reported exits
		passed uint64
	}{
		{Options{Skip: 47}, []uint64{48, 49, 50}, 47},
		{Options{Every: 20}, []uint64{20, 40}, 48},
		{Options{Skip: 3, Limit: 2}, []uint64{4, 5}, 3},
		{Options{ExitFilter: trace.ExitFilter{Records: []uint64{22}}, Limit: 1}, []uint64{1}, 0},
	} {
		c.o.Options = o
		summary, list := verified(t, command, c.o)
		var numbers []uint64
		for _, v := range list {
			numbers = append(numbers, v.Number)
		}
		slices.Sort(numbers)
		require.Equal(t, c.exits, numbers)
		require.Equal(t, uint64(len(c.exits)), summary.Same)
		require.GreaterOrEqual(t, summary.Skipped, c.passed)
	}
}

// TestVerifyHardTargets requires that threads, signals, forks, execs and code that is unloaded do not disturb verification, and that the program
// prints the same as without verification.
func TestVerifyHardTargets(t *testing.T) {
	livetest.Slow(t)
	limit := uint64(livetest.Times(40, 150))
	for name, h := range map[string]livetest.ObjectHostOptions{
		"threads": {Threads: 16, Rounds: 4},
		"signals": {Threads: 2, Rounds: 10, Signals: true},
		"unload":  {Threads: 2, Rounds: 10, Unload: 3},
		"churn":   {Threads: 2, Rounds: 10, Churn: 10},
		"fork":    {Threads: 2, Rounds: 10, Middle: "fork"},
		"spawn":   {Threads: 2, Rounds: 10, Middle: "spawn"},
		"exec":    {Threads: 2, Rounds: 10, Middle: "exec"},
	} {
		t.Run(name, func(t *testing.T) {
			object := livetest.PICObject(t, 19, "recursion.ll", "-O2")
			command := livetest.ObjectHostCommand(t, object, h)
			summary, _ := verified(t, command, Options{Options: frametest.ModuleOptions(t, 19, "recursion.ll"), Limit: limit})
			require.Zero(t, summary.Different)
			require.Empty(t, summary.Reasons)
			require.Equal(t, limit, summary.Same)
		})
	}
}

// signalled starts a program under lli, attaches, and makes it reach its site the given number of times.
func signalled(t *testing.T, version int, program, level string, times int) (*Summary, []*Verified) {
	t.Helper()
	p := livetest.Lli(t, version, program, "mcjit", level)
	s, err := ptrace.Open(context.Background(), p.PID)
	require.NoError(t, err)
	t.Cleanup(func() { _ = s.Detach() })
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	go func() { // repeat the signal, because a signal is lost while another is handled
		for ctx.Err() == nil {
			_ = syscall.Kill(p.PID, syscall.SIGUSR1)
			time.Sleep(20 * time.Millisecond) // the process may be slow
		}
	}()
	o := Options{Options: frametest.Known(t, p), Limit: uint64(times), Warn: func(string) {}}
	var all []*Verified
	summary, err := Run(ctx, s, o, func(v *Verified) error {
		all = append(all, v)
		return nil
	})
	require.NoError(t, err)
	cancel()
	require.NoError(t, s.Detach())
	require.True(t, p.Alive() || program == "chain.ll")
	return summary, all
}

// TestVerifyUnderLli requires no differences in code that lli compiles in the process.
func TestVerifyUnderLli(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		for _, level := range livetest.ShareOf([]string{"-O0", "-O1", "-O2", "-O3"}, "under lli", version) {
			summary, all := signalled(t, version, "stop_at.ll", level, 3)
			require.Equal(t, uint64(3), summary.Same, "LLVM %d %s: %+v", version, level, all[0].Report())
		}
	}
	for _, version := range []int{16, 19, 22} {
		// After its pause the innermost activation returns; the outer ones wait in calls and return one after the other.
		summary, all := signalled(t, version, "chain.ll", "-O2", 5)
		require.Equal(t, uint64(5), summary.Same, "LLVM %d: %+v", version, all[0].Report())
		require.Equal(t, uint64(1), all[4].Calls, "of printf")
	}
}

// TestVerifySaysWhichModule requires that a module with the same sites as the compiled one, but other code, is reported with the difference before
// the first exit.
func TestVerifySaysWhichModule(t *testing.T) {
	object := livetest.PICObject(t, 19, "crossing.ll", "-O1")
	command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 1})
	for _, c := range []struct{ old, new, want string }{
		{"%f = call ptr @memfrob(ptr %at, i64 8)", "%f = call ptr @memfrob(ptr %at, i64 80)", "crossing.ll defines @entry with 80 for @memfrob, in line 80, where the code has 8"},
		{"  %spelled = call ptr @l64a(i64 %acc)", "  %spelled = call ptr @malloc(i64 %acc)", "crossing.ll defines @spell without @l64a, which the code calls"},
	} {
		for _, entry := range []string{"", "spell"} {
			if (entry == "") == strings.Contains(c.want, "@spell") {
				continue
			}
			o := Options{FromEntry: entry == ""}
			if entry != "" {
				o.EntriesOf = []*names.Pattern{frametest.Pattern(names.Exact, entry)}
			}
			var warnings []string
			o.Options, o.Limit, o.Warn = changedModule(t, "crossing.ll", c.old, c.new), 1, func(text string) { warnings = append(warnings, text) }
			summary, _ := verified(t, command, o)
			require.Len(t, warnings, 1)
			require.True(t, strings.HasSuffix(warnings[0], c.want), warnings[0])
			require.Equal(t, warnings[0], summary.CompiledFrom[0].Why)
		}
	}
}
