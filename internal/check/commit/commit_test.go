package commit

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// prepareCommit prepares a commit of the stack that c selects.
func prepareCommit(t *testing.T, s *ptrace.Session, o deopt.Options, c deopt.Choice, result string) (*frame.Resumed, *Commit, error) {
	t.Helper()
	target, err := s.Target()
	require.NoError(t, err)
	v, err := deopt.Frames(target, o)
	require.NoError(t, err)
	stack, err := v.Pick(c)
	require.NoError(t, err)
	stack.Result = result
	return Prepare(context.Background(), s, stack, deopt.Limits{})
}

// innermost chooses the innermost frame that has a record.
var innermost = deopt.Choice{Frame: -1}

// commit commits and lets the process run to its end. It returns the committed changes, and the output of the process after "ready".
func commit(t *testing.T, p *livetest.Process, o deopt.Options, c deopt.Choice, result string) (*frame.Committed, string) {
	t.Helper()
	s := frametest.Open(t, p)
	out, done, err := prepareCommit(t, s, o, c, result)
	require.NoError(t, err)
	require.False(t, out.Committed.Written)
	require.NoError(t, done.Write())
	require.True(t, out.Committed.Written)
	require.NoError(t, s.Detach())
	require.NoError(t, p.Wait())
	text, ok := strings.CutPrefix(p.Output(), "ready\n")
	require.True(t, ok, p.Output())
	return out.Committed, text
}

// refusedCommit requires an error with the given reason instead of a commit, and an unchanged process.
func refusedCommit(t *testing.T, p *livetest.Process, o deopt.Options, c deopt.Choice, result, want string) {
	t.Helper()
	s := frametest.Open(t, p)
	_, done, err := prepareCommit(t, s, o, c, result)
	require.ErrorContains(t, err, want)
	require.Nil(t, done)
	require.NoError(t, s.Detach())
	p.AwaitPause(t)
}

// printing returns deoptimize.ll with a main that prints the result of @sum_opt.
func printing(t *testing.T) string {
	t.Helper()
	source, err := os.ReadFile(livetest.Testdata(t, "programs", "deoptimize.ll"))
	require.NoError(t, err)
	const call = "%r = call i64 @sum_opt(i64 1000, i64 5000)\n"
	require.Contains(t, string(source), call)
	text := strings.Replace(string(source), call, call+"  %p = call i32 (ptr, ...) @printf(ptr @text, i64 %r)\n", 1)
	return livetest.Module(t, text+"declare i32 @printf(ptr, ...)\n@text = private constant [9 x i8] c\"sum %ld\\0A\\00\"\n")
}

func deoptimizeLayout(t *testing.T, o deopt.Options) deopt.Options {
	t.Helper()
	l, err := layout.Read(livetest.Testdata(t, "programs", "deoptimize.layout.json"))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{l}
	return o
}

// TestCommitDeoptimize requires that a function with an exit inside a loop returns the sum of all squares below 1000.
func TestCommitDeoptimize(t *testing.T) {
	livetest.Slow(t)
	path := printing(t)
	check := func(t *testing.T, p *livetest.Process) {
		t.Helper()
		out, printed := commit(t, p, deoptimizeLayout(t, frametest.Known(t, p)), innermost, "")
		require.Equal(t, "sum 332833500\n", printed)
		require.Empty(t, out.Memory)
		require.Equal(t, []frame.CommittedResult{{Type: "i64", Value: "332833500", Register: "rax"}}, out.Result)
		require.Equal(t, "main", out.Continues.Function)
		require.Equal(t, len(out.Left), out.Continues.Frame)
		var set []string
		for _, r := range out.Registers {
			set = append(set, r.Name)
		}
		require.Equal(t, []string{"rax", "rbx", "rbp", "rsp", "r12", "r13", "r14", "r15", "rip"}, set)
		require.EqualValues(t, "0x13d6a2dc", out.Registers[0].New) // 332833500, the sum of all squares below 1000
		require.Equal(t, out.Continues.PC, out.Registers[8].New)
	}
	for _, version := range []int{16, 19, 22} {
		for _, kind := range []string{"mcjit", "orc"} {
			t.Run(fmt.Sprintf("lli-%d %s", version, kind), func(t *testing.T) { check(t, livetest.Lli(t, version, path, kind)) })
		}
		t.Run(fmt.Sprintf("llc-%d", version), func(t *testing.T) { check(t, livetest.Linked(t, version, path)) })
	}
}

