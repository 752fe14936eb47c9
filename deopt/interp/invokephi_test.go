package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/internal/llvm/ir"
)

// TestResumeBehindInvokeOfPhis resumes a frame at an invoke whose normal destination starts with phis. It requires that a phi without uses needs no
// value, and that two phis with the same operand must be given the same value.
func TestResumeBehindInvokeOfPhis(t *testing.T) {
	m := parse(t, `declare i32 @personality(...)
define i64 @g() {
  ret i64 7
}
define i64 @f(i64 %x, i64 %y) personality ptr @personality {
e:
  %z = add i64 %x, %y
  %r = invoke i64 @g() to label %ok unwind label %pad
ok:
  %dead = phi i64 [ %z, %e ]
  %p = phi i64 [ %r, %e ]
  %q = phi i64 [ %x, %e ]
  %same = phi i64 [ %x, %e ]
  %s = add i64 %p, %q
  %t = add i64 %s, %same
  ret i64 %t
pad:
  %l = landingpad { ptr, i32 } cleanup
  unreachable
}`)
	f, err := m.Func("f").Body()
	require.NoError(t, err)
	g, err := m.Func("g").Body()
	require.NoError(t, err)
	resume := func(q, same int64) (*interp.Result, error) {
		in, err := interp.New(m, interp.Options{})
		require.NoError(t, err)
		return in.ResumeStack(context.Background(), []interp.Activation{
			{Point: interp.Point{Block: g[0]}},
			{Point: interp.Point{Block: f[1]}, Call: f[0].Instrs[1], Values: map[ir.Value]interp.Value{
				f[1].Instrs[2]: i64(q), f[1].Instrs[3]: i64(same),
			}},
		})
	}
	res, err := resume(5, 5)
	require.NoError(t, err)
	require.Equal(t, "17", res.Value.Format())
	_, err = resume(5, 6)
	require.EqualError(t, err, "%q and %same both have the operand %x, but were given different values")
}
