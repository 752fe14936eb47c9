package deopt_test

import (
	"context"
	"fmt"
	"strings"
	"syscall"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/deopt/frame"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/machine/names"
	"example.com/reframe/internal/progspace"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// interrupted begins programs that wait in pause for SIGUSR1 and then continue.
const interrupted = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare i64 @llvm.experimental.gc.result.i64(token)
declare i32 @llvm.experimental.gc.result.i32(token)
declare i32 @__gxx_personality_v0(...)
declare i32 @pause()
declare i32 @puts(ptr)
declare i32 @printf(ptr, ...)
declare ptr @signal(i32, ptr)
declare void @qsort(ptr, i64, i64, ptr)
@msg = private constant [6 x i8] c"ready\00"
@text = private constant [5 x i8] c"%ld\0A\00"
@count = global i64 0
define void @handler(i32 %n) {
  ret void
}
define void @ready() noinline {
  %h = call ptr @signal(i32 10, ptr @handler)
  %x = call i32 @puts(ptr @msg)
  ret void
}
`

// waitsInPause is a statepoint that calls pause.
const waitsInPause = `token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(i32 ()) @pause, i32 0, i32 0, i32 0, i32 0) `

// chains are programs whose main prints a number when it returns.
var chains = map[string]string{
	// Every activation of a recursive function gets the result of the activation that it called.
	"recursion": `
define i64 @f(i64 %n) noinline gc "statepoint-example" {
entry:
  %c = load i64, ptr @count
  %c1 = add i64 %c, %n
  store i64 %c1, ptr @count
  %last = icmp eq i64 %n, 0
  br i1 %last, label %wait, label %again
wait:
  %w = call ` + waitsInPause + `[ "deopt"(i64 %n) ]
  %r = call i32 @llvm.experimental.gc.result.i32(token %w)
  %r64 = sext i32 %r to i64
  ret i64 %r64
again:
  %m = sub i64 %n, 1
  %t = call ` + livetest.Statepoint(2, "@f", "%m", "i64 %n") + `
  %s = call i64 @llvm.experimental.gc.result.i64(token %t)
  %now = load i64, ptr @count
  store i64 %s, ptr @count
  %p = mul i64 %s, %n
  %q = add i64 %p, %now
  ret i64 %q
}`,
	// The result of an invoke is the input of a phi after it; other phis there take values of the frame. The result of a patchpoint is the invoke
	// itself.
	"invoke": `
define i64 @inner(i64 %n) noinline gc "statepoint-example" {
  %w = call ` + waitsInPause + `[ "deopt"(i64 %n) ]
  %r = call i32 @llvm.experimental.gc.result.i32(token %w)
  %r64 = sext i32 %r to i64
  %s = add i64 %r64, %n
  ret i64 %s
}
define i64 @f(i64 %n) noinline gc "statepoint-example" personality ptr @__gxx_personality_v0 {
entry:
  %x = mul i64 %n, 3
  %slot = alloca i64
  store i64 %x, ptr %slot
  %many = icmp ugt i64 %n, 100
  br i1 %many, label %join, label %try
try:
  %i = invoke i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 3, i32 32, ptr @inner, i32 1, i64 %n, i64 %x, i64 %n, ptr %slot) to label %join unwind label %bad
join:
  %p = phi i64 [ 5, %entry ], [ %i, %try ]
  %q = phi i64 [ %n, %entry ], [ %x, %try ]
  %k = phi i64 [ 6, %entry ], [ 7, %try ]
  %v = load i64, ptr %slot
  %a = mul i64 %p, %k
  %b = add i64 %a, %q
  %c = add i64 %b, %v
  ret i64 %c
bad:
  %lp = landingpad { ptr, i32 } cleanup
  ret i64 1
}`,
	// A stackmap follows a call: the frame has every recorded value, and waits for the call's result.
	"stackmap": `
