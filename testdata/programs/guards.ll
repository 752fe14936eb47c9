; An optimized function with three guesses. Each leaves through LLVM's own OSR exit, to another block of the baseline function
; @total: a negative number to %slow, one that is 5 modulo 8 to %loop, a sum over the limit to %next. The arguments of
; the deoptimize call are what the host hands to @osr; guards.layout.json says the same of the deopt values.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i64 @llvm.experimental.deoptimize.i64(...)
declare i64 @call_optimized(i64 (i64, i64, i64)*, i64, i64, i64)
@numbers = constant [32 x i64] [
  i64 6, i64 18, i64 3, i64 40, i64 -7, i64 12, i64 8, i64 27, i64 2, i64 34, i64 21, i64 16, i64 9, i64 50, i64 4, i64 11,
  i64 -20, i64 30, i64 7, i64 24, i64 1, i64 44, i64 10, i64 19, i64 36, i64 5, i64 14, i64 28, i64 3, i64 -1, i64 22, i64 48]
define i64 @total_opt(i64 %n, i64 %start, i64 %limit) noinline gc "statepoint-example" {
entry:
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %i1, %next ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %next ]
  %k = and i64 %i, 31
  %p = getelementptr [32 x i64], [32 x i64]* @numbers, i64 0, i64 %k
  %v = load i64, i64* %p
  %negative = icmp slt i64 %v, 0
  br i1 %negative, label %exit1, label %positive
positive:
  %rest = and i64 %v, 7
  %five = icmp eq i64 %rest, 5
  br i1 %five, label %exit2, label %usual
usual:
  %f = mul i64 %v, %i
  %acc1 = add i64 %acc, %f
  %over = icmp ugt i64 %acc1, %limit
  br i1 %over, label %exit3, label %next
next:
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
exit1:
  %d1 = call i64 (...) @llvm.experimental.deoptimize.i64(i32 1, i64 %n, i64 %i, i64 %acc, i64 %v) "statepoint-id"="71" [ "deopt"(i32 1, i64 %n, i64 %i, i64 %acc, i64 %v) ]
  ret i64 %d1
exit2:
  %d2 = call i64 (...) @llvm.experimental.deoptimize.i64(i32 2, i64 %n, i64 %i, i64 %acc, i64 0) [ "deopt"(i32 2, i64 %n, i64 %i, i64 %acc) ]
  ret i64 %d2
exit3:
  %d3 = call i64 (...) @llvm.experimental.deoptimize.i64(i32 3, i64 %n, i64 %i, i64 %acc1, i64 0) [ "deopt"(i32 3, i64 %n, i64 %i, i64 %acc1) ]
  ret i64 %d3
done:
  ret i64 %acc1
}
; The same sum without the guesses, which takes negative numbers another way.
define i64 @total(i32 %where, i64 %n, i64 %i0, i64 %acc0, i64 %v0) noinline {
entry:
  switch i32 %where, label %loop [ i32 1, label %slow
                                   i32 3, label %next ]
loop:
  %i = phi i64 [ %i0, %entry ], [ %i1, %next ]
  %acc = phi i64 [ %acc0, %entry ], [ %acc1, %next ]
  %k = and i64 %i, 31
  %p = getelementptr [32 x i64], [32 x i64]* @numbers, i64 0, i64 %k
  %v = load i64, i64* %p
  %negative = icmp slt i64 %v, 0
  br i1 %negative, label %slow, label %fast
fast:
  %f = mul i64 %v, %i
  %facc = add i64 %acc, %f
  br label %next
slow:
  %si = phi i64 [ %i0, %entry ], [ %i, %loop ]
  %sacc = phi i64 [ %acc0, %entry ], [ %acc, %loop ]
  %sv = phi i64 [ %v0, %entry ], [ %v, %loop ]
  %s3 = mul i64 %sv, -3
  %slowacc = xor i64 %sacc, %s3
  br label %next
next:
  %ni = phi i64 [ %i0, %entry ], [ %i, %fast ], [ %si, %slow ]
  %acc1 = phi i64 [ %acc0, %entry ], [ %facc, %fast ], [ %slowacc, %slow ]
  %i1 = add i64 %ni, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
define i64 @osr(i32 %reason, i64 %n, i64 %i, i64 %acc, i64 %v) {
  %r = call i64 @total(i32 %reason, i64 %n, i64 %i, i64 %acc, i64 %v)
  ret i64 %r
}
define i64 @entry(i64 %n) {
  %start = and i64 %n, 31
  %more = lshr i64 %n, 2
  %m = and i64 %more, 7
  %m1 = add i64 %m, 1
  %end = add i64 %start, %m1
  %l = mul i64 %n, 37
  %limit = and i64 %l, 4095
  %r = call i64 @call_optimized(i64 (i64, i64, i64)* @total_opt, i64 %end, i64 %start, i64 %limit)
  ret i64 %r
}
