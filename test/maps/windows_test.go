package maps_test

import (
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/clitest"
)

// TestModuleOfWindows requires that the map of a module for Windows has names and passes the check, and that the module runs while no exception is
// thrown. The module has exception handling by funclets, and a function whose calling convention changes its symbol.
func TestModuleOfWindows(t *testing.T) {
	t.Parallel()
	const text = `target datalayout = "e-m:w-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-windows-msvc"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i32 @__CxxFrameHandler3(...)
define void @throws(i64 %a) noinline {
  ret void
}
define i64 @catches(i64 %a) personality ptr @__CxxFrameHandler3 {
entry:
  %v = add i64 %a, 7
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %v)
  invoke void @throws(i64 %v)
          to label %done unwind label %dispatch
dispatch:
  %switch = catchswitch within none [label %handler] unwind label %cleanup
handler:
  %catch = catchpad within %switch [ptr null, i32 64, ptr null]
  catchret from %catch to label %done
cleanup:
  %pad = cleanuppad within none []
  call void @throws(i64 0) [ "funclet"(token %pad) ]
  cleanupret from %pad unwind to caller
done:
  ret i64 %v
}
define x86_vectorcallcc i64 @vector(i64 %a, <4 x float> %b) {
  %w = add i64 %a, 9
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %w)
  ret i64 %w
}
define i32 @main() {
  %c = call i64 @catches(i64 1)
  %v = call x86_vectorcallcc i64 @vector(i64 %c, <4 x float> zeroinitializer)
  %r = trunc i64 %v to i32
  ret i32 %r
}
`
	object, module := compiled(t, text, "x86_64-pc-windows-msvc"), clitest.TempFile(t, "windows.ll", text)
	require.Contains(t, clitest.RunTool(t, "llvm-nm-19", object), " T vector@@24\n")
	r := clitest.Run(t, "maps", "--ir", module, object)
	require.Equal(t, 0, r.Code, r.Stderr)
	for _, want := range []string{"vector@@24", "%v", "%w"} {
		require.Contains(t, r.Stdout, want)
	}
	require.NotContains(t, r.Stdout, "no names")
	r = clitest.Run(t, "maps", "--check", "--ir", module, object)
	require.Equal(t, 0, r.Code, r.Stdout+r.Stderr)
	r = clitest.Run(t, "lint", module)
	require.Equal(t, 0, r.Code, r.Stdout+r.Stderr)
	require.Equal(t, 17, clitest.Run(t, "run", module).Code)
}
