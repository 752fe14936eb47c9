package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/replay"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// launched starts a session with a program of obj_host.c.
func launched(t *testing.T, program string) *session.Session {
	t.Helper()
	p, known := frametest.Launched19(t, program)
	return session.OfProcess(p, session.Config{Options: known, Warn: func(text string) { t.Log(text) }})
}

// records returns a breakpoint at the exits of records with these ids.
func records(ids ...uint64) session.Breakpoint {
	return session.Breakpoint{ExitFilter: trace.ExitFilter{Records: ids}}
}

// TestStopsAtBreakpoints uses null.ll, which calls @load with 0, 1, 2, 3. Each call has an exit of record 81.
func TestStopsAtBreakpoints(t *testing.T) {
	s := launched(t, "null.ll")
	require.Equal(t, session.Began, s.Stop().Why)
	odd, err := condition.Parse("%n & 1 == 1")
	require.NoError(t, err)
	first := records(81)
	first.Once = true
	_, err = s.Break(first)
	require.NoError(t, err)
	second := records(81)
	second.If = odd
	set, err := s.Break(second)
	require.NoError(t, err)
	require.Equal(t, "record 81, if %n & 1 == 1", set.String())

	for _, want := range []struct {
		number int
		n      string
	}{{1, "0"}, {2, "1"}, {2, "3"}} {
		stop, err := s.Continue(t.Context())
		require.NoError(t, err)
		require.Equal(t, session.AtExit, stop.Why)
		require.Equal(t, want.number, stop.Breakpoint.Number)
		is, err := s.Expression("%n")
		require.NoError(t, err)
		require.Equal(t, want.n, is.Value)
		twice, err := s.Expression("n * 2 + 1")
		require.NoError(t, err)
		require.Equal(t, map[string]string{"0": "1", "1": "3", "3": "7"}[want.n], twice.Value)
	}
	require.EqualValues(t, 2, set.Hits)
	require.EqualValues(t, 2, set.Passed)
	require.Len(t, s.Breakpoints(), 1)
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.Stop{Why: session.Ended, End: trace.End{Kind: trace.EndExited}}, stop)
	for _, ask := range []func() error{
		func() error { _, err := s.View(); return err },
		func() error { _, err := s.Continue(t.Context()); return err },
		func() error { _, err := s.Slots(); return err },
		func() error { _, err := s.Resume(); return err },
		func() error { return s.ReadMemory(make([]byte, 8), 4096) },
	} {
		require.ErrorContains(t, ask(), "the process has ended")
	}
}

// TestSitesAndCalls requires that breakpoints at sites and at calls of functions can be set together.
func TestSitesAndCalls(t *testing.T) {
	s := launched(t, "guards.ll")
	_, err := s.Break(session.Breakpoint{At: frametest.Pattern(names.Exact, "call_optimized")})
	require.NoError(t, err)
	_, err = s.Break(session.Breakpoint{ExitFilter: trace.ExitFilter{Function: frametest.Pattern(names.Loose, "^total_opt$")}})
	require.NoError(t, err)
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, 1, stop.Breakpoint.Number)
	at, err := s.Level()
	require.NoError(t, err)
	require.Equal(t, "entry", at.Physical.Function)
	require.Equal(t, 1, at.Number)
	for n := 0; n < 50 && stop.Breakpoint.Number == 1; n++ { // not every call has an exit
		stop, err = s.Continue(t.Context())
		require.NoError(t, err)
		require.Equal(t, session.AtExit, stop.Why)
	}
	require.Equal(t, 2, stop.Breakpoint.Number)
	at, err = s.Level()
	require.NoError(t, err)
	require.Equal(t, "total_opt", at.Physical.Function)
}

// TestBreakRefuses requires an error for a breakpoint whose condition can never hold.
func TestBreakRefuses(t *testing.T) {
	s := launched(t, "null.ll")
	b := records(81)
	var err error
	b.If, err = condition.Parse("%nothing == 1 && true")
	require.NoError(t, err)
	_, err = s.Break(b)
	require.ErrorContains(t, err, "no selected site has a slot of that name; the names are %n, %m, %p")
	require.Empty(t, s.Breakpoints())
}

