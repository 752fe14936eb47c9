package session_test

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"
	"golang.org/x/sys/unix"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/check/trace"
	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/livetest"
)

// toExit continues a session to the next exit of a record.
func toExit(t *testing.T, s *session.Session, record uint64) {
	t.Helper()
	b, err := s.Break(records(record))
	require.NoError(t, err)
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.AtExit, stop.Why)
	s.Delete(b.Number)
}

// both returns a pair that could be compared.
func both(t *testing.T, s *session.Session) *session.Pair {
	t.Helper()
	p, err := s.Both(t.Context())
	require.NoError(t, err)
	require.Empty(t, p.Why)
	return p
}

// shown returns the native and the interpreted values of a pair's rows.
func shown(p *session.Pair) (native, interpreted []string) {
	for _, r := range p.Rows {
		native, interpreted = append(native, r.Native.Value), append(interpreted, r.Interpreted.Value)
	}
	return native, interpreted
}

// TestBothAgree requires that native code and the interpreter have the values that the test computes for each iteration of @tick's loop, and return
// the same result.
func TestBothAgree(t *testing.T) {
	livetest.Slow(t)
	s := launched(t, "tick.ll")
	toExit(t, s, 1)
	acc, x, y := uint64(0), uint64(12345), uint64(1)
	n := 0
	for i := uint64(0); ; n++ {
		a, h, z := acc*31, acc>>7, y+i // as in tick.ll
		acc = a + x
		x ^= h
		y = z ^ acc
		i++
		p := both(t, s)
		require.False(t, p.Differs)
		require.EqualValues(t, i, p.Number)
		require.Equal(t, session.Stepped, s.Stop().Why)
		if i == 1000 {
			require.True(t, p.Returned)
			require.Nil(t, p.Frame)
			require.Nil(t, p.At)
			require.Len(t, p.Result, 1)
			require.Equal(t, fmt.Sprint(int64((acc+x)^y)), p.Result[0].Native)
			require.True(t, p.Result[0].Same)
			require.Zero(t, p.Words)
			break
		}
		want := []string{fmt.Sprint(i), fmt.Sprint(int64(acc)), fmt.Sprint(int64(x)), fmt.Sprint(int64(y))}
		native, interpreted := shown(p)
		require.Equal(t, want, native)
		require.Equal(t, want, interpreted)
		require.Equal(t, "%i", p.Rows[0].Name)
		require.Equal(t, "i64", p.Rows[0].Type.Source)
		require.Equal(t, p.At, p.Frame.Match().Site.Instr)
		require.Empty(t, s.Diff().Rows)
	}
	require.Equal(t, 999, n)
	at, err := s.Level()
	require.NoError(t, err)
	require.Equal(t, "entry", at.Physical.Function)
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.Ended, stop.Why)
	require.Zero(t, stop.End.ExitCode)
	_, err = s.Both(t.Context())
	require.ErrorContains(t, err, "the process has ended")
}

// TestBothOfCore requires an error for a core, which cannot run native code.
func TestBothOfCore(t *testing.T) {
	_, err := inLoop(t).Both(t.Context())
	require.ErrorContains(t, err, "in a core")
}

// header is the beginning of a module of the tests.
const header = `target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
`

// hosted starts a session with obj_host.c, which runs a program. known is the text of the module that the user gives; "" means the program itself.
func hosted(t *testing.T, program, known string, o livetest.ObjectHostOptions, layouts ...*layout.Layout) *session.Session {
	t.Helper()
	p, err := ptrace.LaunchWith(context.Background(), livetest.ObjectHostCommand(t, livetest.PICObject(t, 19, program, "-O2"), o), ptrace.LaunchOptions{Stdout: "/dev/null"})
	require.NoError(t, err)
	t.Cleanup(func() { require.NoError(t, p.Detach()) })
	if known == "" {
		known = livetest.IR(t, 19, program)
	}
	m, err := ir.ParseFile(known)
	require.NoError(t, err)
	return session.OfProcess(p, session.Config{Options: deopt.Options{Modules: []*ir.Module{m}, Layouts: layouts, TrustIR: true}, Warn: func(text string) { t.Log(text) }})
}