define i64 @inner(i64 %n) noinline gc "statepoint-example" {
  %w = call ` + waitsInPause + `[ "deopt"(i64 %n) ]
  %r = call i32 @llvm.experimental.gc.result.i32(token %w)
  %r64 = sext i32 %r to i64
  %s = add i64 %r64, %n
  ret i64 %s
}
define i64 @f(i64 %n) noinline {
  %slot = alloca i64
  store i64 31, ptr %slot
  %r = call i64 @inner(i64 %n)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, ptr %slot)
  %v = load i64, ptr %slot
  %s = mul i64 %r, %v
  ret i64 %s
}`,
}

// chainMain calls @f(6) and prints the result.
var chainMain = `
define i32 @main() gc "statepoint-example" {
  call void @ready()
  %t = call ` + livetest.Statepoint(9, "@f", "6", "") + `
  %r = call i64 @llvm.experimental.gc.result.i64(token %t)
  %c = load i64, ptr @count
  %s = add i64 %r, %c
  %x = call i32 (ptr, ...) @printf(ptr @text, i64 %s)
  ret i32 3
}
`

// TestResumeAChain requires that a whole chain of frames, up to main, prints the same as the native code when it continues. pause returns -1 after
// a signal.
func TestResumeAChain(t *testing.T) {
	livetest.Slow(t)
	for name, text := range chains {
		for _, version := range []int{16, 19, 22} {
			t.Run(fmt.Sprintf("%s lli-%d", name, version), func(t *testing.T) {
				p := livetest.Lli(t, version, livetest.Raw(t, interrupted+text+chainMain), "mcjit")
				v := frametest.Look(t, p, true, frametest.Known(t, p))
				s, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
				require.NoError(t, err)
				s.Result = "-1"
				main := s.Frames[len(s.Frames)-1]
				require.Equal(t, "main", main.Function)
				require.Equal(t, map[string]int{"recursion": 8, "invoke": 3, "stackmap": 3}[name], len(s.Frames))
				require.Regexp(t, `^frame #\d+, .* is native code$`, s.End)
				out, err := v.Run(context.Background(), s, deopt.Limits{})
				require.NoError(t, err)
				require.Equal(t, &frame.Result{Type: "i32", Value: "3"}, out.Result)
				require.Equal(t, s.End, out.End)
				require.Len(t, out.Frames, len(s.Frames))
				require.Equal(t, &frame.Result{Type: "i32", Value: "-1"}, out.Frames[0].Given)
				for k, f := range out.Frames[1:] {
					require.Equal(t, s.Frames[k+1].Index, f.Frame)
					require.Nil(t, f.Given)
				}
				v.Target().Close() // resumes the process
				p.AwaitPause(t)
				p.Signal(t, syscall.SIGUSR1)
				_ = p.Wait() // an error, because the program ends with status 3
				require.Equal(t, "ready\n"+out.Output, p.Output())
			})
		}
	}
}

