package interp_test

import (
	"context"
	"testing"

	"github.com/stretchr/testify/require"
)

// TestElementsCopiedAtomicallyAreAsNative compares atomic copies by element with native code ("RewriteStatepointsForGC intrinsic lowering"). llc
// turns such a copy into a call of a runtime function, which the test program defines.
func TestElementsCopiedAtomicallyAreAsNative(t *testing.T) {
	const src = `declare i32 @printf(ptr, ...)
declare ptr @memcpy(ptr, ptr, i64)
declare ptr @memmove(ptr, ptr, i64)
declare ptr @memset(ptr, i32, i64)
declare void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr, ptr, i64, i32)
declare void @llvm.memmove.element.unordered.atomic.p0.p0.i64(ptr, ptr, i64, i32)
declare void @llvm.memset.element.unordered.atomic.p0.i64(ptr, i8, i64, i32)
define void @__llvm_memcpy_element_unordered_atomic_8(ptr %to, ptr %from, i64 %n) {
  %r = call ptr @memcpy(ptr %to, ptr %from, i64 %n)
  ret void
}
define void @__llvm_memmove_element_unordered_atomic_4(ptr %to, ptr %from, i64 %n) {
  %r = call ptr @memmove(ptr %to, ptr %from, i64 %n)
  ret void
}
define void @__llvm_memset_element_unordered_atomic_2(ptr %to, i8 %v, i64 %n) {
  %w = zext i8 %v to i32
  %r = call ptr @memset(ptr %to, i32 %w, i64 %n)
  ret void
}
@from = global [4 x i64] [i64 1, i64 2, i64 3, i64 4]
@to = global [4 x i64] zeroinitializer
@text = private constant [17 x i8] c"%ld %ld %ld %ld\0A\00"
define i32 @main() {
  call void @llvm.memcpy.element.unordered.atomic.p0.p0.i64(ptr align 8 @to, ptr align 8 @from, i64 24, i32 8)
  %second = getelementptr i32, ptr @to, i64 1
  call void @llvm.memmove.element.unordered.atomic.p0.p0.i64(ptr align 4 %second, ptr align 4 @to, i64 12, i32 4)
  %last = getelementptr i64, ptr @to, i64 3
  call void @llvm.memset.element.unordered.atomic.p0.i64(ptr align 2 %last, i8 7, i64 2, i32 2)
  %third = getelementptr i64, ptr @to, i64 2
  %one = getelementptr i64, ptr @to, i64 1
  %a = load i64, ptr @to
  %b = load i64, ptr %one
  %c = load i64, ptr %third
  %d = load i64, ptr %last
  %r = call i32 (ptr, ...) @printf(ptr @text, i64 %a, i64 %b, i64 %c, i64 %d)
  ret i32 0
}`
	for _, version := range []string{"16", "19", "22"} {
		sameAsLinked(t, src, version)
	}
}

// TestBasesOfPointersAreAsNative requires that the intrinsics for the base of a pointer are refused when a run reaches them ("GC Transitions"). The
// pass rewrite-statepoints-for-gc replaces these intrinsics; its output must run as native code does.
func TestBasesOfPointersAreAsNative(t *testing.T) {
	const src = `declare i32 @printf(ptr, ...)
declare ptr addrspace(1) @llvm.experimental.gc.get.pointer.base.p1.p1(ptr addrspace(1))
declare i64 @llvm.experimental.gc.get.pointer.offset.p1(ptr addrspace(1))
@cell = global [4 x i64] [i64 11, i64 22, i64 33, i64 44]
@text = private constant [9 x i8] c"%ld %ld\0A\00"
define void @poll() noinline "gc-leaf-function" {
  ret void
}
define i64 @f(ptr addrspace(1) %o, i64 %n) noinline gc "statepoint-example" {
  %d = getelementptr i64, ptr addrspace(1) %o, i64 %n
  %b = call ptr addrspace(1) @llvm.experimental.gc.get.pointer.base.p1.p1(ptr addrspace(1) %d)
  %k = call i64 @llvm.experimental.gc.get.pointer.offset.p1(ptr addrspace(1) %d)
  %v = load i64, ptr addrspace(1) %b
  %s = call i64 @g(i64 %v) [ "deopt"(i64 %k) ]
  %w = load i64, ptr addrspace(1) %d
  %x = add i64 %w, %s
  %c = call i32 (ptr, ...) @printf(ptr @text, i64 %v, i64 %k) "gc-leaf-function"
  ret i64 %x
}
define i64 @g(i64 %v) noinline {
  %r = mul i64 %v, 2
  ret i64 %r
}
define i32 @main() {
  %o = addrspacecast ptr @cell to ptr addrspace(1)
  %r = call i64 @f(ptr addrspace(1) %o, i64 2)
  %t = trunc i64 %r to i32
  ret i32 %t
}`
	in, _ := machineOf(t, src)
	_, err := in.Main(context.Background(), []string{"test.ll"})
	require.ErrorContains(t, err, "the intrinsic @llvm.experimental.gc.get.pointer.base.p1.p1")
	for _, version := range []string{"16", "19", "22"} {
		after := rewritten(t, written(t, src), version)
		require.Equal(t, outcome{"11 16\n", 55}, interpreted(t, after))
		sameAsJIT(t, after, version)
	}
}

// TestStatepointsToBePatchedAreAsNative requires that a statepoint with reserved bytes calls no function: its code consists of nops until a
// runtime patches it.
func TestStatepointsToBePatchedAreAsNative(t *testing.T) {
	const src = `declare i32 @printf(ptr, ...)
define i32 @personality() {
  ret i32 8
}
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
@calls = global i64 0
@text = private constant [5 x i8] c"%ld\0A\00"
define void @count() noinline {
  %n = load i64, ptr @calls
  %m = add i64 %n, 1
  store i64 %m, ptr @calls
  ret void
}
define i32 @main() gc "statepoint-example" personality ptr @personality {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 8, ptr elementtype(void ()) @count, i32 0, i32 0, i32 0, i32 0)
  call void @count() "statepoint-num-patch-bytes"="5" [ "deopt"(i64 1) ]
  invoke void @count() "statepoint-num-patch-bytes"="6" [ "deopt"(i64 2) ]
          to label %on unwind label %off
on:
  %none = load i64, ptr @calls
  %p = call i32 (ptr, ...) @printf(ptr @text, i64 %none)
  %u = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2, i32 0, ptr elementtype(void ()) @count, i32 0, i32 0, i32 0, i32 0)
  call void @count() [ "deopt"(i64 3) ]
  call void @count() "statepoint-num-patch-bytes"="5"
  call void @count() "statepoint-num-patch-bytes"="0" [ "deopt"(i64 4) ]
  call void @count() "statepoint-num-patch-bytes"="no number" [ "deopt"(i64 5) ]
  %all = load i64, ptr @calls
  %q = call i32 (ptr, ...) @printf(ptr @text, i64 %all)
  ret i32 0
off:
  %pad = landingpad { ptr, i32 }
          cleanup
  ret i32 1
}`
	require.Equal(t, outcome{"0\n5\n", 0}, interpreted(t, src))
	sameAsJIT(t, src, "16", "19", "22")
}
