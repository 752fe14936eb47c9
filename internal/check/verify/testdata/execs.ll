declare void @llvm.experimental.stackmap(i64, i32, ...)

define i64 @f(i64 %p, i64 %i) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, i64 %p, i64 %i)
  %q = mul i64 %p, %i
  %r = add i64 %q, 77
  ret i64 %r
}
