package deopt_test

import (
	"fmt"
	"path/filepath"
	"regexp"
	"strconv"
	"testing"

	"github.com/stretchr/testify/require"

	"example.com/reframe/test/frametest"
	"example.com/reframe/test/livetest"
)

// TestRelocatedAlongAnExceptionalEdge requires the values of pointers that are relocated along an exceptional edge ("Relocations Along Exceptional
// Edges"). An invoked statepoint unwinds to its landing pad, and the next record contains these pointers.
func TestRelocatedAlongAnExceptionalEdge(t *testing.T) {
	const text = `
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
declare void @thrower()
declare i64 @waits(i64)
declare i32 @__gxx_personality_v0(...)
define i64 @work(ptr addrspace(1) %o, i64 %n) noinline gc  "statepoint-example" personality ptr @__gxx_personality_v0 {
entry:
  %d = getelementptr i64, ptr addrspace(1) %o, i64 %n
  %t = invoke token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(void ()) @thrower, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %n), "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %d) ]
          to label %ok unwind label %bad
ok:
  %o1 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  %v = load i64, ptr addrspace(1) %o1
  ret i64 %v
bad:
  %lp = landingpad token cleanup
  %o2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %lp, i32 0, i32 0)
  %d2 = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %lp, i32 0, i32 1)
  %w = load i64, ptr addrspace(1) %d2
  %u = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2, i32 0, ptr elementtype(i64 (i64)) @waits, i32 1, i32 0, i64 %w, i32 0, i32 0) [ "deopt"(ptr addrspace(1) %o2, ptr addrspace(1) %d2, i64 %w, i64 %n) ]
  ret i64 %w
}`
	for _, version := range []int{16, 19, 22} {
		t.Run(fmt.Sprintf("llc-%d", version), func(t *testing.T) {
			module := program(t, text)
			binary := filepath.Join(t.TempDir(), "thrower")
			frametest.Command(t, "", "g++", "-O1", "-no-pie", filepath.Join("testdata", "gc", "thrower.cc"), frametest.LLC(t, version, module, "-relocation-model=pic"), "-o", binary)
			p := livetest.Program(t, binary)
			p.AwaitPause(t)
			p.IR = module
			f := frametest.One(t, frametest.Look(t, p, false, frametest.Known(t, p)), "work")
			require.EqualValues(t, 2, f.Record.ID)
			object := regexp.MustCompile(`(?m)^object (0x[0-9a-f]+)\r?$`).FindStringSubmatch(p.Output())
			require.NotNil(t, object, p.Output())
			require.Equal(t, object[1], frametest.Slot(t, f, "%o2").Value)
			at, err := strconv.ParseUint(object[1], 0, 64)
			require.NoError(t, err)
			require.Equal(t, fmt.Sprintf("%#x", at+2*8), frametest.Slot(t, f, "%d2").Value)
			require.Equal(t, "7", frametest.Slot(t, f, "%w").Value)
			require.Equal(t, "2", frametest.Slot(t, f, "%n").Value)
		})
	}
}