// code returns the anonymous executable memory of the process, including breakpoints.
func code(t *testing.T, s *session.Session) (all []byte) {
	t.Helper()
	target, err := s.Target()
	require.NoError(t, err)
	maps, err := target.Mappings()
	require.NoError(t, err)
	memory, err := os.Open(fmt.Sprintf("/proc/%d/mem", target.PID))
	require.NoError(t, err)
	defer memory.Close()
	for _, m := range maps {
		if m.Exec && (m.Path == "" || strings.Contains(m.Path, "obj_host")) {
			part := make([]byte, m.End-m.Start)
			_, err := memory.ReadAt(part, int64(m.Start))
			require.NoError(t, err)
			all = append(all, part...)
		}
	}
	require.NotEmpty(t, all)
	return all
}

// toEnd runs the process to its end, and requires exit status 0.
func toEnd(t *testing.T, s *session.Session) {
	t.Helper()
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.Stop{Why: session.Ended, End: trace.End{Kind: trace.EndExited}}, stop)
}

// TestBothOfRecursion requires that Both ignores sites of deeper activations of the same function, and can start in a deeper one.
func TestBothOfRecursion(t *testing.T) {
	s := hosted(t, "recursion.ll", "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 61) // @tree(2, 0), which calls @tree(1, 1) and @tree(0, 18)
	before := code(t, s)
	p := both(t, s)
	require.False(t, p.Differs)
	require.EqualValues(t, 62, p.Frame.Record.ID)
	native, _ := shown(p)
	require.Equal(t, []string{"2", "18", "0", "0"}, native) // 1 * 17 + 1
	levels, err := s.Levels()
	require.NoError(t, err)
	require.Equal(t, p.At, levels[0].Run.At)
	require.Equal(t, "entry", levels[1].Physical.Function)
	p = both(t, s)
	require.True(t, p.Returned)
	require.Equal(t, "936", p.Result[0].Native) // 18 + 3 * (18 * 17)
	require.False(t, p.Differs)
	require.Equal(t, before, code(t, s))
	toEnd(t, s)

	s = hosted(t, "recursion.ll", "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 61)
	toExit(t, s, 61) // @tree(1, 1)
	p = both(t, s)
	require.True(t, p.Returned)
	require.Equal(t, "18", p.Result[0].Native)
	at, err := s.Level()
	require.NoError(t, err)
	require.Equal(t, "tree", at.Physical.Function)
	toEnd(t, s)
}

// TestBothOfTypes requires that Both compares values of many types, and values that are passed in parts.
func TestBothOfTypes(t *testing.T) {
	s := hosted(t, "state.ll", "", livetest.ObjectHostOptions{Threads: 1, Rounds: 4})
	b := records(51)
	var err error
	b.If, err = condition.Parse("%n == 3")
	require.NoError(t, err)
	_, err = s.Break(b)
	require.NoError(t, err)
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.AtExit, stop.Why)
	p := both(t, s)
	require.False(t, p.Differs)
	require.EqualValues(t, 52, p.Frame.Record.ID)
	// These are the values that state.ll computes for 3: its lowest bit and 3 + 3, its 16 bits, 3 * 1000003, 0.75 * 1.5 + 3 + 3.5 + 4.25, the lanes of
	// the vector, and 3 * 3.
	w := int64(3000009)
	s6 := ((((((1 + 6) ^ 3) + w) ^ 11) + ((w + 20) ^ 44)) ^ 9)
	require.Equal(t, fmt.Sprint(s6), p.Rows[1].Native.Value)
	for _, r := range p.Rows {
		require.True(t, r.Same, "%s: %s", r.Name, r.Why)
		require.Equal(t, r.Native.Value, r.Interpreted.Value)
	}
	p = both(t, s)
	require.True(t, p.Returned)
	require.True(t, p.Result[0].Same)
	require.Zero(t, p.Words)
}

// TestBothCall requires that both sides share one call of a function that exists only as native code.
func TestBothCall(t *testing.T) {
	s := hosted(t, "crossing.ll", "", livetest.ObjectHostOptions{Threads: 1, Rounds: 2})
	toExit(t, s, 90)
	for n := 1; n < 3; n++ {
		p := both(t, s)
		require.False(t, p.Differs)
		require.EqualValues(t, 90, p.Frame.Record.ID)
		require.Equal(t, fmt.Sprint(n), p.Rows[0].Native.Value)
		require.Equal(t, p.Rows[1].Native.Value, p.Rows[1].Interpreted.Value)
		// The interpreter can move back and forth between two calls of Both.
		require.NoError(t, s.Run().Back(t.Context(), 5))
		require.NoError(t, s.Run().Step(t.Context(), 2))
	}
	p := both(t, s)
	require.True(t, p.Returned)
	require.False(t, p.Differs)
	require.True(t, p.Result[0].Same)
	toEnd(t, s)
}

// TestBothOfAnotherFunction requires that both sides are compared at the return if the exit resumes in another function than native code's.
func TestBothOfAnotherFunction(t *testing.T) {
	described, err := layout.Read(livetest.Testdata(t, "programs", "guards.layout.json"))
	require.NoError(t, err)
	s := hosted(t, "guards.ll", "", livetest.ObjectHostOptions{Threads: 1, Rounds: 40}, described)
	toExit(t, s, 71)
	p := both(t, s)
	require.Equal(t, "it resumes in @total, which is not the function that native code runs", p.Note)
	require.True(t, p.Returned)
	require.False(t, p.Differs)
	require.True(t, p.Result[0].Same)
	toEnd(t, s)
}

// patched has patchpoints in a loop: one without a call, and one with a call.
const patched = header + `declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
@sum = global i64 0
define void @count(i64 %x) noinline {
  %old = load i64, ptr @sum
  %new = add i64 %old, %x
  store i64 %new, ptr @sum
  ret void
}
define i64 @f(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ %n, %entry ], [ %acc1, %loop ]
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 11, i32 16, ptr null, i32 0, i64 %i, i64 %acc)
  %acc1 = mul i64 %acc, 3
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 12, i32 16, ptr @count, i32 1, i64 %acc1, i64 %i, i64 %acc1)
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 5
  br i1 %more, label %loop, label %done
done:
  %s = load i64, ptr @sum
  ret i64 %s
}
define i64 @entry(i64 %n) {
  %m = add i64 %n, 1
  %r = call i64 @f(i64 %m)
  ret i64 %r
}
`

// TestBothOfPatchpoints requires that Both runs over patchpoints, including the functions that they call.
func TestBothOfPatchpoints(t *testing.T) {
	s := hosted(t, livetest.Raw(t, patched), "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 11)
	acc, sum := 1, 0
	for i := range 5 {
		acc *= 3
		p := both(t, s)
		require.False(t, p.Differs)
		require.EqualValues(t, 12, p.Frame.Record.ID)
		native, interpreted := shown(p)
		require.Equal(t, []string{fmt.Sprint(i), fmt.Sprint(acc)}, native)
		require.Equal(t, native, interpreted)
		if sum += acc; i < 4 {
			p = both(t, s)
			require.EqualValues(t, 11, p.Frame.Record.ID)
			native, _ = shown(p)
			require.Equal(t, []string{fmt.Sprint(i + 1), fmt.Sprint(acc)}, native)
		}
	}
	p := both(t, s)
	require.True(t, p.Returned)
	require.False(t, p.Differs)
	require.Equal(t, fmt.Sprint(sum), p.Result[0].Native) // 3 + 9 + 27 + 81 + 243
	toEnd(t, s)
}

// TestBothTakesLong requires that native code that runs long is single-stepped for a while, and then runs at full speed with checks in between.
// Signals that arrive meanwhile must be delivered later.
func TestBothTakesLong(t *testing.T) {
	livetest.Slow(t)
	module := livetest.Raw(t, header+`declare i32 @usleep(i32)
define i64 @f(i64 %x) noinline {
entry:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %x)
  %u = call i32 @usleep(i32 350000)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %x, i32 %u)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ %x, %entry ], [ %acc1, %loop ]
  %a = mul i64 %acc, 31
  %acc1 = xor i64 %a, %i
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, 60000
  br i1 %c, label %loop, label %done
done:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, i64 %acc1, i64 %i1)
  ret i64 %acc1
}
define i64 @entry(i64 %n) {
  %r = call i64 @f(i64 %n)
  ret i64 %r
}
`)
	for threads := 1; threads < 3; threads++ {
		s := hosted(t, module, "", livetest.ObjectHostOptions{Threads: threads, Rounds: 2, Signals: true})
		toExit(t, s, 4)
		p := both(t, s)
		require.False(t, p.Differs)
		var acc uint64
		_, err := fmt.Sscan(p.Rows[0].Native.Value, &acc)
		require.NoError(t, err)
		for i := range uint64(60000) {
			acc = acc*31 ^ i
		}
		p = both(t, s)
		require.False(t, p.Differs)
		native, interpreted := shown(p)
		require.Equal(t, []string{fmt.Sprint(int64(acc)), "60000"}, native)
		require.Equal(t, native, interpreted)
		require.True(t, both(t, s).Returned)
		toEnd(t, s)
	}
}

// TestBothOfNeighbours requires that two sites without code between them count as one place.
func TestBothOfNeighbours(t *testing.T) {
	const sites = "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 13, i32 0, i64 %i, i64 %acc1)\n  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 14, i32 0, i64 %acc1, i64 %i)"
	text := strings.Replace(patched, "call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 11, i32 16, ptr null, i32 0, i64 %i, i64 %acc)", "", 1)
	text = strings.Replace(text, "call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 12, i32 16, ptr @count, i32 1, i64 %acc1, i64 %i, i64 %acc1)", sites+"\n  call void @count(i64 %acc1)", 1)
	s := hosted(t, livetest.Raw(t, text), "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 13)
	for i := 1; i < 5; i++ {
		p := both(t, s)
		require.False(t, p.Differs)
		require.EqualValues(t, 13, p.Frame.Record.ID)
		require.Equal(t, fmt.Sprint(i), p.Rows[0].Native.Value)
	}
	p := both(t, s)
	require.True(t, p.Returned)
	require.Equal(t, "363", p.Result[0].Native)
	toEnd(t, s)
}

// TestBothOfLongjmp requires that native code stays stopped at a longjmp out of the activation, which the interpreter cannot follow.
func TestBothOfLongjmp(t *testing.T) {
	module := livetest.Raw(t, header+`declare i32 @_setjmp(ptr) returns_twice
declare void @longjmp(ptr, i32)
@buffer = global [64 x i64] zeroinitializer
define i64 @deep(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %x)
  call void @longjmp(ptr @buffer, i32 1)
  unreachable
}
define i64 @f(i64 %x) noinline {
entry:
  %j = call i32 @_setjmp(ptr @buffer) returns_twice
  %first = icmp eq i32 %j, 0
  br i1 %first, label %go, label %back
go:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %x)
  %r = call i64 @deep(i64 %x)
  ret i64 %r
back:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0)
  ret i64 9
}
define i64 @entry(i64 %n) {
  %r = call i64 @f(i64 %n)
  ret i64 %r
}
`)
	for _, record := range []uint64{4, 5} {
		s := hosted(t, module, "", livetest.ObjectHostOptions{Threads: 1, Rounds: 2})
		toExit(t, s, record)
		p, err := s.Both(t.Context())
		require.NoError(t, err)
		require.Equal(t, "it calls @longjmp, whose effects cannot be compared", p.Why)
		require.False(t, p.Differs)
		require.Equal(t, session.AtExit, s.Stop().Why)
		toEnd(t, s)
	}
}

// TestBothWithAnotherValue requires that the interpreter differs from native code after a value was set.
func TestBothWithAnotherValue(t *testing.T) {
	s := hosted(t, "tick.ll", "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 1)
	_, err := s.Set("%acc", "5")
	require.NoError(t, err)
	p := both(t, s)
	require.True(t, p.Differs)
	require.False(t, p.Elsewhere())
	native, interpreted := shown(p)
	require.Equal(t, []string{"1", "12345", "12345", "12344"}, native)      // 12345 ^ 1, and so on
	require.Equal(t, []string{"1", "12500", "12345", "12501"}, interpreted) // 5 * 31 more
	rows := s.Diff().Rows
	require.Len(t, rows, 2)
	require.Equal(t, "%acc", rows[0].Name)
	require.Equal(t, "%y", rows[1].Name)
	require.True(t, both(t, s).Differs, "a second run differs too")
	toEnd(t, s)
}

// TestBothOfThreads requires that one of two threads runs while the other stays stopped. Signals that arrive meanwhile must not be lost, and their
// handler is not part of the activation.
func TestBothOfThreads(t *testing.T) {
	s := hosted(t, "tick.ll", "", livetest.ObjectHostOptions{Threads: 2, Rounds: 3, Signals: true})
	toExit(t, s, 1)
	own, err := s.Thread()
	require.NoError(t, err)
	first := own.ID
	others := func() map[int]string {
		threads, err := s.Threads()
		require.NoError(t, err)
		at := map[int]string{}
		for _, o := range threads {
			if o.ID != first && len(o.Frames) > 0 {
				at[o.ID] = fmt.Sprint(o.Frames[0].PC, o.Frames[0].CFA)
			}
		}
		return at
	}
	before, written := others(), code(t, s)
	require.NotEmpty(t, before)
	for range 50 {
		p := both(t, s)
		require.False(t, p.Differs)
		own, err = s.Thread()
		require.NoError(t, err)
		require.Equal(t, first, own.ID)
		require.Equal(t, before, others())
	}
	require.Equal(t, written, code(t, s))
	toExit(t, s, 1) // either thread may reach it first
	require.False(t, both(t, s).Differs)
	toEnd(t, s)
}

// TestBothCannotCompare requires a reason if native code does not reach the next site, and that the process can then continue from where it stopped.
func TestBothCannotCompare(t *testing.T) {
	livetest.Slow(t)
	leaves := `declare void @leave_optimized(i64)
declare i64 @call_optimized(ptr, i64, i64, i64)
declare void @__jit_debug_register_code()
declare void @exit(i32)
declare void @abort()
define i64 @deep(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %x)
  CALL
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, i64 %x)
  ret i64 %x
}
define i64 @f(i64 %x, i64 %y, i64 %z) noinline {
  %r = call i64 @deep(i64 %x)
  %s = add i64 %r, 1
  ret i64 %s
}
define i64 @entry(i64 %n) {
  %r = call i64 @call_optimized(ptr @f, i64 %n, i64 0, i64 0)
  ret i64 %r
}
`
	for _, c := range []struct {
		name, from, call, why string
		end                   trace.End
	}{
		{"the frame is left", "f", "call void @leave_optimized(i64 7)", "its frame was left without a return", trace.End{Kind: trace.EndExited}},
		{"a fault, and the frame is left", "f", "%v = load volatile i64, ptr null", "its frame was left without a return", trace.End{Kind: trace.EndExited}},
		{"a fault", "deep", "%v = load volatile i64, ptr null", "native code raised SIGSEGV", trace.End{Kind: trace.EndExited}},
		{"the process ends itself", "f", "call void @exit(i32 3)", "native code did not return: the process ended", trace.End{Kind: trace.EndExited, ExitCode: 3}},
		{"the process is ended", "f", "call void @abort()", "native code did not return: the process ended", trace.End{Kind: trace.EndKilled, Signal: 6}},
		{"code is registered", "f", "call void @__jit_debug_register_code()", "native code did not return: code was registered or loaded meanwhile", trace.End{Kind: trace.EndExited}},
	} {
		t.Run(c.name, func(t *testing.T) {
			text := strings.Replace(strings.Replace(leaves, "CALL", c.call, 1), "(ptr @f,", "(ptr @"+c.from+",", 1)
			s := hosted(t, livetest.Raw(t, header+text), "", livetest.ObjectHostOptions{Threads: 1, Rounds: 2})
			toExit(t, s, 5)
			before := code(t, s)
			p, err := s.Both(t.Context())
			require.NoError(t, err)
			require.Equal(t, c.why, p.Why)
			require.False(t, p.Differs)
			require.Nil(t, p.Frame)
			if strings.HasSuffix(c.why, "the process ended") {
				require.Equal(t, session.Stop{Why: session.Ended, End: c.end}, s.Stop())
				return
			}
			require.Equal(t, before, code(t, s))
			_, err = s.Levels()
			require.NoError(t, err)
			toEnd(t, s)
		})
	}
}

// TestBothThenContinue requires that the process continues from the place of the pair: the next stop is in the next iteration, regardless of the
// interpreter's place.
func TestBothThenContinue(t *testing.T) {
	s := hosted(t, "tick.ll", "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 1)
	run, err := s.Resume()
	require.NoError(t, err)
	require.NoError(t, run.Step(t.Context(), 40)) // after the third iteration
	i := func() string {
		is, err := s.Expression("%i")
		require.NoError(t, err)
		return is.Value
	}
	require.Equal(t, "1", both(t, s).Rows[0].Native.Value)
	require.Equal(t, "1", i())
	require.NoError(t, run.Continue(t.Context()))
	require.Equal(t, "2", both(t, s).Rows[0].Interpreted.Value)
	s.LeaveRun()
	at, err := s.Level()
	require.NoError(t, err)
	require.Equal(t, "tick", at.Physical.Function)
	require.Equal(t, "2", i())
	require.Equal(t, "3", both(t, s).Rows[0].Native.Value) // a new run starts here
	toExit(t, s, 1)
	require.Equal(t, "4", i())
	require.Nil(t, s.Diff())
	p := both(t, s)
	require.EqualValues(t, 1, p.Number)
	require.Equal(t, "5", p.Rows[0].Native.Value)
	toEnd(t, s)
}

// waits reports whether a thread sleeps; a stopped thread does not.
func waits(pid, tid int) bool {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/task/%d/status", pid, tid))
	return err == nil && strings.Contains(string(status), "State:\tS")
}

// TestBothIsGivenUp requires that after a cancelled wait the process is stopped at its place, without a breakpoint in its code, and can continue.
func TestBothIsGivenUp(t *testing.T) {
	module := header + `declare i32 @pause()
define i64 @f(i64 %x) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %x)
  %r = call i32 @pause()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 6, i32 0, i64 %x)
  ret i64 %x
}
define i64 @entry(i64 %n) {
  %r = call i64 @f(i64 %n)
  ret i64 %r
}
`
	s := hosted(t, livetest.Raw(t, module), "", livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 5)
	before := code(t, s)
	enough := errors.New("enough")
	ctx, cancel := context.WithCancelCause(t.Context())
	cancel(enough)
	_, err := s.Both(ctx)
	require.ErrorIs(t, err, enough)
	require.Equal(t, session.AtExit, s.Stop().Why, "nothing has gone on")
	ctx, cancel = context.WithCancelCause(t.Context())
	target, err := s.Target()
	require.NoError(t, err)
	own, err := s.Thread()
	require.NoError(t, err)
	go func() {
		for deadline := time.Now().Add(livetest.Patience); !waits(target.PID, own.ID) && time.Now().Before(deadline); {
			time.Sleep(time.Millisecond) // slow machines need more iterations
		}
		cancel(enough)
	}()
	_, err = s.Both(ctx)
	require.ErrorIs(t, err, enough)
	require.Equal(t, session.Interrupted, s.Stop().Why)
	require.Nil(t, s.Run())
	require.Nil(t, s.Diff())
	require.Equal(t, before, code(t, s))
	_, err = s.Levels()
	require.NoError(t, err)
	p, err := s.Both(t.Context())
	require.NoError(t, err)
	require.Equal(t, "the interpreter would resume after a call that native code is still running", p.Why)
	require.NoError(t, unix.Tgkill(target.PID, own.ID, unix.SIGALRM)) // ends pause(2)
	toEnd(t, s)
}
