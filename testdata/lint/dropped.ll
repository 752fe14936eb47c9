; Sites that have no record.
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define void @f(i64 %a) {
entry:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a)
  br label %always
always:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a)
  ret void
dead:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %a)
  br label %always
}
define available_externally void @inlined(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %a)
  ret void
}
