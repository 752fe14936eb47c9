package deopt_test

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/internal/vm/layout"
	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestResumeBehindAnInvoke requires that a frame after an invoke resumes in the block to which it returns, whose phis take their values for that
// edge.
func TestResumeBehindAnInvoke(t *testing.T) {
	text := prelude + `
define i64 @work(i64 %a) noinline gc "statepoint-example" personality ptr @__gxx_personality_v0 {
entry:
  %x = add i64 %a, 1
  %t = invoke token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i64 %a, i64 %x) ] to label %ok unwind label %bad
ok:
  %p = phi i64 [ 11, %entry ]
  %q = phi i64 [ %x, %entry ]
  %m = mul i64 %p, 1000
  %n = add i64 %q, %m
  ret i64 %n
bad:
  %lp = landingpad token cleanup
  ret i64 1
}` + start
	for _, version := range []int{16, 22} {
		p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit")
		v := frametest.Look(t, p, true, frametest.Known(t, p))
		out, err := v.Run(context.Background(), frametest.StackOf(v, frametest.One(t, v, "work")), deopt.Limits{})
		require.NoError(t, err)
		require.Equal(t, "11101", out.Result.Value)
	}
}

// TestResultOfARunningStatepoint requires that a value that is missing because the call has not returned is reported under the name of the result.
func TestResultOfARunningStatepoint(t *testing.T) {
	text := prelude + `
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i64 %a) ]
  %r = call i64 @llvm.experimental.gc.result.i64(token %t)
  %n = add i64 %a, %r
  ret i64 %n
}` + start
	p := livetest.Lli(t, 19, livetest.Raw(t, text), "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	_, err := v.Run(context.Background(), frametest.StackOf(v, frametest.One(t, v, "work")), deopt.Limits{})
	require.ErrorContains(t, err, "%r: it is the result of a call that is still running")
}

// TestInternalNameOfAnotherModule resumes an exit in another module. It requires that an internal name of that module is not looked up in the
// image of the exit, where the same name belongs to another object.
func TestInternalNameOfAnotherModule(t *testing.T) {
	baseline := `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
@rate = internal global i64 7
define i64 @baseline(i64 %n) noinline {
entry:
  %k = load volatile i64, ptr @rate
  store volatile i64 %k, ptr @rate
  %m = mul i64 %k, %n
  ret i64 %m
}`
	text := prelude + `
@rate = internal global i64 2
declare i64 @baseline(i64)
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %k = load volatile i64, ptr @rate
  store volatile i64 %k, ptr @rate
  %b = call i64 @baseline(i64 0)
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i64 %a) ]
  %s = add i64 %k, %b
  ret i64 %s
}` + start
	for _, version := range []int{19, 22} {
		t.Run(fmt.Sprintf("lli-%d", version), func(t *testing.T) {
			other := program(t, baseline)
			p := livetest.Lli(t, version, livetest.Raw(t, text), "mcjit", "-extra-module="+other)
			o := frametest.Known(t, p)
			m, err := ir.ParseFile(other)
			require.NoError(t, err)
			o.Modules = append(o.Modules, m)
			described, err := layout.Parse("l.json", []byte(`{"schema":"reframe.layout/v1","exits":[{"function":"work","record":8,
				"resume":{"function":"baseline","block":"entry"},"slots":[{"operand":0,"name":"%n"}]}]}`))
			require.NoError(t, err)
			o.Layouts = []*layout.Layout{described}
			v := frametest.Look(t, p, true, o)
			out, err := v.Run(context.Background(), frametest.StackOf(v, frametest.One(t, v, "work")), deopt.Limits{})
			require.NoError(t, err)
			require.Equal(t, "700", out.Result.Value)
		})
	}
}

// TestInternalNameTwiceInAnImage requires that the address of an internal symbol is unknown if two objects with that symbol were linked into one
// image. The image does not show which symbol belongs to which module.
func TestInternalNameTwiceInAnImage(t *testing.T) {
	text := prelude + `
@counter = internal global i64 22
@own = internal global i64 5
define i64 @work(i64 %a) noinline gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @wait, i32 1, i32 0, i64 1, i32 0, i32 0) [ "deopt"(i64 %a) ]
  %k = load volatile i64, ptr @NAME
  store volatile i64 %k, ptr @NAME
  %s = add i64 %k, %a
  ret i64 %s
}
define void @keep() {
  store volatile i64 1, ptr @counter
  store volatile i64 1, ptr @own
  ret void
}` + start
	for name, want := range map[string]string{"counter": "", "own": "105"} {
		p := livetest.Linked(t, 19, livetest.Raw(t, strings.ReplaceAll(text, "@NAME", "@"+name)), livetest.Testdata(t, "counter.c"))
		o := frametest.Known(t, p)
		v := frametest.Look(t, p, true, o)
		out, err := v.Run(context.Background(), frametest.StackOf(v, frametest.One(t, v, "work")), deopt.Limits{})
		if want == "" {
			require.ErrorContains(t, err, "the global @counter has no address in the target, so its value cannot be known")
			continue
		}
		require.NoError(t, err)
		require.Equal(t, want, out.Result.Value)
	}
}

// TestResumeWithCalls requires that the result of a function that exists only as native code can be given. The interpreter must then not run a
// built-in function of that name.
func TestResumeWithCalls(t *testing.T) {
	p := livetest.Lli(t, 19, "chain.ll", "mcjit")
	v := frametest.Look(t, p, true, frametest.Known(t, p))
	main := slices.IndexFunc(v.Threads[0].Frames, func(f *deopt.Frame) bool { return f.Function == "main" && f.Record != nil })
	s := &deopt.Stack{Thread: &v.Threads[0], Frames: v.Threads[0].Frames[main : main+1], Result: "5"}
	out, err := v.Run(t.Context(), s, deopt.Limits{Calls: map[string]string{"printf": "77"}})
	require.NoError(t, err)
	require.Empty(t, out.Output, "printf was not run")
	for text, want := range map[string]string{"": "the result of @printf", "ten": "the result of @printf"} {
		_, err = v.Run(t.Context(), s, deopt.Limits{Calls: map[string]string{"printf": text}})
		require.ErrorContains(t, err, want)
	}
}
