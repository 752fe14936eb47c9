; For collector.c: at the one safepoint a pointer lies outside of its object, two are in a vector, and one is null.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128-ni:1"
target triple = "x86_64-pc-linux-gnu"
@__LLVM_StackMaps = external global i8
@maps = constant ptr @__LLVM_StackMaps
declare void @collect()
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
declare <2 x ptr addrspace(1)> @llvm.experimental.gc.relocate.v2p1(token, i32 immarg, i32 immarg)
define i64 @work(ptr addrspace(1) %o, i64 %n) noinline gc  "statepoint-example" {
entry:
  %out = getelementptr i64, ptr addrspace(1) %o, i64 %n
  %p = load ptr addrspace(1), ptr addrspace(1) %o
  %v0 = insertelement <2 x ptr addrspace(1)> undef, ptr addrspace(1) %p, i64 0
  %v = insertelement <2 x ptr addrspace(1)> %v0, ptr addrspace(1) %o, i64 1
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @collect, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %n, ptr addrspace(1) %p, ptr addrspace(1) null), "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %out, ptr addrspace(1) %p, <2 x ptr addrspace(1)> %v) ]
  %out1 = call coldcc ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 1)
  %p1 = call coldcc ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 2, i32 2)
  %v1 = call coldcc <2 x ptr addrspace(1)> @llvm.experimental.gc.relocate.v2p1(token %t, i32 3, i32 3)
  %back = sub i64 3, %n
  %q = getelementptr i64, ptr addrspace(1) %out1, i64 %back
  %a = load i64, ptr addrspace(1) %q
  %e = extractelement <2 x ptr addrspace(1)> %v1, i64 0
  %w = getelementptr i64, ptr addrspace(1) %e, i64 2
  %b = load i64, ptr addrspace(1) %w
  %w1 = getelementptr i64, ptr addrspace(1) %p1, i64 1
  %c = load i64, ptr addrspace(1) %w1
  %s = add i64 %a, %b
  %s1 = add i64 %s, %c
  ret i64 %s1
}
