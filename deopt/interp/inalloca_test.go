package interp_test

import (
	"context"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/deopt/interp"
	"example.com/reframe/test/livetest"
)

// TestInAllocaOfCxxIsAsNative compares IR with inalloca with native code. The IR comes from C++ for Windows on 32-bit x86. The test compiles it for
// Linux, after it has changed the target and the names that contain @, because the linker reads an @ as the start of a version. inalloca and its
// calling conventions are the same on both systems.
func TestInAllocaOfCxxIsAsNative(t *testing.T) {
	livetest.Slow(t)
	target := regexp.MustCompile(`(?m)^target (datalayout|triple) = .*\n`)
	names := regexp.MustCompile(`[@$]"[^"]*"`)
	for _, version := range []string{"14", "19"} {
		for _, level := range []string{"-O0", "-O1", "-O2"} {
			t.Run(version+level, func(t *testing.T) {
				module := filepath.Join(t.TempDir(), "arguments.ll")
				clang(t, version, "--target=i686-pc-windows-msvc", level, "-fno-exceptions", "-fno-rtti", "-S", "-emit-llvm", "-o", module, "testdata/inalloca/arguments.cc")
				text, err := os.ReadFile(module)
				require.NoError(t, err)
				require.Greater(t, strings.Count(string(text), "= alloca inalloca <{"), 10)
				windows := interpretedC(t, module, nil)
				require.Contains(t, windows.Stdout, ", 1 alive\n")

				linux := `target triple = "i686-linux-gnu"` + "\n" + target.ReplaceAllString(string(text), "")
				linux = names.ReplaceAllStringFunc(linux, func(name string) string { return name[:1] + strings.ReplaceAll(name[1:], "@", ".") })
				require.NoError(t, os.WriteFile(module, []byte(linux), 0o600))
				program := strings.TrimSuffix(module, ".ll")
				clang(t, version, "--target=i686-linux-gnu", "-Wno-override-module", "-no-pie", "-o", program, module)
				command := livetest.RunI686(t, program)
				want := native(t, nil, command[0], command[1:]...)
				same(t, want, interpretedC(t, module, nil))
				same(t, want, windows)
			})
		}
	}
}

// TestInAllocaMemoryIsUndefinedBehindTheCall requires that the callee can store to the memory of its inalloca arguments, and that the memory is
// undefined after the call.
func TestInAllocaMemoryIsUndefinedBehindTheCall(t *testing.T) {
	const head = `target triple = "i686-pc-windows-msvc"
declare ptr @llvm.stacksave()
declare void @llvm.stackrestore(ptr)
define i32 @callee(ptr inalloca(i32) %p) {
  %v = load i32, ptr %p
  store i32 9, ptr %p
  ret i32 %v
}
define i32 @forward(ptr inalloca(i32) %p) {
  store i32 8, ptr %p
  %v = musttail call i32 @callee(ptr inalloca(i32) %p)
  ret i32 %v
}
`
	for _, c := range []struct{ name, src, says string }{
		{"what the call returns", `%s = call ptr @llvm.stacksave()
  %m = alloca inalloca i32
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  call void @llvm.stackrestore(ptr %s)
  ret i32 %r`, "5"},
		{"read behind it", `%m = alloca inalloca i32
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  %v = load i32, ptr %m
  ret i32 %v`, "undef"},
		{"written behind it", `%m = alloca inalloca i32
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  store i32 6, ptr %m
  %v = load i32, ptr %m
  ret i32 %v`, "6"},
		{"a musttail call in between", `%m = alloca inalloca i32
  %r = call i32 @forward(ptr inalloca(i32) %m)
  %v = load i32, ptr %m
  %c = icmp eq i32 %r, 8
  %x = select i1 %c, i32 %v, i32 1
  ret i32 %x`, "undef"},
		{"twice", `%m = alloca inalloca i32
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  %q = call i32 @callee(ptr inalloca(i32) %m)
  ret i32 %q`, "undef"},
		{"freed behind it", `%s = call ptr @llvm.stacksave()
  %m = alloca inalloca i32
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  call void @llvm.stackrestore(ptr %s)
  %v = load i32, ptr %m
  ret i32 %v`, "read of 4 bytes at 0x500c0000: outside of every alloca of the running functions"},
		{"an alloca behind it", `%n = add i32 1, 1
  %m = alloca inalloca i32
  %other = alloca i32, i32 %n
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  ret i32 %r`, "the inalloca argument %m is not the latest live alloca of @f"},
		{"one that was cleared off", `%n = add i32 1, 1
  %m = alloca inalloca i32
  %s = call ptr @llvm.stacksave()
  %other = alloca i32, i32 %n
  call void @llvm.stackrestore(ptr %s)
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  ret i32 %r`, "5"},
		{"one that is part of the frame", `%m = alloca inalloca i32
  %other = alloca i32
  store i32 5, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  ret i32 %r`, "5"},
		{"two at a time", `%m = alloca inalloca i32
  %s = call ptr @llvm.stacksave()
  %inner = alloca inalloca i32
  store i32 7, ptr %inner
  %r = call i32 @callee(ptr inalloca(i32) %inner)
  call void @llvm.stackrestore(ptr %s)
  store i32 %r, ptr %m
  %q = call i32 @callee(ptr inalloca(i32) %m)
  ret i32 %q`, "7"},
		{"two in the wrong order", `%m = alloca inalloca i32
  %inner = alloca inalloca i32
  store i32 7, ptr %m
  %r = call i32 @callee(ptr inalloca(i32) %m)
  ret i32 %r`, "the inalloca argument %m is not the latest live alloca of @f"},
	} {
		t.Run(c.name, func(t *testing.T) {
			in, m := machineOf(t, head+"define i32 @f() {\n  "+c.src+"\n}")
			res, err := in.Call(context.Background(), m.Func("f"), nil)
			if err != nil {
				var failed *interp.RunError
				require.ErrorAs(t, err, &failed)
				require.Equal(t, interp.KindFault, failed.Kind)
				require.Contains(t, err.Error(), c.says)
				return
			}
			require.Equal(t, c.says, res.Value.Format())
		})
	}
}
