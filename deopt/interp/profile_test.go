package interp_test

import (
	"fmt"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// profiled returns the sum of the instructions of a profile.
func profiled(in *interp.Interp) (sum uint64) {
	for _, p := range in.Profile() {
		sum += p.Instrs
	}
	return sum
}

// TestProfileAddsUp requires that the instruction counts of a profile add up to the steps of the run, however the run ends.
func TestProfileAddsUp(t *testing.T) {
	const (
		trailing = "\nwith:\n  %y = add i32 %x, 1\n  %z = add i32 %y, 1\n  ret i32 %z\n}\n"
		head     = "declare void @exit(i32)\ndeclare void @qsort(ptr, i64, i64, ptr)\n@list = global [3 x i32] [i32 3, i32 1, i32 2]\n"
	)
	for name, src := range map[string]string{
		"an end": "define i32 @main() {\n  %x = add i32 1, 2\n  br label %with" + trailing,
		"an error in the middle": "define i32 @main() {\n  %x = add i32 0, 0\n  %q = add i32 1, 1\n  %e = udiv i32 1, %x\n  br label %with" +
			trailing,
		"a compare and branch on poison": "define i32 @main() {\n  %x = add nsw i32 2147483647, 1\n  %c = icmp eq i32 %x, 1\n  br i1 %c, label %with, label %with" +
			trailing,
		"exit in a callee": "define i32 @f(i32 %x) {\n  %a = add i32 %x, 1\n  call void @exit(i32 3)\n  %b = add i32 %a, 1\n  ret i32 %b\n}\n" +
			"define i32 @main() {\n  %x = call i32 @f(i32 1)\n  br label %with" + trailing,
		"exit in a callback": "define i32 @f(ptr %p, ptr %q) {\n  %a = load i32, ptr %p\n  call void @exit(i32 3)\n  %b = add i32 %a, 1\n  ret i32 %b\n}\n" +
			"define i32 @main() {\n  %x = add i32 1, 2\n  call void @qsort(ptr @list, i64 3, i64 4, ptr @f)\n  br label %with" + trailing,
		"a callee in its caller's place": "define i32 @f(i32 %x) {\n  %a = add i32 %x, 1\n  ret i32 %a\n}\n" +
			"define i32 @g(i32 %x) {\n  %a = musttail call i32 @f(i32 %x)\n  ret i32 %a\n}\n" +
			"define i32 @main() {\n  %x = call i32 @g(i32 1)\n  br label %with" + trailing,
		"a branch of an invoke": "define i32 @f(i32 %x) {\n  %a = add i32 %x, 1\n  ret i32 %a\n}\n" +
			"define i32 @main() personality ptr null {\n  %x = invoke i32 @f(i32 1) to label %with unwind label %pad\npad:\n  %l = landingpad { ptr, i32 } cleanup\n  ret i32 0" +
			trailing,
	} {
		for limit := range uint64(20) {
			for _, trace := range []func(interp.Traced){nil, func(interp.Traced) {}} {
				in, x, _ := startMain(t, head+src, interp.Options{MaxSteps: limit + 1, Trace: trace})
				_, _ = x.Run(t.Context()) // many runs end at a limit
				require.Equal(t, x.Steps(), profiled(in), "%s, at most %d steps", name, limit+1)
			}
		}
	}
}

// TestProfileOfStepsAddsUp requires that the instruction counts of a profile add up to the steps after each single step.
func TestProfileOfStepsAddsUp(t *testing.T) {
	in, x, _ := startMain(t, twoFunctions, interp.Options{})
	for range 23 {
		require.Equal(t, x.Steps(), profiled(in), fmt.Sprint(x.Steps()))
		_, err := x.Step(t.Context())
		require.NoError(t, err)
	}
	require.Equal(t, x.Steps(), profiled(in))
}

func TestProfileOfAResumedRunAddsUp(t *testing.T) {
	in, m := machineOf(t, `define i32 @f(i32 %n) {
entry:
  br label %loop
loop:
  %i = phi i32 [ 0, %entry ], [ %next, %loop ]
  %next = add i32 %i, 1
  %more = icmp ult i32 %next, %n
  br i1 %more, label %loop, label %end
end:
  ret i32 %next
}`)
	f := m.Func("f")
	body, err := f.Body()
	require.NoError(t, err)
	number := func(v uint64) interp.Value { return interp.FromUint(f.Params[0].Typ, v) }
	loop := body[1].Instrs
	values := map[ir.Value]interp.Value{f.Params[0]: number(6), loop[0]: number(3), loop[1]: number(4), loop[2]: interp.FromUint(loop[2].Typ, 1)}
	for index := range 4 {
		before := profiled(in)
		res, err := in.Resume(t.Context(), interp.Point{Block: body[1], Index: index}, values)
		require.NoError(t, err)
		require.Equal(t, res.Steps, profiled(in)-before, "from index %d", index)
	}
}
