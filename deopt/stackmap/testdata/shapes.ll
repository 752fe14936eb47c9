; What the programs beside it leave out: a frame without a fixed size, a record without any location, vectors,
; a patchpoint with live-outs and one in the anyreg convention, a function without records between two that have some.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare void @use(ptr)
declare void @callee()
define void @dynamic(i64 %n) {
  %p = alloca i8, i64 %n
  call void @use(ptr %p)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %n, ptr %p)
  ret void
}
define void @without() {
  ret void
}
define void @nothing(x86_fp80 %e) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 -1, i32 5, x86_fp80 %e)
  ret void
}
define <4 x float> @vector(<4 x float> %v, <8 x i32> %w) "target-features"="+avx2" {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 81985529216486895, i32 0, <4 x float> %v, <8 x i32> %w)
  ret <4 x float> %v
}
define i64 @live(i64 %a, i64 %b) {
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 4, i32 16, ptr null, i32 0, i64 %a)
  %s = add i64 %a, %b
  ret i64 %s
}
define i64 @anyreg(i64 %a, i64 %b) {
  %r = call anyregcc i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 5, i32 16, ptr null, i32 2, i64 %a, i64 %b, i64 -9223372036854775808, i32 -1)
  ret i64 %r
}
define void @transition(i64 %a) gc "statepoint-example" {
  %slot = alloca i64
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 6, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 1, i32 0, i32 0) [ "deopt"(i64 %a), "gc-live"(ptr %slot), "gc-transition"() ]
  ret void
}
