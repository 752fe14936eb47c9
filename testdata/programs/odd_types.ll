; A stackmap with operands that LLVM loses or lays out in other ways than in memory: an x86_fp80 has no
; location at all, so what follows it moves up; of an aggregate only the first element is recorded; a <4 x i1> is
; four masks in a register. Run once for each SIGUSR1, as stop_at.ll.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i32 @pause()
declare i32 @puts(ptr)
declare ptr @signal(i32, ptr)
@msg = private constant [6 x i8] c"ready\00"
@seed = global i64 100
define void @handler(i32 %n) {
  ret void
}
define i64 @work(i64 %a, <4 x i32> %v) noinline {
entry:
  %f = sitofp i64 %a to x86_fp80
  %b = add i64 %a, 1
  %first = insertvalue { i64, i64 } undef, i64 %a, 0
  %agg = insertvalue { i64, i64 } %first, i64 %b, 1
  %mask = icmp slt <4 x i32> %v, <i32 101, i32 102, i32 0, i32 0>
  %t = trunc i64 %b to i24
  %odd = trunc i64 %b to i1
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3002, i32 8,
     i64 %a, x86_fp80 %f, i64 %b, { i64, i64 } %agg, <4 x i32> %v, <4 x i1> %mask, i24 %t, i1 %odd, i64 5)
  ret i64 %b
}
define i32 @main() {
entry:
  %h = call ptr @signal(i32 10, ptr @handler)
  %x = call i32 @puts(ptr @msg)
  br label %again
again:
  %p = call i32 @pause()
  %s = load i64, ptr @seed
  %n = trunc i64 %s to i32
  %v0 = insertelement <4 x i32> <i32 0, i32 1, i32 2, i32 3>, i32 %n, i32 0
  %r = call i64 @work(i64 %s, <4 x i32> %v0)
  br label %again
}
