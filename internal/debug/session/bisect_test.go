package session_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/internal/debug/session"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/condition"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/livetest"
)

// work has sites before, in and after a loop; every fourth iteration takes another branch.
const work = header + `@cell = global i64 0
@other = global i64 0
define i64 @work(i64 %n, i64 %m) noinline {
entry:
  %a = mul i64 %n, 3
  %b = add i64 %a, 7
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %n, i64 %m, i64 %a, i64 %b)
  %c = xor i64 %b, %m
  %d = sub i64 %c, %a
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %c, i64 %d, i64 %n)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %next ]
  %acc = phi i64 [ %d, %entry ], [ %acc2, %next ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %i, i64 %acc)
  %sq = mul i64 %i, %i
  %odd = and i64 %i, 3
  %is = icmp eq i64 %odd, 3
  br i1 %is, label %three, label %usual
three:
  %t = add i64 %acc, 1000
  %u = xor i64 %t, %sq
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %t, i64 %u, i64 %i)
  br label %next
usual:
  %v = add i64 %acc, %sq
  br label %next
next:
  %acc1 = phi i64 [ %u, %three ], [ %v, %usual ]
  %acc2 = and i64 %acc1, 1048575
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 10
  br i1 %more, label %loop, label %done
done:
  store i64 %acc2, ptr @cell
  store i64 %i1, ptr @other
  %r = add i64 %acc2, %n
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %r)
  %s = mul i64 %r, 5
  ret i64 %s
}
define i64 @entry(i64 %n) {
  %m = mul i64 %n, 8
  %r = call i64 @work(i64 %n, i64 %m)
  ret i64 %r
}
`

// atWork returns a session at the first site of @work(3, 24). In the session's module, the first occurrence of old is replaced by with.
func atWork(t *testing.T, old, with string) *session.Session {
	t.Helper()
	require.Equal(t, 1, strings.Count(work, old), old)
	known := livetest.Raw(t, strings.Replace(work, old, with, 1))
	s := hosted(t, livetest.Raw(t, work), known, livetest.ObjectHostOptions{Threads: 1, Rounds: 5})
	b := records(1)
	var err error
	b.If, err = condition.Parse("%n == 3")
	require.NoError(t, err)
	b.Once = true
	_, err = s.Break(b)
	require.NoError(t, err)
	stop, err := s.Continue(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.AtExit, stop.Why)
	return s
}

// texts returns the text of instructions in the module.
func texts(list ...*ir.Instr) (all []string) {
	for _, i := range list {
		if i != nil {
			all = append(all, strings.TrimSpace(i.Block.Func.Module.LineText(i.Line)))
		}
	}
	return all
}

