target datalayout = "e-m:e-i8:8:32-i16:16:32-i64:64-i128:128-n32:64-S128-Fn32"
target triple = "aarch64-unknown-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @stub()
declare void @outer()
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

; The frame of @g looks like that of @f, and its calls may lead anywhere.
define i64 @g(i64 %x, ptr %p) "frame-pointer"="all" uwtable noinline {
entry:
  %s = alloca [64 x i8]
  call void asm sideeffect "", "r,~{memory}"(ptr %s)
  call void %p()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 9, i32 0, i64 333)
  ret i64 3
}

; No other function has a frame like that of @h.
define i64 @h(i64 %x, ptr %p) "frame-pointer"="all" uwtable noinline {
entry:
  %s = alloca [160 x i8]
  call void asm sideeffect "", "r,~{memory}"(ptr %s)
  call void @stub()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 10, i32 0, i64 %x)
  ret i64 %x
}

; @outer, which has no frame, calls @stub.
define i64 @k(i64 %x, ptr %p) "frame-pointer"="all" uwtable noinline {
entry:
  %s = alloca [288 x i8]
  call void asm sideeffect "", "r,~{memory}"(ptr %s)
  call void @outer()
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 11, i32 0, i64 %x)
  ret i64 %x
}
