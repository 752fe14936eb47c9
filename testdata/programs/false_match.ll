; An ordinary call whose return address is the start of the patchpoint that follows it. The patchpoint's record
; lists the call's result in rax, which is garbage as long as the call runs: a record that is found here by its
; address alone is a false match.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare i32 @pause()
declare i32 @puts(ptr)
@msg = private constant [6 x i8] c"ready\00"
define i64 @blocker() noinline {
  %x = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}
define i64 @work() noinline {
  %r = call i64 @blocker()
  %p = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 77, i32 16, ptr @blocker, i32 0, i64 %r)
  ret i64 %p
}
define i32 @main() {
  %r = call i64 @work()
  ret i32 0
}
