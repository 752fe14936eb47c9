package livetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Prelude begins programs that tests write: @wait prints ready and stays in pause.
const Prelude = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare i64 @llvm.experimental.gc.result.i64(token)
declare <2 x ptr addrspace(1)> @llvm.experimental.gc.relocate.v2p1(token, i32, i32)
declare i32 @__gxx_personality_v0(...)
declare i32 @pause()
declare i32 @puts(ptr)
declare ptr @signal(i32, ptr)
@msg = private constant [6 x i8] c"ready\00"
@seed = global i64 100
define i64 @wait(i64 %a) noinline {
  %x = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
`

// Start is a main that calls @work(100).
const Start = `
define i32 @main() {
  %s = load volatile i64, ptr @seed
  %r = call i64 @work(i64 %s)
  ret i32 0
}
`

// Module writes the text of a module to a file.
func Module(t testing.TB, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.ll")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// Raw writes a module whose statepoints are written out. Its collector is one that
// livetest does not take for a reason to rewrite them.
func Raw(t testing.TB, text string) string {
	t.Helper()
	return Module(t, strings.ReplaceAll(text, ` gc "`, ` gc  "`))
}

// Statepoint is a call of a function of one argument as a statepoint, in the words of a module.
func Statepoint(id int, callee, argument, deopt string) string {
	return fmt.Sprintf("token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 %d, i32 0, ptr elementtype(i64 (i64)) %s, "+
		`i32 1, i32 0, i64 %s, i32 0, i32 0) [ "deopt"(%s) ]`, id, callee, argument, deopt)
}
