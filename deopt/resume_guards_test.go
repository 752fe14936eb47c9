package deopt_test

import (
	"context"
	"fmt"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/ptrace"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// guardedLoop waits in @tick at i = 10. After its call come two guards that hold as long as the loop runs: the intrinsic, and a branch on a widenable
// condition.
const guardedLoop = `declare i32 @pause()
declare i32 @puts(ptr)
declare void @llvm.experimental.guard(i1, ...)
declare i1 @llvm.experimental.widenable.condition()
declare i64 @llvm.experimental.deoptimize.i64(...)
@msg = private constant [6 x i8] c"ready\00"
define i64 @__llvm_deoptimize() noinline {
  ret i64 -1
}
define void @tick(i64 %i) noinline {
  %c = icmp eq i64 %i, 10
  br i1 %c, label %wait, label %out
wait:
  %x = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
out:
  ret void
}
define i64 @work(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %ok ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %ok ]
  call void @tick(i64 %i) [ "deopt"(i64 %i, i64 %acc, i64 %n) ]
  %g = icmp ult i64 %acc, 1000000000
  call void (i1, ...) @llvm.experimental.guard(i1 %g) [ "deopt"(i64 %i, i64 %acc) ]
  %h = icmp ult i64 %i, 100000
  %w = call i1 @llvm.experimental.widenable.condition()
  %c = and i1 %h, %w
  br i1 %c, label %ok, label %leave
leave:
  %d = call i64 (...) @llvm.experimental.deoptimize.i64() [ "deopt"(i64 %i, i64 %acc) ]
  ret i64 %d
ok:
  %sq = mul i64 %i, %i
  %acc1 = add i64 %acc, %sq
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %acc1
}
define i32 @main() {
  %r = call i64 @work(i64 1000)
  ret i32 0
}
`

// TestResumeThroughGuards requires that a frame of lowered code resumes through the guards of each form of the module: the original one, one
// whose guards are branches on widenable conditions, and the lowered one.
func TestResumeThroughGuards(t *testing.T) {
	const lower = "lower-guard-intrinsic,lower-widenable-condition"
	sum := 0
	for i := range 1000 {
		sum += i * i
	}
	for _, version := range []int{16, 19, 22} {
		path := program(t, guardedLoop)
		passed := func(passes string) string {
			out := filepath.Join(t.TempDir(), "passed.ll")
			frametest.Command(t, "", livetest.LLVM(t, version, "opt"), "-passes="+passes, "-S", path, "-o", out)
			return out
		}
		lowered := passed(lower)
		p := livetest.Lli(t, version, lowered, "mcjit")
		for name, given := range map[string]string{"before": path, "explicit": passed("make-guards-explicit"), "lowered": lowered} {
			t.Run(fmt.Sprintf("%s, lli-%d", name, version), func(t *testing.T) {
				m, err := ir.ParseFile(given)
				require.NoError(t, err)
				v := frametest.Look(t, p, true, deopt.Options{Modules: []*ir.Module{m}})
				f := frametest.One(t, v, "work")
				require.Equal(t, "10", frametest.Slot(t, f, "%i").Value)
				require.Equal(t, "285", frametest.Slot(t, f, "%acc").Value)
				out, err := v.Run(context.Background(), frametest.StackOf(v, f), deopt.Limits{})
				require.NoError(t, err)
				require.Equal(t, fmt.Sprint(sum), out.Result.Value)
			})
		}
	}
}

// TestResumeInAModuleOf32Bits requires that a frame of a 64-bit program does not resume in a module for 32 bits.
func TestResumeInAModuleOf32Bits(t *testing.T) {
	const source = `declare i32 @pause()
declare i32 @puts(ptr)
@msg = private constant [6 x i8] c"ready\00"
define void @wait() noinline {
  %x = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define i64 @work(i64 %n) noinline {
  call void @wait() [ "deopt"(i64 %n) ]
  ret i64 %n
}
define i32 @main() {
  %r = call i64 @work(i64 7)
  ret i32 0
}
`
	p := livetest.Lli(t, 19, program(t, source), "mcjit")
	narrow := frametest.ReadModule(t, "narrow.ll", "target triple = \"i686-linux-gnu\"\n"+source)
	target, err := ptrace.Capture(p.PID, ptrace.Options{})
	require.NoError(t, err)
	v, err := deopt.Frames(target, deopt.Options{Modules: []*ir.Module{narrow}})
	require.NoError(t, err)
	require.Contains(t, frametest.One(t, v, "work").Notes, "no names: narrow.ll is not what was compiled: record 2882400015 of @work belongs to code with pointers of 8 bytes, but the module has pointers of 4")

	// If a layout names a function in such a module, resuming the frame must give the error.
	described, err := layout.Parse("l.json", []byte(`{"schema":"reframe.layout/v1","exits":[{"function":"work","resume":{"function":"other","block":"go"},"slots":[{"operand":0,"name":"%n"}]}]}`))
	require.NoError(t, err)
	narrow = frametest.ReadModule(t, "narrow.ll", "target triple = \"i686-linux-gnu\"\ndefine i64 @other(i64 %n) {\ngo:\n  ret i64 %n\n}")
	wide := frametest.ReadModule(t, "wide.ll", source)
	v = frametest.Look(t, p, true, deopt.Options{Modules: []*ir.Module{wide, narrow}, Layouts: []*layout.Layout{described}})
	_, err = v.Run(context.Background(), frametest.StackOf(v, frametest.One(t, v, "work")), deopt.Limits{})
	require.EqualError(t, err, "narrow.ll has pointers of 4 bytes, but x86-64 has pointers of 8: the module does not belong to this program")
}
