; For collector.c: a function without a safepoint of its own. place-safepoints puts a poll into its entry and its loop.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128-ni:1"
target triple = "x86_64-pc-linux-gnu"
@__LLVM_StackMaps = external global i8
@maps = constant ptr @__LLVM_StackMaps
declare void @collect()
define void @gc.safepoint_poll() {
  call void @collect()
  ret void
}
define i64 @work(ptr addrspace(1) %o, i64 %n) noinline gc "statepoint-example" {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %s = phi i64 [ 0, %entry ], [ %s1, %loop ]
  %fifth = getelementptr i64, ptr addrspace(1) %o, i64 5
  %x = load i64, ptr addrspace(1) %fifth
  %s1 = add i64 %s, %x
  %i1 = add i64 %i, 1
  %m = call i64 @next(i64 %i1)
  %c = icmp ult i64 %m, 40
  br i1 %c, label %loop, label %out
out:
  %first = getelementptr i64, ptr addrspace(1) %o, i64 1
  %y = load i64, ptr addrspace(1) %first
  %r = add i64 %s1, %y
  ret i64 %r
}
define i64 @next(i64 %i) noinline "gc-leaf-function" {
  %m = mul i64 %i, 10
  ret i64 %m
}