// TestPickAChain requires the last caller of a chain, and the reason why the chain has no more callers.
func TestPickAChain(t *testing.T) {
	p := livetest.Lli(t, 19, livetest.Raw(t, interrupted+chains["recursion"]+chainMain), "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	all, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
	require.NoError(t, err)
	first := all.Frames[0].Index
	for to := first; to < first+8; to++ {
		s, err := v.Pick(deopt.Choice{Frame: first, To: to})
		require.NoError(t, err)
		require.Equal(t, all.Frames[:to-first+1], s.Frames)
		require.Empty(t, s.End)
	}
	_, err = v.Pick(deopt.Choice{Frame: first, To: first + 8})
	require.ErrorIs(t, err, deopt.ErrNoFrame)
	require.ErrorContains(t, err, fmt.Sprintf("no frame to resume up to frame #%d: frame #%d, ", first+8, first+8))
	require.ErrorContains(t, err, " is native code")
	_, err = v.Pick(deopt.Choice{Frame: first + 1, To: first})
	require.EqualError(t, err, fmt.Sprintf("no frame to resume: frame #%d is not a caller of frame #%d", first, first+1))

	// Two activations in the middle: 1 -> 1*1+c, with c = 21 = 6+5+4+3+2+1+0, and 2 -> s*2+1.
	s, err := v.Pick(deopt.Choice{Frame: first + 1, To: first + 2})
	require.NoError(t, err)
	s.Result = "0x1"
	out, err := v.Run(context.Background(), s, deopt.Limits{})
	require.NoError(t, err)
	require.Equal(t, &frame.Result{Type: "i64", Value: "45"}, out.Result)
	require.Equal(t, 2, out.Writes)
	// A later run does not see the writes of an earlier one.
	again, err := v.Run(context.Background(), s, deopt.Limits{})
	require.NoError(t, err)
	require.Equal(t, out, again)
}

// TestChainThroughModules requires that a chain runs through two separately compiled modules, each with its own global of the same name.
func TestChainThroughModules(t *testing.T) {
	other := interrupted[:strings.Index(interrupted, "@msg")] + `
@own = internal global i64 1000
define i64 @inner(i64 %n) noinline {
  %w = call i32 @pause() "statepoint-id"="1" [ "deopt"(i64 %n) ]
  %r64 = sext i32 %w to i64
  %o = load volatile i64, ptr @own
  %s = add i64 %r64, %o
  store volatile i64 %s, ptr @own
  ret i64 %s
}
define i64 @twice(i64 %n) noinline {
  %o = load volatile i64, ptr @own
  %s = mul i64 %n, %o
  ret i64 %s
}`
	text := interrupted + `
declare i64 @inner(i64)
declare i64 @twice(i64)
@own = internal global i64 7
define i64 @f(i64 %n) noinline {
  %r = call i64 @inner(i64 %n) "statepoint-id"="2" [ "deopt"(i64 %n) ]
  %o = load volatile i64, ptr @own
  store volatile i64 %o, ptr @own
  %s = add i64 %r, %o
  %t = call i64 @twice(i64 %s)
  ret i64 %t
}` + chainMain
	for _, version := range []int{19, 22} {
		second := program(t, other)
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit", "-extra-module="+second)
		o := frametest.Known(t, p)
		m, err := ir.ParseFile(second)
		require.NoError(t, err)
		o.Modules = append(o.Modules, m)
		v := frametest.Look(t, p, true, o)
		s, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
		require.NoError(t, err)
		require.Len(t, s.Frames, 3, s.End)
		// A JIT may compile a module twice, each with globals of its own.
		recompiled := s.Frames[1].WithCode(&progspace.Objfile{Image: s.Frames[0].Code().Image})
		require.Equal(t, fmt.Sprintf("frame #%d, f and frame #%[1]d, f are in one module that was compiled twice", recompiled.Index),
			s.CompiledTwice(recompiled))
		s.Result = "-1"
		out, err := v.Run(t.Context(), s, deopt.Limits{})
		require.NoError(t, err)
		require.Equal(t, "1004994\n", out.Output, "(999 + 7) * 999, and no count")
		v.Target().Close()
		p.AwaitPause(t)
		p.Signal(t, syscall.SIGUSR1)
		_ = p.Wait() // an error, because the program ends with status 3
		require.Equal(t, "ready\n"+out.Output, p.Output())
	}
}

// TestChainEndsAtAnotherLayout requires that a chain ends at a module with another data layout.
func TestChainEndsAtAnotherLayout(t *testing.T) {
	inner := `
define i64 @inner(i64 %n) noinline {
  %w = call i32 @pause() "statepoint-id"="1" [ "deopt"(i64 %n) ]
  ret i64 %n
}`
	second := program(t, interrupted[:strings.Index(interrupted, "@msg")]+inner)
	p := livetest.Lli(t, 19, livetest.Raw(t, interrupted+`
declare i64 @inner(i64)
define i64 @f(i64 %n) noinline {
  %r = call i64 @inner(i64 %n) "statepoint-id"="2" [ "deopt"(i64 %n) ]
  ret i64 %r
}`+chainMain), "mcjit", "-extra-module="+second)
	o := frametest.Known(t, p)
	o.Modules = append(o.Modules, frametest.ReadModule(t, "other.ll", strings.Replace(interrupted, "-S128", "-S64", 1)+inner))
	v := frametest.Look(t, p, true, o)
	s, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
	require.NoError(t, err)
	require.Len(t, s.Frames, 1)
	require.Equal(t, fmt.Sprintf("the data layout of %s is not that of other.ll, where frame #%d, inner resumes", p.IR, s.Frames[0].Index), s.End)
	out, err := v.Run(t.Context(), s, deopt.Limits{})
	require.NoError(t, err)
	require.Equal(t, "6", out.Result.Value)
}

// TestChainEndsAtNativeCode requires that a chain ends at a native function between two frames.
func TestChainEndsAtNativeCode(t *testing.T) {
	text := interrupted + `
@list = global [2 x i64] [i64 2, i64 1]
define i32 @compare(ptr %a, ptr %b) noinline gc "statepoint-example" {
  %w = call ` + waitsInPause + `[ "deopt"(ptr %a) ]
  %v = load i64, ptr %a
  %t = trunc i64 %v to i32
  ret i32 %t
}
define i64 @f(i64 %n) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 5, i32 0, ptr elementtype(void (ptr, i64, i64, ptr)) @qsort, i32 4, i32 0, ptr @list, i64 2, i64 8, ptr @compare, i32 0, i32 0) [ "deopt"(i64 %n) ]
  ret i64 %n
}` + chainMain
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	s, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
	require.NoError(t, err)
	require.Len(t, s.Frames, 1)
	require.Equal(t, "compare", s.Frames[0].Function)
	require.Regexp(t, `^frame #\d+, .* is native code$`, s.End)
	out, err := v.Run(context.Background(), s, deopt.Limits{})
	require.NoError(t, err)
	require.Equal(t, &frame.Result{Type: "i32", Value: "2"}, out.Result)
	require.Equal(t, s.End, out.End)
}

// TestChainBeginsWithAnExit requires that the result of the function in which an exit resumes goes to the exit's caller.
func TestChainBeginsWithAnExit(t *testing.T) {
	text := interrupted + `
declare i64 @llvm.experimental.deoptimize.i64(...)
define i64 @__llvm_deoptimize() noinline {
  %r = call i32 @pause()
  ret i64 0
}
define i64 @baseline(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s1, %loop ]
  %s1 = add i64 %s, %i
  %i1 = add i64 %i, 1
  %more = icmp ule i64 %i1, %n
  br i1 %more, label %loop, label %done
done:
  ret i64 %s1
}
define i64 @optimized(i64 %n) noinline gc "statepoint-example" {
  %i = sub i64 %n, 1
  %d = call i64 (...) @llvm.experimental.deoptimize.i64(i32 7) [ "deopt"(i64 %i, i64 1000, i64 %n) ]
  ret i64 %d
}
define i64 @f(i64 %n) noinline gc "statepoint-example" {
  %t = call ` + livetest.Statepoint(2, "@optimized", "%n", "i64 %n") + `
  %s = call i64 @llvm.experimental.gc.result.i64(token %t)
  %d = mul i64 %s, %n
  ret i64 %d
}` + chainMain
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	o := frametest.Known(t, p)
	described, err := layout.Parse("l.json", []byte(`{"schema":"reframe.layout/v1","exits":[{"function":"optimized",
		"resume":{"function":"baseline","block":"loop"},"slots":[{"operand":0,"name":"%i"},{"operand":1,"name":"%s"},{"operand":2,"name":"%n"}]}]}`))
	require.NoError(t, err)
	o.Layouts = []*layout.Layout{described}
	v := frametest.Look(t, p, true, o)
	s, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
	require.NoError(t, err)
	require.Len(t, s.Frames, 3)
	out, err := v.Run(context.Background(), s, deopt.Limits{})
	require.NoError(t, err)
	require.Equal(t, "6066\n", out.Output, "(1000 + 5 + 6) * 6")
	require.Equal(t, frame.Resume{Function: "baseline", Block: "loop"}, out.Frames[0].Resume)
}

// TestResumeAfterACall resumes a thread at the return address of a statepoint. The call has returned, and its result is in a register that no
// record names.
func TestResumeAfterACall(t *testing.T) {
	text := interrupted + `
define i64 @inner(i64 %n) noinline {
  %s = mul i64 %n, 1000
  ret i64 %s
}
define i64 @work(i64 %n) noinline gc "statepoint-example" {
  %t = call ` + livetest.Statepoint(2, "@inner", "%n", "i64 %n") + `
  %s = call i64 @llvm.experimental.gc.result.i64(token %t)
  %d = add i64 %s, %n
  ret i64 %d
}
define i32 @main() {
  call void @ready()
  %w = call i32 @pause()
  %r = call i64 @work(i64 6)
  %x = call i32 (ptr, ...) @printf(ptr @text, i64 %r)
  ret i32 0
}`
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		session, v := stopAtRecord(t, p)
		f := frametest.One(t, v, "work")
		require.Equal(t, frame.After, f.Record.Moment)
		s := frametest.StackOf(v, f)
		_, err := v.Run(context.Background(), s, deopt.Limits{})
		require.ErrorContains(t, err, "\n  %s: it is the result of the call, which no record contains; give it with --result")
		s.Result = "6000"
		out, err := v.Run(context.Background(), s, deopt.Limits{})
		require.NoError(t, err)
		require.NoError(t, session.Detach())
		_ = p.Wait()
		require.Equal(t, "ready\n"+out.Result.Value+"\n", p.Output())
	}
}

