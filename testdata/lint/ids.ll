; Sites that have the id of another. The two of @twins cannot be told apart, those of @row can by their order, and the first two of
; @constants by a constant: the third is a record of its own shape.
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @callee()
declare void @other()
define void @twins(i64 %a, i64 %b, i1 %c) {
  br i1 %c, label %one, label %two
one:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %a, i64 %b)
  ret void
two:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %b, i64 %a)
  ret void
}
define void @row(i64 %a, i64 %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %a, i64 %b)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %b, i64 %a)
  ret void
}
define void @constants(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i32 10, i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i32 20, i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a)
  ret void
}
define void @elsewhere(i64 %a) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i32 10, i64 %a)
  ret void
}
; All have the id that LLVM gives by itself: of the first pair the callee tells, if the call names it.
define void @statepoints(i64 %a, i64 %b) {
  call void @callee() [ "deopt"(i64 %a, i64 %b, i64 0) ]
  call void @other() [ "deopt"(i64 %b, i64 %a, i64 0) ]
  call void @callee() [ "deopt"(i64 %a, i64 %b) ]
  call void @callee() [ "deopt"(i64 %b, i64 %a) ]
  ret void
}
