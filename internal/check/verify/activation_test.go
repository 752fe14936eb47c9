package verify

import (
	"context"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// planted is baseline.ll with a fault, in the compiled code and in the given module.
type planted struct {
	name          string
	native, given []string // pairs of old and new text; given is applied in addition to native
	wrong         string   // the reported wrong part
}

var plantedFaults = []planted{
	{"none", nil, nil, ""},
	{"swapped", []string{"i64 95, i32 0, i64 %n, i64 %i, i64 %acc)", "i64 95, i32 0, i64 %n, i64 %acc, i64 %i)", "@resumed(i64 %n, i64 %i, i64 %acc)", "@resumed(i64 %n, i64 %acc, i64 %i)"}, nil,
		"the bundle or the layout: the baseline's %i is in %acc, the baseline's %acc is in %i"},
	{"off by one", []string{"call void (i64, i32, ...) @llvm.experimental.stackmap(i64 95, i32 0, i64 %n, i64 %i,", "%i2 = add i64 %i, 1\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 95, i32 0, i64 %n, i64 %i2,",
		"@resumed(i64 %n, i64 %i,", "@resumed(i64 %n, i64 %i2,"}, nil,
		"the bundle: the baseline's %i, 4, is in %i of @plain_opt"},
	{"a forgotten update", []string{"i64 95, i32 0, i64 %n, i64 %i, i64 %acc)", "i64 95, i32 0, i64 %n, i64 %i, i64 %stale)", "@resumed(i64 %n, i64 %i, i64 %acc)", "@resumed(i64 %n, i64 %i, i64 %stale)",
		"  %acc = phi i64 [ 0, %entry ], [ %acc1, %usual ]\n", "  %acc = phi i64 [ 0, %entry ], [ %acc1, %usual ]\n  %stale = phi i64 [ 0, %entry ], [ %acc, %usual ]\n"}, nil,
		"the bundle: the baseline's %acc, 39, is in %acc of @plain_opt"},
	{"a wrong constant in the optimized IR", []string{"  %acc1 = add i64 %acc, %f\n  store", "  %wrong = add i64 %f, 1\n  %acc1 = add i64 %acc, %wrong\n  store"}, nil,
		"the optimized IR: no value of @plain_opt at the site equals the baseline's %acc"},
	{"a wrong constant in the optimized code", []string{"  %acc1 = add i64 %acc, %f\n  store", "  %wrong = add i64 %f, 1\n  %acc1 = add i64 %acc, %wrong\n  store"},
		[]string{"%wrong = add i64 %f, 1", "%wrong = add i64 %f, 0"},
		"the stack map or the native code: record 95 does not hold what the function's own IR computes; %acc is 39 in @plain_opt's own IR and 42 in the record"},
	{"a missing store", []string{"  %acc1 = add i64 %acc, %f\n  store i64 %acc1, ptr @last\n", "  %acc1 = add i64 %acc, %f\n"}, nil,
		"the optimized code: memory at the exit differs from the baseline's"},
	{"the runtime's decoder", []string{"@resumed(i64 %n, i64 %i, i64 %acc)", "@resumed(i64 %n, i64 %i, i64 %n)"}, nil,
		"the runtime: the exit has the baseline's state, and resuming from it gives the baseline's result; native code's result differs"},
	{"the runtime", []string{"  %sacc = xor i64 %acc, %v\n  br label %next\nnext:\n  %acc1 = select", "  %sacc = add i64 %acc, %v\n  br label %next\nnext:\n  %acc1 = select"}, nil,
		"the runtime: the exit has the baseline's state, and resuming from it gives the baseline's result; native code's result differs"},
}

func replaced(t *testing.T, text string, pairs []string) string {
	t.Helper()
	for n := 0; n < len(pairs); n += 2 {
		require.Equal(t, 1, strings.Count(text, pairs[n]), "%q", pairs[n])
		text = strings.Replace(text, pairs[n], pairs[n+1], 1)
	}
	return text
}

// build compiles a planted fault, and returns the options to verify it.
func (f *planted) build(t *testing.T, version int, level string) (command []string, o Options) {
	t.Helper()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "baseline.ll"))
	require.NoError(t, err)
	native := replaced(t, string(source), f.native)
	path, _ := frametest.Written(t, "baseline.ll", native)
	flags := []string{level, "-relocation-model=pic"}
	if version == 14 {
		flags = append(flags, "-opaque-pointers")
	}
	object := frametest.LLC(t, version, path, flags...)
	_, m := frametest.Written(t, "baseline.ll", replaced(t, native, f.given))
	l, err := layout.Read(livetest.Testdata(t, "programs", "baseline.layout.json"))
	require.NoError(t, err)
	o.Modules, o.Layouts = append(o.Modules, m), append(o.Layouts, l)
	return livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2}), o
}

