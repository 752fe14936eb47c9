; A stackmap that is run once for each SIGUSR1, so that a debugger can stop the process at the record's own pc,
; where every value is in place, those in caller-saved registers too.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i32 @pause()
declare i32 @puts(ptr)
declare ptr @signal(i32, ptr)
@msg = private constant [6 x i8] c"ready\00"
@seed = global i64 100
@dseed = global double 2.5
define void @handler(i32 %n) {
  ret void
}
define i64 @work(i64 %a, i64 %b, i64 %c, double %d, double %e) noinline {
entry:
  %slot = alloca [4 x i64], align 16
  store i64 4242, ptr %slot
  %v1 = add i64 %a, 1
  %v2 = mul i64 %a, %b
  %v3 = sub i64 %b, %c
  %v4 = xor i64 %a, %c
  %d1 = fadd double %d, %e
  %d2 = fmul double %d, %e
  %t = trunc i64 %v2 to i32
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3001, i32 8,
     i64 %v1, i64 %v2, i64 %v3, i64 %v4, double %d1, double %d2, i32 %t, ptr %slot, i32 -1, i64 81985529216486895, i64 undef)
  %s1 = add i64 %v1, %v2
  %s2 = add i64 %s1, %v3
  %s3 = add i64 %s2, %v4
  ret i64 %s3
}
define i32 @main() {
entry:
  %h = call ptr @signal(i32 10, ptr @handler)
  %x = call i32 @puts(ptr @msg)
  br label %again
again:
  %p = call i32 @pause()
  %s = load i64, ptr @seed
  %d = load double, ptr @dseed
  %s2 = add i64 %s, 5
  %s3 = add i64 %s, 11
  %d2 = fadd double %d, 1.0
  %r = call i64 @work(i64 %s, i64 %s2, i64 %s3, double %d, double %d2)
  br label %again
}
