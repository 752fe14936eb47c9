package interp_test

import (
	"context"
	"fmt"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
)

// TestBoundsHoldForWhatIsCheapToWrite requires that the limits also apply where a short text needs much memory or time: large values count as memory,
// and long work in one instruction counts as steps.
func TestBoundsHoldForWhatIsCheapToWrite(t *testing.T) {
	const big = "<65536 x i64>"
	var functions strings.Builder
	var calls strings.Builder
	for k := range 8 {
		fmt.Fprintf(&functions, "define void @f%d() {\n  %%v = freeze %s poison\n  ret void\n}\n", k, big)
		fmt.Fprintf(&calls, "  call void @f%d()\n", k)
	}
	for _, c := range []struct {
		name, src string
		memory    uint64
		kind      interp.Kind
		most      uint64 // maximum number of steps
	}{
		{"an alloca that is alone in its page", `define void @f() {
  br label %l
l:
  %p = alloca i8, align 4096
  br label %l
}`, 1 << 19, interp.KindMemory, 300},
		{"malloc that is alone in its page", `declare ptr @aligned_alloc(i64, i64)
define void @f() {
  br label %l
l:
  %p = call ptr @aligned_alloc(i64 1048576, i64 1)
  br label %l
}`, 1 << 19, interp.KindMemory, 300},
		{"malloc of nothing", `declare ptr @malloc(i64)
define void @f() {
  br label %l
l:
  %p = call ptr @malloc(i64 0)
  br label %l
}`, 1 << 17, interp.KindMemory, 10000},
		{"alloca of nothing", `define void @f() {
  br label %l
l:
  %p = alloca [0 x i8]
  br label %l
}`, 1 << 17, interp.KindMemory, 10000},
		{"many functions of large frames", functions.String() + "define void @f() {\n" + calls.String() + "  ret void\n}", 10 << 20, interp.KindMemory, 20},
		{"a large value as many arguments", "define void @v(...) {\n  ret void\n}\ndefine void @f() {\n  %v = freeze " + big + " poison\n  call void (...) @v(" +
			strings.Repeat(big+" %v, ", 20) + "i32 1)\n  ret void\n}", 10 << 20, interp.KindMemory, 3},
		{"a large value again and again", "define void @f() {\n  br label %l\nl:\n  %v = freeze " + big + " poison\n  br label %l\n}", 10 << 20, interp.KindSteps, 500},
		{"a large phi", "define void @f() {\n  br label %l\nl:\n  %a = phi " + big + " [ poison, %0 ], [ %a, %m ]\n  br label %m\nm:\n  %b = phi " + big +
			" [ %a, %l ]\n  br label %l\n}", 10 << 20, interp.KindSteps, 500},
		{"calls of a large frame", "define void @g() {\n  %v = freeze " + big + " poison\n  ret void\n}\ndefine void @f() {\n  br label %l\nl:\n  call void @g()\n  br label %l\n}",
			10 << 20, interp.KindSteps, 500},
	} {
		t.Run(c.name, func(t *testing.T) {
			m := parse(t, c.src)
			in, err := interp.New(m, interp.Options{MaxSteps: 1e6, MaxMemory: c.memory})
			require.NoError(t, err)
			res, err := in.Call(context.Background(), m.Func("f"), nil)
			var run *interp.RunError
			require.ErrorAs(t, err, &run)
			require.Equal(t, c.kind, run.Kind, "%v", err)
			require.LessOrEqual(t, res.Steps, c.most)
		})
	}
}

// TestMemoryThatIsGivenBackCounts requires that released memory no longer counts: freed heap blocks, and the stack of calls that have returned.
func TestMemoryThatIsGivenBackCounts(t *testing.T) {
	m := parse(t, `declare ptr @malloc(i64)
declare void @free(ptr)
define void @deep(i64 %n) {
  %p = alloca [4000 x i8]
  store i64 %n, ptr %p
  %end = icmp eq i64 %n, 0
  br i1 %end, label %done, label %more
more:
  %m = sub i64 %n, 1
  call void @deep(i64 %m)
  br label %done
done:
  ret void
}
define i64 @f(i64 %n) {
  br label %l
l:
  %i = phi i64 [ %n, %0 ], [ %j, %l ]
  call void @deep(i64 150)
  %p = call ptr @malloc(i64 600000)
  store i64 %i, ptr %p
  %v = load i64, ptr %p
  call void @free(ptr %p)
  %j = sub i64 %i, 1
  %end = icmp eq i64 %v, 0
  br i1 %end, label %done, label %l
done:
  ret i64 %v
}`)
	in, err := interp.New(m, interp.Options{MaxMemory: 1 << 20})
	require.NoError(t, err)
	for range 3 {
		res, err := in.Call(context.Background(), m.Func("f"), []interp.Value{i64(5)})
		require.NoError(t, err)
		require.Equal(t, "0", res.Value.Format())
	}
}

func TestSortOfElementsOfEverySize(t *testing.T) {
	in, m := machineOf(t, `declare void @qsort(ptr, i64, i64, ptr)
define i32 @order(ptr %a, ptr %b) {
  ret i32 0
}
define void @f() {
  %p = alloca i64
  call void @qsort(ptr %p, i64 2, i64 -16, ptr @order)
  ret void
}`)
	_, err := in.Call(context.Background(), m.Func("f"), nil)
	require.EqualError(t, err, "@f, block %0, line 7: call @qsort: a sort of 2 elements of 18446744073709551600 bytes is more than the 1073741824 bytes of memory allowed")
}