// TestInterrupt requires that an interrupt stops the process without a breakpoint in its code, and that the process can continue.
func TestInterrupt(t *testing.T) {
	const rounds = 1 << 30 // the program does not end by itself
	p, err := ptrace.LaunchWith(t.Context(), livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, "tick.ll", "-O2"), livetest.ObjectHostOptions{Rounds: rounds}),
		ptrace.LaunchOptions{Stdout: "/dev/null", Bound: true})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Kill(false)) })
	s := session.OfProcess(p, session.Config{Warn: func(text string) { t.Log(text) }})
	was := code(t, s)
	b, err := s.Break(records(99)) // no record has this id
	require.NoError(t, err)
	for n := range 3 {
		if n == 2 {
			s.Delete(b.Number)
		}
		ctx, cancel := context.WithCancelCause(t.Context())
		time.AfterFunc(100*time.Millisecond, func() { cancel(errors.New("enough")) }) // the moment does not matter
		stop, err := s.Continue(ctx)
		require.NoError(t, err)
		require.Equal(t, session.Interrupted, stop.Why)
		v, err := s.View()
		require.NoError(t, err)
		require.NotEmpty(t, v.Threads)
		if now := code(t, s); len(now) == len(was) { // the object is loaded
			require.Equal(t, was, now)
		} else {
			was = now
		}
	}
}