// TestResumeBeforeAPatchpoint resumes a thread at the start of a patchpoint. The interpreter must also run the patchpoint's call.
func TestResumeBeforeAPatchpoint(t *testing.T) {
	text := interrupted + `
define i64 @inner(i64 %n) noinline {
  %s = mul i64 %n, 1000
  ret i64 %s
}
define i64 @work(i64 %n) noinline {
  %m = add i64 %n, 1
  %s = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 3, i32 32, ptr @inner, i32 1, i64 %m, i64 %n, i64 %m)
  %d = add i64 %s, %n
  ret i64 %d
}
define i32 @main() {
  call void @ready()
  %w = call i32 @pause()
  %r = call i64 @work(i64 6)
  %x = call i32 (ptr, ...) @printf(ptr @text, i64 %r)
  ret i32 0
}`
	for _, version := range []int{16, 19, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		session, v := stopAtRecord(t, p)
		f := frametest.One(t, v, "work")
		require.Equal(t, frame.Before, f.Record.Moment)
		s := frametest.StackOf(v, f)
		out, err := v.Run(context.Background(), s, deopt.Limits{})
		require.NoError(t, err)
		require.Equal(t, "7006", out.Result.Value)
		s.Result = "1"
		_, err = v.Run(context.Background(), s, deopt.Limits{})
		require.EqualError(t, err, "cannot use the given result: frame #0, work has no pending call: it is stopped before its patchpoint")
		require.NoError(t, session.Detach())
		_ = p.Wait()
		require.Equal(t, "ready\n"+out.Result.Value+"\n", p.Output())
	}
}

