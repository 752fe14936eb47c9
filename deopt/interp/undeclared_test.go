package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
)

// TestIntrinsicsWithoutADeclarationAreAsNative calls intrinsics that the module does not declare. LLVM 19 and later add the declaration, and the
// types in the name.
func TestIntrinsicsWithoutADeclarationAreAsNative(t *testing.T) {
	sameAsJIT(t, `
@g = global i64 -5
define i64 @callee(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}
define i32 @main() {
  %v = load volatile i64, ptr @g
  %a = call i64 @llvm.abs.i64(i64 %v, i1 false)
  %b = call i64 @llvm.umax(i64 %a, i64 3)
  %t = trunc i64 %b to i32
  %c = call i32 @llvm.umin(i32 %t, i32 100)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i32 %c)
  %d = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint(i64 2, i32 15, ptr @callee, i32 1, i64 %b)
  %e = trunc i64 %d to i32
  %r = add i32 %c, %e
  ret i32 %r
}
`, "19", "22")
}

// TestSitesOfTheProposalRun requires that llvm.webkit.stackmap and llvm.webkit.patchpoint, the names in LLVM's proposal of 2013, run like the
// intrinsics of today.
func TestSitesOfTheProposalRun(t *testing.T) {
	in, _ := machineOf(t, `
declare void @llvm.webkit.stackmap(i32, i32, ...)
declare i64 @llvm.webkit.patchpoint.i64(i32, i32, ptr, i32, ...)
define i64 @callee(i64 %x) {
  %y = mul i64 %x, 3
  ret i64 %y
}
define i32 @main() {
  call void (i32, i32, ...) @llvm.webkit.stackmap(i32 1, i32 5, i64 4)
  %d = call i64 (i32, i32, ptr, i32, ...) @llvm.webkit.patchpoint.i64(i32 2, i32 15, ptr @callee, i32 1, i64 14, i64 9)
  %e = trunc i64 %d to i32
  ret i32 %e
}
`)
	res, err := in.Main(context.Background(), []string{"prog"})
	require.NoError(t, err)
	require.Equal(t, "42", res.Value.Format())
}

// TestConstantsThatOnlyAProcessKnows requires an error when a run reaches a signed pointer, whose key is unknown, or the length of a scalable
// vector.
func TestConstantsThatOnlyAProcessKnows(t *testing.T) {
	for want, body := range map[string]string{
		"the signed pointer ptrauth (ptr @main, i32 0)": "  %p = load ptr, ptr @signed\n",
		"vscale": "  %v = add <vscale x 4 x i32> splat (i32 1), splat (i32 2)\n",
	} {
		in, err := interp.New(parse(t, "@signed = global ptr ptrauth (ptr @main, i32 0)\ndefine i32 @main() {\n"+body+"  ret i32 0\n}\n"), interp.Options{})
		if err == nil {
			_, err = in.Main(context.Background(), []string{"prog"})
		}
		require.ErrorContains(t, err, want)
	}
}
