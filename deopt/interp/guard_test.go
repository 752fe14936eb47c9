package interp_test

import (
	"context"
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
	"example.com/reframe/test/livetest"
)

// guards holds a guard as the intrinsic and as a branch on a widenable condition, and a use of such conditions without a guard.
const guards = `declare void @llvm.experimental.guard(i1, ...)
declare i1 @llvm.experimental.widenable.condition()
declare i32 @llvm.experimental.deoptimize.i32(...)
define i32 @intrinsic(i32 %n) {
  %small = icmp ult i32 %n, 10
  call void (i1, ...) @llvm.experimental.guard(i1 %small, i32 7) [ "deopt"(i32 %n, i32 3) ]
  %r = mul i32 %n, 3
  ret i32 %r
}
define i32 @widenable(i32 %n) {
entry:
  %small = icmp ult i32 %n, 10
  %wide = call i1 @llvm.experimental.widenable.condition()
  %c = and i1 %small, %wide
  br i1 %c, label %go, label %out
go:
  %r = mul i32 %n, 3
  ret i32 %r
out:
  %d = call i32 (...) @llvm.experimental.deoptimize.i32(i32 7) [ "deopt"(i32 %n, i32 3) ]
  ret i32 %d
}
define i32 @alone() {
  %wide = call i1 @llvm.experimental.widenable.condition()
  %again = call i1 @llvm.experimental.widenable.condition()
  %c = and i1 %wide, %again
  %r = select i1 %c, i32 1, i32 0
  ret i32 %r
}
`

// TestGuards requires that a guard has the same result before and after LLVM's passes lower it, for a true and for a false condition.
func TestGuards(t *testing.T) {
	livetest.Slow(t)
	modules := map[string]string{"as it stands": guards}
	for _, version := range []int{14, 16, 19, 22} {
		for name, passes := range map[string]string{
			"lowered":       "lower-guard-intrinsic,lower-widenable-condition",
			"made explicit": "make-guards-explicit",
			"both":          "make-guards-explicit,lower-widenable-condition",
		} {
			path, out := written(t, guards), filepath.Join(t.TempDir(), "out.ll")
			flags := []string{"-passes=" + passes, "-S", "-o", out, path}
			if version == 14 {
				flags = append(flags, "-opaque-pointers")
			}
			require.Zero(t, status(t, livetest.LLVM(t, version, "opt"), flags...).Status)
			text, err := os.ReadFile(out)
			require.NoError(t, err)
			require.NotContains(t, string(text), "call void (i1, ...) @llvm.experimental.guard")
			modules[livetest.LLVM(t, version, "opt")+", "+name] = string(text)
		}
	}
	for name, text := range modules {
		t.Run(name, func(t *testing.T) {
			in, m := machineOf(t, text)
			for _, f := range []string{"intrinsic", "widenable"} {
				res, err := in.Call(context.Background(), m.Func(f), []interp.Value{interp.FromUint(ir.I32, 9)})
				require.NoError(t, err, f)
				require.Equal(t, "27", res.Value.Format(), f)

				_, err = in.Call(context.Background(), m.Func(f), []interp.Value{interp.FromUint(ir.I32, 10)})
				var exit *interp.DeoptimizeError
				require.ErrorAs(t, err, &exit, f)
				require.Equal(t, []string{"7"}, formatted(exit.Args), f)
				require.Equal(t, []string{"10", "3"}, formatted(exit.Live), f)
			}
			res, err := in.Call(context.Background(), m.Func("alone"), nil)
			require.NoError(t, err)
			require.Equal(t, "1", res.Value.Format())
		})
	}
}

func formatted(values []interp.Value) []string {
	var list []string
	for _, v := range values {
		list = append(list, v.Format())
	}
	return list
}