// TestChainNeedsItsCall requires that a chain ends at a stackmap if the last call before it in the module names another function than the running
// one. llc may have emitted an instruction or no code for that call. Empty inline assembly before the stackmap must not end the chain.
func TestChainNeedsItsCall(t *testing.T) {
	text := interrupted + `
declare i64 @labs(i64)
declare double @fabs(double)
define i64 @inner(i64 %n) noinline gc "statepoint-example" {
  %w = call ` + waitsInPause + `[ "deopt"(i64 %n) ]
  ret i64 %n
}
define void @inner_void(i64 %n) noinline gc "statepoint-example" {
  %w = call ` + waitsInPause + `[ "deopt"(i64 %n) ]
  ret void
}
define i64 @f(i64 %n) noinline {
  BODY
}` + chainMain
	const site = "call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0)\n"
	for body, want := range map[string]string{
		"%r = call i64 @inner(i64 %n)\n%g = call double @fabs(double 4.0) readnone\n" + site + "ret i64 %r":                              "the last call before the stackmap of frame #%d, f is of @fabs",
		"call void @inner_void(i64 %n)\n" + site + "ret i64 5":                                                                           "",
		"%r = call i64 @inner(i64 %n)\n" + `call void asm sideeffect "", "~{memory}"()` + "\n" + site + "%k = sub i64 %r, 1\nret i64 %k": "",
		"br label %next\nnext:\n" + site + "%r = call i64 @inner(i64 %n)\nret i64 %r":                                                    "frame #%d, f is native code",
	} {
		p := livetest.Linked(t, 19, livetest.Raw(t, strings.Replace(text, "BODY", body, 1)))
		v := frametest.Look(t, p, true, frametest.Known(t, p))
		s, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
		require.NoError(t, err)
		if want == "" {
			require.Len(t, s.Frames, 3)
			out, err := v.Run(context.Background(), s, deopt.Limits{})
			require.NoError(t, err)
			require.Equal(t, "5\n", out.Output)
			continue
		}
		require.Len(t, s.Frames, 1)
		require.Contains(t, s.End, fmt.Sprintf(want, s.Frames[0].Index+1))
	}
}