// TestVerifyFromEntryNamesWhoIsWrong requires that the verdict names the wrong part: the bundle, the stack map, the optimized code or its IR, or the
// runtime. Without the baseline only a wrong runtime is detected, because native code and the interpreter continue from the same wrong values.
func TestVerifyFromEntryNamesWhoIsWrong(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{14, 19, 22} {
		for _, level := range livetest.ShareOf([]string{"-O0", "-O1", "-O2", "-O3"}, "from the entry", version) {
			for _, f := range plantedFaults {
				command, o := f.build(t, version, level)
				_, plain := verified(t, command, o)
				require.Len(t, plain, 2)
				o.FromEntry = true
				summary, all := verified(t, command, o)
				about := f.name + ", LLVM " + level
				require.Len(t, all, 2, about)
				for n, v := range all {
					require.NotNil(t, v.Baseline, about)
					if f.wrong == "" {
						require.Equal(t, Same, v.Status, "%s: %s %+v", about, v.Why, v.Baseline)
						require.Equal(t, uint64(4), v.Baseline.State.Arrival, about)
						require.Equal(t, Same, v.Baseline.Status, "%s: %s", about, v.Baseline.Reason)
						require.Equal(t, uint64(2), summary.Same)
						continue
					}
					require.Equal(t, f.wrong, v.Baseline.Wrong, "%s: %+v", about, v.Baseline.State)
					require.Equal(t, Different, v.Status, about)
					if strings.HasPrefix(f.wrong, "the runtime") {
						require.Equal(t, Different, plain[n].Status, about)
					} else {
						require.Equal(t, Same, plain[n].Status, about)
					}
				}
			}
		}
	}
}

// TestVerifyEntries requires that each activation of a function without records is verified.
func TestVerifyEntries(t *testing.T) {
	object := livetest.PICObject(t, 19, "crossing.ll", "-O2")
	command := livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2})
	o := Options{Options: frametest.ModuleOptions(t, 19, "crossing.ll"), EntriesOf: []*names.Pattern{frametest.Pattern(names.Exact, "spell")}}
	summary, all := verified(t, command, o)
	for _, v := range all {
		require.Equal(t, Same, v.Status, v.Why)
		require.Equal(t, "spell", v.Entry)
		require.Equal(t, uint64(9), v.Calls)
	}
	require.Equal(t, uint64(6), summary.Same)
}

