target triple = "aarch64-linux-gnu"
define i64 @f(ptr %p, i64 %b) noinline uwtable {
  %x = mul i64 %b, 3
  %y = add i64 %b, 100
  call void @runtime(i64 %y)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 77, i32 16, i64 %x, i64 %b, i64 4242, i64 %y)
  %v = load i64, ptr %p
  %a = add i64 %v, %x
  %t = mul i64 %a, %b
  %u = add i64 %t, %y
  ret i64 %u
}
define i64 @g(ptr %p, i64 %b) noinline uwtable {
  %x = mul i64 %b, 3
  %y = add i64 %b, 100
  call void @runtime(i64 %y)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 78, i32 16, i64 %x, i64 %b, i64 4242, i64 %y)
  %v = load i64, ptr %p
  %a = add i64 %v, %x
  %t = mul i64 %a, %b
  %u = add i64 %t, %y
  ret i64 %u
}
declare void @runtime(i64)
declare void @llvm.experimental.stackmap(i64, i32, ...)