// TestChainNamesWhatIsMissing requires that the missing values of all frames are reported, before anything runs.
func TestChainNamesWhatIsMissing(t *testing.T) {
	text := interrupted + `
define i64 @inner(i64 %n) noinline gc "statepoint-example" {
  %w = call ` + waitsInPause + `[ "deopt"(i64 7) ]
  %r = call i32 @llvm.experimental.gc.result.i32(token %w)
  %r64 = sext i32 %r to i64
  store i64 %r64, ptr @count
  %s = add i64 %r64, %n
  ret i64 %s
}
define i64 @f(i64 %n) noinline gc "statepoint-example" {
  %a = add i64 %n, 1
  %b = add i64 %n, 2
  %t = call ` + livetest.Statepoint(2, "@inner", "%a", "i64 %a") + `
  %s = call i64 @llvm.experimental.gc.result.i64(token %t)
  %c = mul i64 %a, %b
  %d = add i64 %c, %s
  ret i64 %d
}` + chainMain
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	s, err := v.Pick(deopt.Choice{Frame: -1, To: deopt.AllCallers})
	require.NoError(t, err)
	require.Len(t, s.Frames, 3)
	n := s.Frames[0].Index
	out, err := v.Run(context.Background(), s, deopt.Limits{})
	require.Nil(t, out)
	require.EqualError(t, err, strings.Join([]string{
		fmt.Sprintf("frame #%d, inner: @inner cannot resume in block %%0: values that are live there are missing", n),
		"  %n: no slot holds it",
		"  %r: it is the result of a call that is still running; give it with --result",
		fmt.Sprintf("frame #%d, f: @f cannot resume in block %%0: values that are live there are missing", n+1),
		"  %b: no slot holds it",
	}, "\n"))
}

