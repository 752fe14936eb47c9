; Statepoints in their explicit form, with what reads their tokens.
target triple = "x86_64-pc-linux-gnu"
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare i64 @llvm.experimental.gc.result.i64(token)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
declare i64 @g(i64)
declare i32 @personality(...)
define i64 @f(i64 %n, ptr addrspace(1) %base, ptr addrspace(1) %dead) gc "statepoint-example" {
  %derived = getelementptr i8, ptr addrspace(1) %base, i64 %n
  %token = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i64 %n, i32 0, i32 0) [ "deopt"(i64 %n), "gc-live"(ptr addrspace(1) %base, ptr addrspace(1) %derived, ptr addrspace(1) %dead) ]
  %r = call i64 @llvm.experimental.gc.result.i64(token %token)
  %base.moved = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %token, i32 0, i32 0)
  %derived.moved = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %token, i32 0, i32 1)
  %x = load i64, ptr addrspace(1) %derived.moved
  %sum = add i64 %x, %r
  ret i64 %sum
}
define i64 @unwinds(ptr addrspace(1) %p, ptr addrspace(1) %q) gc "statepoint-example" personality ptr @personality {
entry:
  %token = invoke token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(i64 (i64)) @g, i32 1, i32 0, i64 1, i32 0, i32 0) [ "gc-live"(ptr addrspace(1) %p, ptr addrspace(1) %q) ]
          to label %ok unwind label %bad
ok:
  %r = call i64 @llvm.experimental.gc.result.i64(token %token)
  ret i64 %r
bad:
  %lp = landingpad token cleanup
  %q.moved = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %lp, i32 1, i32 1)
  %x = load i64, ptr addrspace(1) %q.moved
  ret i64 %x
}
