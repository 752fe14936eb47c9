package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
)

// TestValuesBehindLongjmp requires that a value that changed after setjmp is undefined after longjmp. Compiled code may keep such a value in a
// register or on the stack. A value that did not change, or changed back, must be known.
func TestValuesBehindLongjmp(t *testing.T) {
	const head = `declare i32 @_setjmp(ptr) returns_twice
declare void @longjmp(ptr, i32) noreturn
@buf = global [200 x i8] zeroinitializer, align 16
define i32 @main() {
entry:
  %p = alloca i32
  store i32 5, ptr %p
  br label %loop
loop:
  %k = phi i32 [ 1, %entry ], [ %n, %next ]
  %again = phi i32 [ 3, %entry ], [ %again, %next ]
  %set = icmp eq i32 %k, 1
  br i1 %set, label %here, label %next
here:
  %got = call i32 @_setjmp(ptr @buf)
  %back = icmp ne i32 %got, 0
  br i1 %back, label %out, label %next
next:
  %n = add i32 %k, 1
  store i32 %n, ptr %p
  %full = icmp sgt i32 %n, 6
  br i1 %full, label %jump, label %loop
jump:
  call void @longjmp(ptr @buf, i32 40)
  unreachable
out:
  %m = load i32, ptr %p
`
	for _, c := range []struct{ name, tail, want string }{
		{"the value of setjmp", "  ret i32 %got\n}", "40"},
		{"memory", "  ret i32 %m\n}", "7"},
		{"a value that stayed", "  ret i32 %again\n}", "3"},
		{"a value that changed", "  ret i32 %k\n}", "undef"},
		{"what was made of it", "  %x = add i32 %k, %m\n  ret i32 %x\n}", "undef"},
	} {
		t.Run(c.name, func(t *testing.T) {
			for _, steps := range []bool{false, true} {
				m := parse(t, head+c.tail)
				o := interp.Options{MaxSteps: 1000}
				if steps {
					o.Trace = func(interp.Traced) {}
				}
				in, err := interp.New(m, o)
				require.NoError(t, err)
				res, err := in.Main(context.Background(), nil)
				require.NoError(t, err)
				require.Equal(t, c.want, res.Value.Format())
				total := uint64(0)
				for _, p := range in.Profile() {
					total += p.Instrs
				}
				require.Equal(t, res.Steps, total)
			}
		})
	}
}
