; By clobbered.layout.json the patchpoint's frame carries on in @slow, which needs %v. @fast itself does not, so LLVM
; leaves it where the callee may overwrite it.
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare void @callee()
define i64 @fast(i64 %a, i64 %b) {
  %v = mul i64 %a, %b
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 13, ptr @callee, i32 0, i64 %v, i64 %a)
  ret i64 %a
}
define i64 @slow(i64 %x, i64 %y) {
entry:
  %s = add i64 %x, %y
  ret i64 %s
}