// TestRecordHasWhatTheInterpreterReads requires that a recorded core has the memory that the interpreter reads when it resumes the frame, at any
// address.
func TestRecordHasWhatTheInterpreterReads(t *testing.T) {
	module := livetest.Raw(t, header+`declare ptr @malloc(i64)
define i64 @f(ptr %p) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, ptr %p)
  %q = getelementptr i8, ptr %p, i64 409600
  %v = load volatile i64, ptr %q
  ret i64 %v
}
define i64 @entry(i64 %n) {
entry:
  %p = call ptr @malloc(i64 1048576)
  br label %loop
loop: ; no register leads to the place afterwards
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %q = getelementptr i8, ptr %p, i64 %i
  store volatile i64 %i, ptr %q
  %i1 = add i64 %i, 4096
  %c = icmp ult i64 %i1, 1048576
  br i1 %c, label %loop, label %done
done:
  %r = call i64 @f(ptr %p)
  ret i64 %r
}
`)
	s := hosted(t, module, "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 4)
	path := filepath.Join(t.TempDir(), "exit.core")
	_, err := s.Record(t.Context(), path, ptrace.RecordOptions{Memory: ptrace.Minimal})
	require.NoError(t, err)
	core, err := ptrace.OpenCore(path, ptrace.CoreOptions{})
	require.NoError(t, err)
	t.Cleanup(core.Close)
	of := session.OfCore(core, session.Config{Options: deopt.Options{Modules: s.Modules()}, Warn: func(text string) { t.Log(text) }})
	run, err := of.Resume()
	require.NoError(t, err)
	require.NoError(t, run.Continue(t.Context()))
	result, err := run.Ended()
	require.NoError(t, err)
	require.Equal(t, "409600", result.Value.Format())
}

// inLoop returns a session at the exit of deoptimize.ll, from which the loop of @sum continues at 26.
func inLoop(t *testing.T) *session.Session {
	t.Helper()
	return atGuard(t, livetest.Lli(t, 19, livetest.Testdata(t, "programs", "deoptimize.ll"), "mcjit"))
}

// atGuard returns a session with a process that runs deoptimize.ll, or a module made from it.
func atGuard(t *testing.T, p *livetest.Process) *session.Session {
	t.Helper()
	o := frametest.Known(t, p)
	described, err := layout.Read(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{described}
	target, err := ptrace.Capture(p.PID, ptrace.Options{Hold: true, Record: true})
	require.NoError(t, err)
	t.Cleanup(target.Close)
	return session.OfCore(target, session.Config{Options: o, Warn: func(text string) { t.Log(text) }})
}

// TestLooksAndSteps requires that the session shows the frame of the exit, with values that can be changed. During an interpreter's run, the
// functions of the run must replace the frame.
func TestLooksAndSteps(t *testing.T) {
	s := inLoop(t)
	at, err := s.Level()
	require.NoError(t, err)
	require.Equal(t, "sum_opt", at.Physical.Function)
	levels, err := s.Levels()
	require.NoError(t, err)
	value := func(text string) string {
		t.Helper()
		is, err := s.Expression(text)
		require.NoError(t, err)
		return is.Value
	}
	require.Equal(t, "5525", value("%acc"))
	require.Equal(t, "true", value("acc == 5525 && i > 25"))

	run, err := s.Resume()
	require.NoError(t, err)
	now, err := s.Levels()
	require.NoError(t, err)
	require.Len(t, now, len(levels)-at.Number, "without what the frame had called")
	require.Equal(t, "sum", now[0].Run.Func.Name)
	require.Equal(t, levels[at.Number+1], session.Level{Number: at.Number + 1, Physical: now[1].Physical})
	require.NoError(t, run.Step(t.Context(), 1)) // %sq = mul i64 %i, %i
	require.Equal(t, "676", value("%sq"))
	_, err = s.Expression("%nothing")
	require.EqualError(t, err, "%nothing: there is no nothing")
	at, err = s.Level()
	require.NoError(t, err)
	lines, err := s.List(at, 2, 3)
	require.NoError(t, err)
	require.Equal(t, "%sq = mul i64 %i, %i", lines[1].Text)
	require.Equal(t, "676", lines[1].Value)
	require.True(t, lines[2].Here)

	is, err := s.Set("%i", "999")
	require.NoError(t, err)
	require.Equal(t, "999", is.Value)
	require.Nil(t, s.Run(), "it begins anew")
	require.Equal(t, "999", value("i"))
	run, err = s.Resume()
	require.NoError(t, err)
	require.NoError(t, run.Continue(t.Context()))
	result, err := run.Ended()
	require.NoError(t, err)
	require.Equal(t, "1003526", result.Value.Format(), "5525 and the square of 999, the last number below 1000")
	_, err = s.Set("%no", "1")
	require.ErrorContains(t, err, "slot %no not found; the slots are")
	_, err = s.Set("%i", "many")
	require.Error(t, err)
	require.Equal(t, "999", value("i"))
	_, err = s.Continue(t.Context())
	require.ErrorContains(t, err, "in a core")
}

// TestScriptOfWhatWasDone requires that the user's actions at the exit become a script that passes.
func TestScriptOfWhatWasDone(t *testing.T) {
	s := inLoop(t)
	_, err := s.Set("%i", "998")
	require.NoError(t, err)
	run, err := s.Resume()
	require.NoError(t, err)
	require.NoError(t, run.Continue(t.Context()))
	dir := t.TempDir()
	core := filepath.Join(dir, "exit.core")
	_, err = s.Record(t.Context(), core, ptrace.RecordOptions{})
	require.NoError(t, err)
	script := filepath.Join(dir, "exit.txtar")
	text, err := s.Script(t.Context(), replay.First{Script: script, Core: core,
		Modules: []string{livetest.Testdata(t, "programs", "deoptimize.ll")}, Layouts: []string{livetest.Testdata(t, "programs", "deoptimize.layout.json")}})
	require.NoError(t, err)
	require.Contains(t, text, "set %i 998\nresume\nreturns 1999530\n") // 5525 + 998² + 999²
	require.Contains(t, text, "returns i64 332833500", "what it comes to as it is")
}

// TestListShowsTheSource requires that the list shows the source line next to the IR, on each line where it changes.
func TestListShowsTheSource(t *testing.T) {
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	before, sum, found := strings.Cut(string(text), "define i64 @sum(")
	require.True(t, found)
	for _, line := range []struct {
		text string
		at   int
	}{{"%sq = mul i64 %i, %i", 4}, {"%acc1 = add i64 %acc, %sq", 4}, {"%i1 = add i64 %i, 1", 5}} {
		require.Contains(t, sum, line.text)
		sum = strings.Replace(sum, line.text, fmt.Sprintf("%s, !dbg !%d", line.text, line.at), 1)
	}
	module := before + "define i64 @sum(" + strings.Replace(sum, "{", "!dbg !2 {", 1) + `
!llvm.dbg.cu = !{!0}
!llvm.module.flags = !{!3}
!0 = distinct !DICompileUnit(language: DW_LANG_C99, file: !1, emissionKind: FullDebug)
!1 = !DIFile(filename: "loop.c", directory: "/src")
!2 = distinct !DISubprogram(name: "sum", scope: !1, file: !1, line: 10, type: !6, unit: !0, spFlags: DISPFlagDefinition)
!3 = !{i32 2, !"Debug Info Version", i32 3}
!4 = !DILocation(line: 12, scope: !2)
!5 = !DILocation(line: 13, scope: !2)
!6 = !DISubroutineType(types: !7)
!7 = !{null}
`
	p := livetest.Lli(t, 19, livetest.Raw(t, module), "mcjit")
	s := atGuard(t, p)
	_, err = s.Resume()
	require.NoError(t, err)
	at, err := s.Level()
	require.NoError(t, err)
	lines, err := s.List(at, 0, 4)
	require.NoError(t, err)
	var sources []string
	for _, l := range lines {
		sources = append(sources, l.Source)
	}
	require.Equal(t, []string{"loop.c:12", "", "loop.c:13", "", ""}, sources)
}