// TestBisectNamesTheInstruction requires that Bisect names the one instruction in which the module differs from the compiled one.
func TestBisectNamesTheInstruction(t *testing.T) {
	livetest.Slow(t)
	const at = "call void (i64, i32, ...) @llvm.experimental.stackmap"
	for _, c := range []struct {
		name, old, with     string
		by                  session.By
		named               string // the named instruction, if not the changed one
		interpreted, native string
		before              string   // the last site at which both sides agreed
		suspects            []string // besides the named instruction
	}{
		{"an operation", "%c = xor i64 %b, %m", "%c = or i64 %b, %m", session.ByValue, "", "24", "8", "", nil}, // 16 and 24
		{"operands", "%d = sub i64 %c, %a", "%d = sub i64 %a, %c", session.ByValue, "", "1", "-1", "", nil},    // 8 and 9
		// Only the fourth iteration runs this instruction, in a block after a branch: -1 + 0 + 1 + 4.
		{"a later round", "%t = add i64 %acc, 1000", "%t = add i64 %acc, 1001", session.ByValue, "", "1005", "1004", at + "(i64 3, i32 0, i64 %i, i64 %acc)", nil},
		{"behind it", "%u = xor i64 %t, %sq", "%u = or i64 %t, %sq", session.ByValue, "", "1005", "997", at + "(i64 3, i32 0, i64 %i, i64 %acc)", []string{"%sq = mul i64 %i, %i"}}, // 1004 and 9
		// No record shows the value itself. The sum computed from it shows the difference in the second iteration, where 1 * 1 is not 1 + 1.
		{"what no record shows", "%sq = mul i64 %i, %i", "%sq = add i64 %i, %i", session.ByValue, "%acc2 = and i64 %acc1, 1048575", "1", "0", at + "(i64 3, i32 0, i64 %i, i64 %acc)",
			[]string{"%sq = add i64 %i, %i", "%v = add i64 %acc, %sq", "%acc1 = phi i64 [ %u, %three ], [ %v, %usual ]"}},
		{"a phi", "%acc = phi i64 [ %d, %entry ]", "%acc = phi i64 [ %c, %entry ]", session.ByValue, "%acc = phi i64 [ %c, %entry ], [ %acc2, %next ]", "8", "-1", at + "(i64 2, i32 0, i64 %c, i64 %d, i64 %n)", nil},
		{"a bundle", "(i64 2, i32 0, i64 %c, i64 %d, i64 %n)", "(i64 2, i32 0, i64 %d, i64 %c, i64 %n)", session.ByRecord, at + "(i64 2, i32 0, i64 %d, i64 %c, i64 %n)", "-1", "8", "", nil},
		{"a bundle, with what was shown", "(i64 3, i32 0, i64 %i, i64 %acc)", "(i64 3, i32 0, i64 %i, i64 %b)", session.ByRecord, at + "(i64 3, i32 0, i64 %i, i64 %b)", "16", "-1", at + "(i64 2, i32 0, i64 %c, i64 %d, i64 %n)", nil},
		{"a branch", "%is = icmp eq i64 %odd, 3", "%is = icmp eq i64 %odd, 2", session.ByBranch, "", "true", "false", at + "(i64 3, i32 0, i64 %i, i64 %acc)", []string{"%odd = and i64 %i, 3"}},
		{"the end of the loop", "%more = icmp ult i64 %i1, 10", "%more = icmp ult i64 %i1, 9", session.ByBranch, "", "false", "true", at + "(i64 3, i32 0, i64 %i, i64 %acc)", []string{"%i1 = add i64 %i, 1"}},
		{"a store to another place", "store i64 %i1, ptr @other", "store i64 %i1, ptr @cell", session.ByMemory, "", "10", "", at + "(i64 5, i32 0, i64 %r)", []string{"%i1 = add i64 %i, 1"}},
		{"a store of another value", "store i64 %i1, ptr @other", "store i64 %i, ptr @other", session.ByMemory, "", "9", "", at + "(i64 5, i32 0, i64 %r)", nil},
		// (2236 + 3) * 6: from 4 in the fourth iteration on it is 997, 1013, 1038, 1074, 2091, 2155.
		{"the result", "%s = mul i64 %r, 5", "%s = mul i64 %r, 6", session.ByResult, "", "13434", "11195", at + "(i64 5, i32 0, i64 %r)", nil},
	} {
		t.Run(c.name, func(t *testing.T) {
			s := atWork(t, c.old, c.with)
			p, err := s.Bisect(t.Context())
			require.NoError(t, err)
			require.Empty(t, p.Why)
			named := c.named
			if named == "" {
				named = c.with
			}
			require.Equal(t, []string{named}, texts(p.Instr))
			require.Equal(t, c.by, p.By, "%v", p.By)
			require.Equal(t, c.interpreted, p.Interpreted)
			require.Equal(t, c.native, p.Native)
			if c.before == "" {
				require.Nil(t, p.Before)
			} else {
				require.Equal(t, []string{c.before}, texts(p.Before))
			}
			require.Equal(t, append(c.suspects, named), texts(p.Suspects...))
			toEnd(t, s)
		})
	}
}

// TestBisectShowsOperands requires that operands have the native values that records have shown.
func TestBisectShowsOperands(t *testing.T) {
	p, err := atWork(t, "%d = sub i64 %c, %a", "%d = sub i64 %a, %c").Bisect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []session.Operand{{Name: "%a", Interpreted: "9", Native: "9"}, {Name: "%c", Interpreted: "8", Native: "8"}}, p.Operands)
	require.EqualValues(t, 2, p.Steps, "the site and %c are before it")
	p, err = atWork(t, "%u = xor i64 %t, %sq", "%u = or i64 %t, %sq").Bisect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []session.Operand{{Name: "%t", Interpreted: "1004", Native: "1004"}, {Name: "%sq", Interpreted: "9"}}, p.Operands)
	p, err = atWork(t, "i64 %c, i64 %d, i64 %n)", "i64 %c, i64 %a, i64 %n)").Bisect(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.ByRecord, p.By)
	require.Equal(t, []string{"%d"}, p.Alike)
}