// loopOfExits has a site in each iteration of its loop, and its baseline has none.
const loopOfExits = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
@last = global i64 0
define i64 @plain(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ 1, %entry ], [ %acc1, %loop ]
  %f = mul i64 %acc, 31
  %acc1 = add i64 %f, %i
  store i64 %acc1, ptr @last
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
define i64 @plain_opt(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ 1, %entry ], [ %acc1, %loop ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 95, i32 0, i64 %n, i64 %i, i64 %acc)
  %f = mul i64 %acc, 31
  %acc1 = add i64 %f, %i
  store i64 %acc1, ptr @last
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
define i64 @entry(i64 %n) {
  %r = call i64 @plain_opt(i64 1000)
  ret i64 %r
}
`

// looping compiles loopOfExits, and returns the options to verify it.
func looping(t *testing.T, pairs ...string) (object string, o Options) {
	t.Helper()
	path, m := frametest.Written(t, "loop.ll", replaced(t, loopOfExits, pairs))
	l, err := layout.Read(livetest.Testdata(t, "programs", "baseline.layout.json"))
	require.NoError(t, err)
	o.Modules, o.Layouts = append(o.Modules, m), append(o.Layouts, l)
	return frametest.LLC(t, 19, path, "-O2", "-relocation-model=pic"), o
}

// TestVerifyRunsTheBaselineForAllExits requires that the baseline runs in step with native code, once to find its arrivals, and once to stop at them.
// More exits of an activation, right or wrong, must not cause more runs.
func TestVerifyRunsTheBaselineForAllExits(t *testing.T) {
	livetest.Slow(t)
	for _, c := range []struct {
		pairs  []string
		status string
		runs   int // number of repeated runs of the baseline
		own    int // number of repeated runs of the function's own IR
	}{
		{nil, Same, 2, 0},
		{[]string{"i64 95, i32 0, i64 %n, i64 %i, i64 %acc)", "i64 95, i32 0, i64 %n, i64 %acc, i64 %i)"}, Different, 1, 2},
	} {
		object, o := looping(t, c.pairs...)
		o.FromEntry, o.Every = true, 62
		_, all := verified(t, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{}), o)
		require.Len(t, all, 16)
		for _, v := range all {
			require.Equal(t, c.status, v.Status, "%s: %+v", v.Why, v.Baseline)
			require.Equal(t, uint64(1000), v.Baseline.State.Arrivals)
			at := v.Baseline.State.Arrival + v.Baseline.State.Nearest // one of the two is 0
			require.Equal(t, v.Number, at)
			require.Equal(t, c.runs, v.entry.baseline.reruns.count)
			require.Equal(t, c.own, v.entry.own.reruns.count)
		}
	}
}

// TestVerifyKeepsNoMoreThanItMay requires that the state that is kept of a run is bounded. Beyond the bound, each exit is compared with a separate
// run, and must have the same outcome.
func TestVerifyKeepsNoMoreThanItMay(t *testing.T) {
	livetest.Slow(t)
	most := maxKept
	t.Cleanup(func() { maxKept = most })
	maxKept = 1000
	object, o := looping(t)
	o.FromEntry, o.Every, o.Limit = true, 200, 4
	_, all := verified(t, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{}), o)
	require.Len(t, all, 4)
	for _, v := range all {
		require.Equal(t, Same, v.Status, "%s: %+v", v.Why, v.Baseline)
		require.Equal(t, v.Number, v.Baseline.State.Arrival)
		require.Equal(t, uint64(1000), v.Baseline.State.Arrivals)
		require.Equal(t, 1+4, v.entry.baseline.reruns.count)
	}
}

// TestVerifyByLayout requires that an exit is compared by default with the function in which a layout resumes it. Exits without a layout get no such
// verdict.
func TestVerifyByLayout(t *testing.T) {
	livetest.Slow(t)
	for _, f := range plantedFaults[:2] {
		command, o := f.build(t, 19, "-O2")
		o.ByLayout = true
		summary, all := verified(t, command, o)
		require.Len(t, all, 2)
		for _, v := range all {
			require.Equal(t, f.wrong, v.Baseline.Wrong)
			require.Equal(t, f.wrong == "", v.Status == Same, "%s: %s", v.Status, v.Why)
		}
		require.Empty(t, summary.ExitOnly)
		o.Layouts = nil
		summary, all = verified(t, command, o)
		for _, v := range all {
			require.Nil(t, v.Baseline)
			require.Equal(t, Same, v.Status, v.Why)
		}
		require.Empty(t, summary.ExitOnly)
	}
}

// TestVerifyByLayoutCannotLookBack requires that exits of an activation that was already running are verified only from the exit, with a note in the
// summary. Exits of the next activation must be compared with the baseline.
func TestVerifyByLayoutCannotLookBack(t *testing.T) {
	livetest.Slow(t)
	object, o := looping(t, "@plain_opt(i64 1000)", "@plain_opt(i64 12)")
	s := frametest.Launched(t, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2}))
	ctx, cancel := context.WithTimeout(context.Background(), livetest.Patience)
	defer cancel()
	_, err := trace.Run(ctx, s, trace.Options{Options: o.Options, Wait: true, Limit: 1, Warn: func(string) {}}, func(*trace.Exited) error { return nil })
	require.NoError(t, err)
	o.ByLayout, o.Warn, o.Time = true, func(string) {}, livetest.Patience/2
	held := 0
	summary, err := Run(ctx, s, o, func(v *Verified) error {
		require.Equal(t, Same, v.Status, v.Why)
		held += int(oneIf(v.Baseline != nil))
		return nil
	})
	require.NoError(t, err)
	require.NoError(t, s.Detach())
	require.Equal(t, uint64(11+12), summary.Same)
	require.Equal(t, 12, held)
	require.Equal(t, map[string]uint64{"the function was already running when reframe began to watch its entry": 11}, summary.ExitOnly)
}

// TestVerifyByLayoutIsBounded requires that only a bounded number of long activations without an exit is followed, and no activation that begins
// among skipped exits. The exits of these activations are verified only from the exit.
func TestVerifyByLayoutIsBounded(t *testing.T) {
	livetest.Slow(t)
	calls := []string{"  %m1 = add i64 %m, 6\n  %r = call i64 @plain_opt(i64 %m1, i64 1)\n", `  br label %again
again:
  %k = phi i64 [ 0, %0 ], [ %k1, %again ]
  %few = call i64 @plain_opt(i64 2, i64 1)
  %k1 = add i64 %k, 1
  %c = icmp ult i64 %k1, 110
  br i1 %c, label %again, label %last
last:
  %r = call i64 @plain_opt(i64 8, i64 1)
`}
	f := planted{native: calls}
	command, o := f.build(t, 19, "-O2")
	o.ByLayout = true
	summary, all := verified(t, command, o)
	require.Len(t, all, 2)
	for _, v := range all {
		require.Nil(t, v.Baseline)
		require.Equal(t, Same, v.Status, v.Why)
	}
	require.Len(t, summary.ExitOnly, 1)
	for why := range summary.ExitOnly {
		require.Contains(t, why, "no more activations of @plain_opt are followed: 100 reached no exit, ")
	}

	object, o := looping(t, "@plain_opt(i64 1000)", "@plain_opt(i64 12)")
	o.ByLayout, o.Skip = true, 3
	summary, _ = verified(t, livetest.ObjectHostCommand(t, object, livetest.ObjectHostOptions{Rounds: 2}), o)
	require.Equal(t, uint64(9+12), summary.Same)
	require.Equal(t, map[string]uint64{"the activation began among the skipped exits": 9}, summary.ExitOnly)
}