// TestGivenResult requires that a given result is rejected if the frame does not wait for a result, or if the text is not a value of the result's
// type.
func TestGivenResult(t *testing.T) {
	p := livetest.Lli(t, 19, livetest.Raw(t, interrupted+chains["recursion"]+chainMain), "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	s, err := v.Pick(deopt.Choice{Frame: -1})
	require.NoError(t, err)
	for result, want := range map[string]string{
		"x":          `"x" is not a value of type i32`,
		"4294967296": `"4294967296" is not a value of type i32`,
		"undef":      `"undef" is not a value of type i32`,
	} {
		s.Result = result
		_, err := v.Run(context.Background(), s, deopt.Limits{})
		require.EqualError(t, err, fmt.Sprintf("the result for frame #%d, f: %s", s.Frames[0].Index, want))
	}

	p = livetest.Lli(t, 19, "live_memory.ll", "mcjit")
	v = frametest.Look(t, p, true, frametest.Known(t, p))
	f := frametest.One(t, v, "work")
	s = frametest.StackOf(v, f)
	s.Result = "1"
	_, err = v.Run(context.Background(), s, deopt.Limits{})
	require.ErrorContains(t, err, fmt.Sprintf("cannot use the given result: @work does not read the result of the pending call of frame #%d, work", f.Index))
}

// TestGivenResultOfAnotherCall requires that a given result is not used for another call: here llc turned llvm.memcpy into a call, which is the one
// that runs.
func TestGivenResultOfAnotherCall(t *testing.T) {
	p := livetest.Lli(t, 19, livetest.Raw(t, interrupted+`
@buffer = global [64 x i8] zeroinitializer
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
define ptr @memcpy(ptr %d, ptr %s, i64 %n) noinline {
  %w = call i32 @pause()
  ret ptr %d
}
define i64 @inner(i64 %n) noinline {
  ret i64 %n
}
define i64 @f(i64 %n) noinline {
  %r = call i64 @inner(i64 %n)
  call void @llvm.memcpy.p0.p0.i64(ptr @buffer, ptr @count, i64 %n, i1 false)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %n)
  ret i64 %r
}`+chainMain), "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	s, err := v.Pick(deopt.Choice{Frame: -1, Function: frametest.Pattern(names.Exact, "f")})
	require.NoError(t, err)
	s.Result = "1"
	_, err = v.Run(context.Background(), s, deopt.Limits{})
	n := s.Frames[0].Index
	require.EqualError(t, err, fmt.Sprintf("cannot use the given result: the last call before the stackmap of frame #%d, f is of @inner, while frame #%d, memcpy runs", n, n-1))
}

func TestParseValue(t *testing.T) {
	integer := func(bits int) *ir.Type { return &ir.Type{Kind: ir.IntKind, Bits: bits} }
	of := func(k ir.TypeKind) *ir.Type { return &ir.Type{Kind: k} }
	for _, c := range []struct {
		typ        *ir.Type
		text, want string // want is "" if text is rejected
	}{
		{integer(1), "true", "true"}, {integer(1), "false", "false"}, {integer(1), "1", "true"}, {integer(1), "-1", "true"}, {integer(1), "2", ""},
		{integer(8), "-128", "-128"}, {integer(8), "255", "-1"}, {integer(8), "0xff", "-1"}, {integer(8), "-129", ""}, {integer(8), "256", ""},
		{integer(32), "true", ""}, {integer(32), "", ""}, {integer(32), "-", ""}, {integer(32), "0x", ""}, {integer(32), "--1", ""}, {integer(32), "+1", ""}, {integer(32), "1_0", ""}, {integer(32), "1.0", ""}, {integer(32), "-0x1", "-1"},
		{integer(64), "18446744073709551615", "-1"}, {integer(64), "-9223372036854775808", "-9223372036854775808"}, {integer(64), "18446744073709551616", ""},
		{integer(128), "0x80000000000000000000000000000000", "-170141183460469231731687303715884105728"},
		{integer(32), strings.Repeat("0", 2000), ""},
		{ir.Ptr, "0x7ffd00001000", "0x7ffd00001000"}, {ir.Ptr, "null", "0x0"}, {ir.Ptr, "undef", ""}, {ir.Ptr, "4096", "0x1000"},
		{of(ir.DoubleKind), "2.5", "2.5"}, {of(ir.DoubleKind), "0x4004000000000000", "2.5"}, {of(ir.DoubleKind), "0x1.4p1", "2.5"}, {of(ir.DoubleKind), "1e400", ""}, {of(ir.DoubleKind), "0x14004000000000000", ""}, {of(ir.DoubleKind), "half", ""},
		{of(ir.FloatKind), "0.1", "0.1"}, {of(ir.FloatKind), "0x40200000", "2.5"}, {of(ir.FloatKind), "1e39", ""},
		{of(ir.HalfKind), "1.5", "1.5"}, {of(ir.HalfKind), "0.1", ""}, {of(ir.HalfKind), "0x3e00", "1.5"}, {of(ir.HalfKind), "1e9", ""},
		{of(ir.BFloatKind), "1.5", "1.5"}, {of(ir.BFloatKind), "1.0000001", ""}, {of(ir.BFloatKind), "0x3fc0", "1.5"},
		{of(ir.X86FP80Kind), "1.5", ""}, {of(ir.X86FP80Kind), "0x3fffc000000000000000", "1.5"},
		{of(ir.FP128Kind), "0x3fff8000000000000000000000000000", "1.5"},
		{&ir.Type{Kind: ir.VectorKind, Len: 2, Elem: integer(32)}, "1", ""},
	} {
		v, err := deopt.ParseValue(c.typ, c.text)
		if c.want == "" {
			require.Error(t, err, "%v %q", c.typ, c.text)
			require.ErrorContains(t, err, c.typ.String())
			continue
		}
		require.NoError(t, err, "%v %q", c.typ, c.text)
		require.Equal(t, c.want, v.Format(), "%v %q", c.typ, c.text)
	}
}
