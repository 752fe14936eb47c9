package livetest

import (
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/require"
)

// Prelude is the beginning of the modules that tests write: @wait prints ready and waits in pause.
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

// Start is a main function that calls @work(100).
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

// Raw writes a module that contains statepoints. It changes the spelling of the gc attribute, so that livetest does not run the pass that rewrites
// statepoints.
func Raw(t testing.TB, text string) string {
	t.Helper()
	return Module(t, strings.ReplaceAll(text, ` gc "`, ` gc  "`))
}

// Statepoint returns the text of a statepoint that calls a function with one argument.
func Statepoint(id int, callee, argument, deopt string) string {
	return fmt.Sprintf("token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 %d, i32 0, ptr elementtype(i64 (i64)) %s, "+
		`i32 1, i32 0, i64 %s, i32 0, i32 0) [ "deopt"(%s) ]`, id, callee, argument, deopt)
}

// PatchpointValues returns the values of jit_pp.ll by their names in the module: arithmetic on its constants, on @seed (100), and on @dseed (2.5).
func PatchpointValues() map[string]string {
	const a, b, c = 100, 105, 111
	const d, e = 2.5, 3.5
	v := map[string]int64{"%a": a, "%v1": a + 1, "%v2": a * b, "%v3": b - c, "%v4": a ^ c, "%v5": b << 3, "%v6": c | 7}
	v["%v7"] = v["%v2"] + v["%v3"]
	v["%v8"] = v["%v4"] * v["%v5"]
	v["%v9"] = v["%v8"] + v["%v6"]
	v["%v10"] = v["%v9"] * v["%v7"]
	out := map[string]string{"%d1": "6.0", "%d2": "8.75"}
	if d+e != 6.0 || d*e != 8.75 {
		panic("the text above is wrong")
	}
	for name, n := range v {
		out[name] = strconv.FormatInt(n, 10)
	}
	return out
}
