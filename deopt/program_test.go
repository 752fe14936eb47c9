package deopt

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/stretchr/testify/require"

	"reframe/deopt/ir"
)

// prelude begins every program of these tests: @wait prints ready and stays in pause.
const prelude = `
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

// start is a main that calls @work(100).
const start = `
define i32 @main() {
  %s = load volatile i64, ptr @seed
  %r = call i64 @work(i64 %s)
  ret i32 0
}
`

// again is a main that calls @work(100) for each SIGUSR1.
const again = `
define void @handler(i32 %n) {
  ret void
}
define i32 @main() {
entry:
  %h = call ptr @signal(i32 10, ptr @handler)
  %x = call i32 @puts(ptr @msg)
  br label %again
again:
  %p = call i32 @pause()
  %s = load volatile i64, ptr @seed
  %r = call i64 @work(i64 %s)
  br label %again
}
`

// program writes the text of a module to a file.
func program(t *testing.T, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "program.ll")
	require.NoError(t, os.WriteFile(path, []byte(text), 0o600))
	return path
}

// module reads the text of a module.
func module(t *testing.T, name, text string) *ir.Module {
	t.Helper()
	m, err := ir.Parse(name, []byte(text))
	require.NoError(t, err)
	require.NoError(t, m.Check())
	return m
}
