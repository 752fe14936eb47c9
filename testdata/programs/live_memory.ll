; What runs on after the statepoint reads and writes what only the process knows: a global that no longer has its
; first value, the heap, and an alloca in the stack of the frame.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i32 @pause()
declare i32 @puts(ptr)
declare i32 @printf(ptr, ...)
declare ptr @malloc(i64)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
@ready = private constant [6 x i8] c"ready\00"
@format = private constant [8 x i8] c"sum %d\0A\00"
@counter = global i64 1
@hidden = internal global i64 2
define void @blocker() noinline {
  %x = call i32 @puts(ptr @ready)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define i64 @twice(i64 %x) {
  %y = mul i64 %x, 2
  ret i64 %y
}
define i64 @work(ptr %heap, i64 %n) noinline gc "statepoint-example" {
entry:
  %slot = alloca i64, align 8
  store i64 300, ptr %slot
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 501, i32 0, ptr elementtype(void ()) @blocker, i32 0, i32 0, i32 0, i32 0) [ "deopt"(ptr %heap, i64 %n, ptr %slot) ]
  %a = load i64, ptr @counter
  %b = load i64, ptr @hidden
  %c = load i64, ptr %heap
  %d = load i64, ptr %slot
  %e = call i64 @twice(i64 %n)
  %s1 = add i64 %a, %b
  %s2 = add i64 %s1, %c
  %s3 = add i64 %s2, %d
  %s4 = add i64 %s3, %e
  store i64 %s4, ptr @counter
  store i64 %s4, ptr %heap
  store i64 %s4, ptr %slot
  %again = load i64, ptr @counter
  %p = call i32 (ptr, ...) @printf(ptr @format, i64 %again)
  ret i64 %again
}
define i32 @main() {
  store i64 10, ptr @counter
  store i64 20, ptr @hidden
  %heap = call ptr @malloc(i64 8)
  store i64 4000, ptr %heap
  %r = call i64 @work(ptr %heap, i64 50000)
  ret i32 0
}
