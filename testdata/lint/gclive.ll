; One gc pointer that is in the gc-live bundle alone has a name, for one pair is left in the record. Of two, the record
; says of neither which it is.
target triple = "x86_64-pc-linux-gnu"
declare void @callee()
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
define i64 @one(ptr addrspace(1) %o, i64 %n) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %n), "gc-live"(ptr addrspace(1) %o) ]
  %r = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  %v = load i64, ptr addrspace(1) %r
  %s = add i64 %v, %n
  ret i64 %s
}
define i64 @two(ptr addrspace(1) %o, ptr addrspace(1) %p) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 2, i32 0, ptr elementtype(void ()) @callee, i32 0, i32 0, i32 0, i32 0) [ "deopt"(), "gc-live"(ptr addrspace(1) %o, ptr addrspace(1) %p) ]
  %r = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 0, i32 0)
  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %t, i32 1, i32 1)
  %v = load i64, ptr addrspace(1) %r
  %w = load i64, ptr addrspace(1) %q
  %s = add i64 %v, %w
  ret i64 %s
}
; Nothing has rewritten these yet: the pass adds the pointers to gc-live.
define i64 @raw(ptr addrspace(1) %o, i64 %n) gc "statepoint-example" {
  call void @callee() "statepoint-id"="3" [ "deopt"(i64 %n) ]
  %v = load i64, ptr addrspace(1) %o
  %s = add i64 %v, %n
  ret i64 %s
}
