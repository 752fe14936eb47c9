declare void @llvm.experimental.stackmap(i64, i32, ...)

define i64 @f0(i64 %x, i64 %y) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, i64 %x, i64 %y)
  %r = mul i64 %x, %y
  ret i64 %r
}