// TestBisectGoesFar requires that Bisect finds a difference after hundreds of iterations, and one after calls of native code.
func TestBisectGoesFar(t *testing.T) {
	livetest.Slow(t)
	changed := func(program, old, with string) string {
		text, err := os.ReadFile(livetest.Testdata(t, "programs", program))
		require.NoError(t, err)
		require.Equal(t, 1, strings.Count(string(text), old), old)
		return livetest.Raw(t, strings.Replace(string(text), old, with, 1))
	}
	s := hosted(t, "tick.ll", changed("tick.ll", "icmp ult i64 %i1, 1000", "icmp ult i64 %i1, 500"), livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 1)
	p, err := s.Bisect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"%c = icmp ult i64 %i1, 500"}, texts(p.Instr))
	require.Equal(t, session.ByBranch, p.By)
	require.EqualValues(t, 500, p.Pair.Number)
	require.Equal(t, "500", p.Pair.Rows[0].Native.Value)
	require.Equal(t, "true", p.Native)

	s = hosted(t, "crossing.ll", changed("crossing.ll", "%acc1 = add i64 %r, %x", "%acc1 = sub i64 %r, %x"), livetest.ObjectHostOptions{Threads: 1, Rounds: 1})
	toExit(t, s, 90)
	p, err = s.Bisect(t.Context())
	require.NoError(t, err)
	require.Equal(t, []string{"%acc2 = and i64 %acc1, 1048575"}, texts(p.Instr))
	require.Contains(t, texts(p.Suspects...), "%acc1 = sub i64 %r, %x")
	toEnd(t, s)
}

// TestBisectOfAnotherFunction requires that Bisect finds a difference in another function, the baseline, by the result alone.
func TestBisectOfAnotherFunction(t *testing.T) {
	text, err := os.ReadFile(livetest.Testdata(t, "programs", "guards.ll"))
	require.NoError(t, err)
	known := livetest.Raw(t, strings.Replace(string(text), "%s3 = mul i64 %sv, -3", "%s3 = mul i64 %sv, -5", 1))
	described, err := layout.Read(livetest.Testdata(t, "programs", "guards.layout.json"))
	require.NoError(t, err)
	s := hosted(t, "guards.ll", known, livetest.ObjectHostOptions{Threads: 1, Rounds: 40}, described)
	toExit(t, s, 71)
	p, err := s.Bisect(t.Context())
	require.NoError(t, err)
	require.Empty(t, p.Why)
	require.Equal(t, session.ByResult, p.By)
	require.Nil(t, p.Before)
	require.NotEmpty(t, p.Pair.Note)
	require.Contains(t, texts(p.Suspects...), "%s3 = mul i64 %sv, -5")
	toEnd(t, s)
}

// TestBisectFindsNothing requires that both sides reach the return if there is no difference.
func TestBisectFindsNothing(t *testing.T) {
	s := atWork(t, "@cell = global", "@cell = global")
	p, err := s.Bisect(t.Context())
	require.NoError(t, err)
	require.Equal(t, session.Agreed, p.By)
	require.Nil(t, p.Instr)
	require.True(t, p.Pair.Returned)
	require.EqualValues(t, 15, p.Pair.Number) // 2, ten times 3, two times 4, 5, and the return
	require.Equal(t, "11195", p.Pair.Result[0].Native)
	toEnd(t, s)
}

// TestBisectIsGivenUp requires that the process continues after a cancelled bisection.
func TestBisectIsGivenUp(t *testing.T) {
	s := atWork(t, "@cell = global", "@cell = global")
	ctx, cancel := context.WithCancelCause(t.Context())
	enough := errors.New("enough")
	cancel(enough)
	_, err := s.Bisect(ctx)
	require.ErrorIs(t, err, enough)
	toEnd(t, s)
}
