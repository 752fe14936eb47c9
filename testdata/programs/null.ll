; A stackmap right before a load that faults for every third argument. The host's handler of SIGSEGV then leaves @load, which
; returns 1000003.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @call_optimized(ptr, i64, i64, i64)
define i64 @load(ptr %p, i64 %n, i64 %m) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 81, i32 0, ptr %p, i64 %n, i64 %m)
  %v = load volatile i64, ptr %p
  %s = mul i64 %v, %n
  %r = add i64 %s, %m
  ret i64 %r
}
define i64 @entry(i64 %n) {
  %slot = alloca i64
  %x = mul i64 %n, 101
  store i64 %x, ptr %slot
  %rest = urem i64 %n, 3
  %none = icmp eq i64 %rest, 0
  %p = select i1 %none, ptr null, ptr %slot
  %a = ptrtoint ptr %p to i64
  %r = call i64 @call_optimized(ptr @load, i64 %a, i64 %n, i64 5)
  ret i64 %r
}
