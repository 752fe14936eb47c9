target triple = "x86_64-pc-linux-gnu"

; The shadow of each record begins at the return address of runtime, which overwrites it.
define i64 @f(ptr %p, i64 %b) noinline uwtable {
entry:
  %x = mul i64 %b, 3
  %y = add i64 %b, 100
  call void @runtime(i64 1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 77, i32 16, ptr %p, i64 %x, i64 %b, i64 4242, i64 %y)
  %val = load i64, ptr %p
  %add = add i64 %val, %x
  %t = mul i64 %add, %b
  %u = add i64 %t, %y
  ret i64 %u
}

define i64 @g(ptr %p, i64 %b) noinline uwtable {
entry:
  %z = mul i64 %b, 31
  %w = sub i64 %b, 1000
  call void @runtime(i64 2)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 78, i32 16, i64 %z, i64 %w, i64 %b, ptr %p)
  %val = load i64, ptr %p
  %add = add i64 %val, %w
  %t = mul i64 %add, %b
  %u = xor i64 %t, %z
  ret i64 %u
}

declare void @runtime(i64)
declare void @llvm.experimental.stackmap(i64, i32, ...)
