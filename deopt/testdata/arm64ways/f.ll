target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
target triple = "aarch64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @stub()
define i64 @f(i64 %x, ptr %p) "frame-pointer"="all" uwtable noinline {
entry:
  %s = alloca [64 x i8]
  call void asm sideeffect "", "r,~{memory}"(ptr %s)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %x)
  %c = icmp eq i64 %x, 0
  br i1 %c, label %a, label %b
a:
  call void @stub()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 7, i32 0, i64 111)
  br label %e
b:
  call void %p()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 8, i32 0, i64 222)
  br label %e
e:
  %r = phi i64 [1, %a], [2, %b]
  ret i64 %r
}