// TestCommitChain requires that the interpreter can return from any activation of a recursion, after which native code runs the rest.
func TestCommitChain(t *testing.T) {
	livetest.Slow(t)
	for _, version := range []int{16, 19, 22} {
		for outer := range 4 {
			p := livetest.Lli(t, version, "chain.ll", "mcjit")
			o := frametest.Known(t, p)
			v := frametest.Look(t, p, false, o)
			n := slices.IndexFunc(v.Threads[0].Frames, func(f *deopt.Frame) bool { return f.Record != nil })
			choice := deopt.Choice{Frame: n}
			if outer > 0 {
				choice.To = n + outer
			}
			out, printed := commit(t, p, o, choice, "7")
			require.Equal(t, "sum 7123\n", printed)
			require.Equal(t, n+outer+1, out.Continues.Frame)
			require.Len(t, out.Left, n+outer+1)
			require.Equal(t, []string{"7", "71", "712", "7123"}[outer], out.Result[0].Value)
		}
	}
}

// TestCommitRefusesOutput requires an error for main, whose output cannot be written back.
func TestCommitRefusesOutput(t *testing.T) {
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	refusedCommit(t, p, frametest.Known(t, p), deopt.Choice{Frame: -1, To: deopt.AllCallers}, "7", "the interpreter called @printf, whose effect would be lost")
}

// TestCommitMemory requires that a commit writes the interpreter's stores to globals and the heap, but not those to the stack of the frame that was
// left.
func TestCommitMemory(t *testing.T) {
	text := livetest.Prelude + `
declare i32 @printf(ptr, ...)
declare ptr @malloc(i64)
@format = private constant [24 x i8] c"%ld %ld %ld %ld %ld %s\0A\00"
@counter = global i64 1, align 64
@hidden = internal global i64 2, align 64
@text = global [12 x i8] c"native code\00", align 64
@big = global [3000 x i64] zeroinitializer, align 64
@new = private constant [7 x i8] c"interp."
define i64 @work(ptr %heap, i64 %n) noinline gc "statepoint-example" {
entry:
  %slot = alloca i64, align 8
  store i64 300, ptr %slot
  %t = call ` + livetest.Statepoint(8, "@wait", "1", "ptr %heap, i64 %n, ptr %slot") + `
  %a = load i64, ptr @counter
  %b = load i64, ptr @hidden
  %c = load i64, ptr %heap
  %d = load i64, ptr %slot
  %s1 = add i64 %a, %b
  %s2 = add i64 %s1, %c
  %s3 = add i64 %s2, %d
  store i64 %s3, ptr @counter
  store i64 -1, ptr @hidden
  store i64 %n, ptr %heap
  store i64 %s3, ptr %slot
  call void @llvm.memcpy.p0.p0.i64(ptr @text, ptr @new, i64 7, i1 false)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %q = getelementptr [3000 x i64], ptr @big, i64 0, i64 %i
  store i64 %i, ptr %q
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 3000
  br i1 %more, label %loop, label %done
done:
  ret i64 %s2
}
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define i32 @main() {
entry:
  store i64 10, ptr @counter
  store i64 20, ptr @hidden
  %heap = call ptr @malloc(i64 8)
  store i64 4000, ptr %heap
  %r = call i64 @work(ptr %heap, i64 50000)
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %sum = phi i64 [ 0, %entry ], [ %sum1, %loop ]
  %q = getelementptr [3000 x i64], ptr @big, i64 0, i64 %i
  %x = load i64, ptr %q
  %sum1 = add i64 %sum, %x
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 3000
  br i1 %more, label %loop, label %done
done:
  %a = load i64, ptr @counter
  %b = load i64, ptr @hidden
  %c = load i64, ptr %heap
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %r, i64 %a, i64 %b, i64 %c, i64 %sum1, ptr @text)
  ret i32 0
}`
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		out, printed := commit(t, p, frametest.Known(t, p), innermost, "")
		require.Equal(t, "4030 4330 -1 50000 4498500 interp.code\n", printed)
		var small []frame.CommittedMemory
		bytes := 0
		for _, m := range out.Memory {
			bytes += m.Size
			if m.Size < 100 {
				m.Address = ""
				small = append(small, m)
			}
		}
		require.Equal(t, bytes, out.Bytes)
		require.ElementsMatch(t, []frame.CommittedMemory{
			{Size: 2, Old: "0a00", New: "ea10"},                         // @counter: 10 becomes 4330
			{Size: 8, Old: "1400000000000000", New: "ffffffffffffffff"}, // @hidden: 20 becomes -1
			{Size: 2, Old: "a00f", New: "50c3"},                         // the heap: 4000 becomes 50000
			{Size: 7, Old: "6e617469766520", New: "696e746572702e"},     // @text
		}, small)
	}
}
