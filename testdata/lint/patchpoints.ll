; Patchpoints that LLVM compiles by its defaults (@fits, @nothing, @branch), or not: in @read and @joined
; what follows in the same machine block reads a control register.
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare void @callee()
define void @fits(i64 %a) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 1, i32 13, ptr @callee, i32 0, i64 %a)
  ret void
}
define void @nothing(i64 %a) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 2, i32 5, ptr null, i32 0, i64 %a)
  ret void
}
define void @branch(i64 %a, i1 %c) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 3, i32 13, ptr @callee, i32 0, i64 %a, i1 %c)
  br i1 %c, label %next, label %end
next:
  call void @callee()
  br label %end
end:
  ret void
}
define double @read(i64 %a, double %d) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 4, i32 13, ptr @callee, i32 0, i64 %a, double %d)
  %s = fadd double %d, 1.0
  ret double %s
}
define void @joined(i64 %a) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 5, i32 13, ptr @callee, i32 0, i64 %a)
  br label %next
next:
  call void @callee()
  ret void
}
