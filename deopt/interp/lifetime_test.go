package interp_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
)

// TestOutsideOfItsLifeAnAllocaHasNoValue requires that an alloca is undefined before and after its lifetime (LangRef, "llvm.lifetime.start"). It
// tests both forms of the intrinsics: that before LLVM 22, and that since.
func TestOutsideOfItsLifeAnAllocaHasNoValue(t *testing.T) {
	const declared = `declare void @llvm.lifetime.start.p0(i64, ptr)
declare void @llvm.lifetime.end.p0(i64, ptr)
define i8 @f(ptr %other) {
  %a = alloca i8
  %b = alloca [2 x i8]
  store i8 7, ptr %b
`
	const declared22 = `declare void @llvm.lifetime.start.p0(ptr)
declare void @llvm.lifetime.end.p0(ptr)
define i8 @f(ptr %other) {
  %a = alloca i8
  %b = alloca [2 x i8]
  store i8 7, ptr %b
`
	const load = "  %r = load i8, ptr %a\n  ret i8 %r\n}"
	for _, c := range []struct{ src, want string }{
		{declared + "  call void @llvm.lifetime.start.p0(i64 1, ptr %a)\n  store i8 5, ptr %a\n" + load, "5"},
		{declared + "  store i8 5, ptr %a\n  call void @llvm.lifetime.end.p0(i64 1, ptr %a)\n" + load, "undef"},
		{declared + "  store i8 5, ptr %a\n  call void @llvm.lifetime.start.p0(i64 1, ptr %a)\n" + load, "undef"},
		{declared + "  store i8 5, ptr %a\n  call void @llvm.lifetime.end.p0(i64 2, ptr %b)\n" + load, "5"},
		{declared + "  store i8 5, ptr %a\n  call void @llvm.lifetime.end.p0(i64 1, ptr %other)\n" + load, "5"},
		{declared22 + "  store i8 5, ptr %a\n  call void @llvm.lifetime.end.p0(ptr %a)\n" + load, "undef"},
		{declared22 + "  store i8 5, ptr %a\n  call void @llvm.lifetime.end.p0(ptr poison)\n" + load, "5"},
	} {
		in, m := machineOf(t, c.src)
		f := m.Func("f")
		res, err := in.Call(t.Context(), f, []interp.Value{interp.FromUint(f.Params[0].Typ, 0)})
		require.NoError(t, err, c.src)
		require.Equal(t, c.want, res.Value.Format(), c.src)
	}
}

func TestWhatIsAssumedHolds(t *testing.T) {
	const declared = "declare void @llvm.assume(i1)\ndefine i8 @f() {\n"
	for _, c := range []struct{ body, want string }{
		{"  call void @llvm.assume(i1 false)\n", "the assumed false is false"},
		{"  call void @llvm.assume(i1 undef)\n", "the assumed undef is undefined"},
		{"  %x = add nsw i8 127, 1\n  %c = icmp eq i8 %x, 0\n  call void @llvm.assume(i1 %c)\n", "the assumed %c is poison"},
		{"  call void @llvm.assume(i1 true) [ \"align\"(ptr null, i64 8) ]\n", ""},
	} {
		in, m := machineOf(t, declared+c.body+"  ret i8 0\n}")
		_, err := in.Call(t.Context(), m.Func("f"), nil)
		if c.want == "" {
			require.NoError(t, err)
			continue
		}
		require.ErrorContains(t, err, c.want)
	}
}
