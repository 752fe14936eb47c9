target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; Calls at patchpoints for which a frame of a virtual machine waits: @compiled returns 10 times its argument plus the result of @callee. The operands
; are the position and the local.
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, i8*, i32, ...)

define i64 @callee(i64 %x) noinline {
  %r = mul i64 %x, %x
  ret i64 %r
}

define i64 @compiled(i64 %x) noinline {
entry:
  %r = call i64 (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.i64(i64 5, i32 16, i8* bitcast (i64 (i64)* @callee to i8*), i32 1, i64 %x, i32 3, i64 %x)
  %ten = mul i64 %x, 10
  %sum = add i64 %r, %ten
  ret i64 %sum
}

define i32 @main() {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  %all = phi i64 [ 0, %entry ], [ %plus, %loop ]
  %v = call i64 @compiled(i64 %n)
  %plus = add i64 %all, %v
  %next = add i64 %n, 1
  %more = icmp ult i64 %next, 12
  br i1 %more, label %loop, label %done
done:
  %status = trunc i64 %plus to i32
  %low = and i32 %status, 127
  ret i32 %low
}
