package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestMusttailReturnsAtOnce requires that a ret directly follows a musttail call, and that both functions return the same type. The callee returns in
// place of its caller (LangRef, "call").
func TestMusttailReturnsAtOnce(t *testing.T) {
	const g = `define i64 @g(i64 %x) {
  ret i64 %x
}
define void @nothing() {
  ret void
}
define ptr @pointer() {
  ret ptr null
}
`
	for _, c := range []struct{ name, src, want, err string }{
		{"its result", "define i64 @f() {\n  %r = musttail call i64 @g(i64 3)\n  ret i64 %r\n}", "3", ""},
		{"cast", "define ptr @f() {\n  %r = musttail call ptr @pointer()\n  %c = bitcast ptr %r to ptr\n  ret ptr %c\n}", "0x0", ""},
		{"undef for it", "define i64 @f() {\n  %r = musttail call i64 @g(i64 3)\n  ret i64 undef\n}", "3", ""},
		{"something between", "define i64 @f() {\n  %r = musttail call i64 @g(i64 3)\n  %s = add i64 %r, 1\n  ret i64 %s\n}", "",
			"@f, block %0, line 11: %r = call @g: a musttail call must be followed by a ret of its result"},
		{"something else", "define i64 @f() {\n  musttail call void @nothing()\n  ret i64 5\n}", "",
			"@f, block %0, line 11: call @nothing: a musttail call must be followed by a ret of its result"},
		{"of another type", "define i64 @f() {\n  %r = musttail call ptr @pointer()\n  ret i64 undef\n}", "",
			"@f, block %0, line 11: %r = call @pointer: @pointer returns ptr, but replaces @f (musttail), which returns i64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, m := machineOf(t, g+c.src)
			res, err := in.Call(context.Background(), m.Func("f"), nil)
			if c.err != "" {
				require.EqualError(t, err, c.err)
				return
			}
			require.NoError(t, err)
			require.Equal(t, c.want, res.Value.Format())
		})
	}
}
