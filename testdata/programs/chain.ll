; A recursion of four activations, of which the innermost waits in pause. Each has a deopt bundle with what it needs to go
; on; after SIGUSR1, pause returns -1 and main prints a number.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i32 @pause()
declare i32 @puts(ptr)
declare i32 @printf(ptr, ...)
declare ptr @signal(i32, ptr)
@msg = private constant [6 x i8] c"ready\00"
@text = private constant [9 x i8] c"sum %ld\0A\00"
define void @handler(i32 %n) {
  ret void
}
define i64 @f(i64 %n) noinline {
entry:
  %last = icmp eq i64 %n, 0
  br i1 %last, label %wait, label %again
wait:
  %w = call i32 @pause() "statepoint-id"="1" [ "deopt"(i64 %n) ]
  %w64 = sext i32 %w to i64
  ret i64 %w64
again:
  %m = sub i64 %n, 1
  %r = call i64 @f(i64 %m) "statepoint-id"="2" [ "deopt"(i64 %n) ]
  %p = mul i64 %r, 10
  %s = add i64 %p, %n
  ret i64 %s
}
define i32 @main() {
  %h = call ptr @signal(i32 10, ptr @handler)
  %x = call i32 @puts(ptr @msg)
  %r = call i64 @f(i64 3) "statepoint-id"="3" [ "deopt"() ]
  %y = call i32 (ptr, ...) @printf(ptr @text, i64 %r)
  ret i32 0
}
