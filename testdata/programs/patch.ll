; Patchpoints: a sled of nops, in a loop, and one that calls a function of the module, whose result is used. Nothing that
; llc crashes on follows one: no other call, no floating point.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
define i64 @callee(i64 %a, i64 %b) noinline {
  %m = mul i64 %a, 7
  %r = xor i64 %m, %b
  ret i64 %r
}
define i64 @sled(i64 %a, i64 %b) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %x = phi i64 [ %a, %entry ], [ %x1, %loop ]
  %t = trunc i64 %x to i32
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 21, i32 16, ptr null, i32 0, i64 %i, i64 %x, i64 %b, i32 %t, i64 -5)
  %w = zext i32 %t to i64
  %y = mul i64 %x, 5
  %z = add i64 %y, %b
  %x1 = xor i64 %z, %w
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, 4
  br i1 %c, label %loop, label %done
done:
  ret i64 %x1
}
define i64 @called(i64 %a, i64 %b) noinline {
  %v1 = add i64 %a, 1000
  %v2 = mul i64 %a, %b
  %v3 = sub i64 %b, %a
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 22, i32 16, ptr @callee, i32 2, i64 %a, i64 %b, i64 %v1, i64 %v2, i64 %v3, i64 %a, i64 %b)
  %s1 = sub i64 %r, %v1
  %s2 = add i64 %s1, %v2
  %s3 = xor i64 %s2, %v3
  ret i64 %s3
}
define i64 @entry(i64 %n) {
  %b = add i64 %n, 17
  %x = call i64 @sled(i64 %n, i64 %b)
  %y = call i64 @called(i64 %x, i64 %b)
  ret i64 %y
}
