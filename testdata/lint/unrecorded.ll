; What is live behind a site and not recorded: a frame that stands there could not be resumed. @clean records all of it.
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, ptr, i32, ...)
declare i64 @callee(i64)
declare i32 @__gxx_personality_v0(...)
define i64 @clean(i64 %a, i64 %b) {
  %p = alloca i64
  store i64 %b, ptr %p
  %s = call i64 @callee(i64 %a) [ "deopt"(i64 %a, ptr %p) ]
  %t = load i64, ptr %p
  %u = add i64 %s, %t
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %u, i64 %a)
  %v = add i64 %u, %a
  ret i64 %v
}
define i64 @stackmap(i64 %a, i64 %b) {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %a)
  %s = add i64 %a, %b
  ret i64 %s
}
define i64 @patchpoint(i64 %a, i64 %b) {
  %p = alloca i64
  store i64 %b, ptr %p
  %r = call i64 (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.i64(i64 3, i32 16, ptr @callee, i32 1, i64 %b, i64 %a)
  %v = load i64, ptr %p
  %s = add i64 %a, %r
  %t = add i64 %s, %v
  ret i64 %t
}
define i64 @call(i64 %a, i64 %b) {
  %r = call i64 @callee(i64 %b) "statepoint-id"="4" [ "deopt"(i64 %b) ]
  %s = add i64 %a, %r
  ret i64 %s
}
; Behind the invoke the phi takes %x; what only the landing pad reads is not needed.
define i64 @invoke(i64 %a, i64 %b) personality ptr @__gxx_personality_v0 {
entry:
  %x = mul i64 %a, %b
  %y = mul i64 %a, 3
  %c = icmp eq i64 %x, 9
  br i1 %c, label %do, label %done
do:
  %r = invoke i64 @callee(i64 %b) "statepoint-id"="5" [ "deopt"(i64 %a) ] to label %done unwind label %pad
done:
  %v = phi i64 [ %x, %do ], [ 7, %entry ]
  %s = add i64 %v, %a
  ret i64 %s
pad:
  %l = landingpad { ptr, i32 } cleanup
  ret i64 %y
}
