; The code that the demo's target runs. @main_jit has @sum_opt add up the squares of the numbers below 1000, and @sum_opt
; holds a guess: that the sum stays under a limit. Where the guess turns out wrong it leaves through LLVM's own OSR exit,
; whose "deopt" values are what @sum needs to carry on at its block %loop.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

declare i64 @llvm.experimental.deoptimize.i64(...)
; The host's: calls the function so that the host can leave it at an exit and return a value in its place.
declare i64 @call_optimized(ptr, i64, i64)

; What @main_jit last asked for, and what came back.
@last = dso_local global { i64, i64 } zeroinitializer

define dso_local i64 @sum_opt(i64 %n, i64 %limit) noinline gc "statepoint-example" {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %ok ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %ok ]
  %g = icmp ult i64 %acc, %limit
  br i1 %g, label %ok, label %exit
ok:
  %sq = mul i64 %i, %i
  %acc1 = add i64 %acc, %sq
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
exit:
  %d = call i64 (...) @llvm.experimental.deoptimize.i64(i32 7) [ "deopt"(i32 3, i64 %i, i64 %acc, i64 %n) ]
  ret i64 %d
done:
  ret i64 %acc1
}

; The same sum without the guess.
define dso_local i64 @sum(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %loop ]
  %sq = mul i64 %i, %i
  %acc1 = add i64 %acc, %sq
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}

define dso_local i64 @main_jit(i64 %n, i64 %limit) {
  %r = call i64 @call_optimized(ptr @sum_opt, i64 %n, i64 %limit)
  store i64 %n, ptr @last
  store i64 %r, ptr getelementptr inbounds ({ i64, i64 }, ptr @last, i64 0, i32 1)
  ret i64 %r
}
