; ModuleID = '<stdin>'
source_filename = "<stdin>"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@last = dso_local global { i64, i64 } zeroinitializer

declare i64 @llvm.experimental.deoptimize.i64(...)

declare i64 @call_optimized(ptr, i64, i64)

; Function Attrs: noinline
define dso_local i64 @sum_opt(i64 %n, i64 %limit) #0 gc "statepoint-example" {
entry:
  br label %loop

loop:                                             ; preds = %ok, %entry
  %i = phi i64 [ 0, %entry ], [ %i1, %ok ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %ok ]
  %g = icmp ult i64 %acc, %limit
  br i1 %g, label %ok, label %exit

ok:                                               ; preds = %loop
  %sq = mul i64 %i, %i
  %acc1 = add i64 %acc, %sq
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done

exit:                                             ; preds = %loop
  %safepoint_token = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2882400000, i32 0, ptr elementtype(void (i32)) @__llvm_deoptimize, i32 1, i32 0, i32 7, i32 0, i32 0) [ "deopt"(i32 3, i64 %i, i64 %acc, i64 %n) ]
  unreachable

done:                                             ; preds = %ok
  ret i64 %acc1
}

; Function Attrs: noinline
define dso_local i64 @sum(i64 %n) #0 {
entry:
  br label %loop

loop:                                             ; preds = %loop, %entry
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %loop ]
  %sq = mul i64 %i, %i
  %acc1 = add i64 %acc, %sq
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done

done:                                             ; preds = %loop
  ret i64 %acc1
}

define dso_local i64 @main_jit(i64 %n, i64 %limit) {
  %r = call i64 @call_optimized(ptr @sum_opt, i64 %n, i64 %limit)
  store i64 %n, ptr @last, align 8
  store i64 %r, ptr getelementptr inbounds ({ i64, i64 }, ptr @last, i64 0, i32 1), align 8
  ret i64 %r
}

declare void @__llvm_deoptimize(i32)

declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)

attributes #0 = { noinline }
