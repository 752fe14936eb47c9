; Invokes of statepoints, whose landing pads are tokens; a cleanup as in C; a landing pad that two invokes share.
declare i32 @__gxx_personality_v0(...)
declare ptr @__cxa_allocate_exception(i64)
declare void @__cxa_throw(ptr, ptr, ptr)
declare ptr @__cxa_begin_catch(ptr)
declare void @__cxa_end_catch()
declare i32 @printf(ptr, ...)
declare i32 @llvm.eh.typeid.for(ptr)
declare token @llvm.experimental.gc.statepoint.p0(i64 immarg, i32 immarg, ptr, i32 immarg, i32 immarg, ...)
declare ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token, i32 immarg, i32 immarg)
declare i64 @llvm.experimental.gc.result.i64(token)
@_ZTIi = external constant ptr
@_ZTIl = external constant ptr
@cell = global i64 7
@said = constant [12 x i8] c"%ld %d %ld\0A\00"

define i64 @thrower(i64 %x) gc "statepoint-example" {
  %odd = trunc i64 %x to i1
  br i1 %odd, label %throw, label %give
throw:
  %e = call ptr @__cxa_allocate_exception(i64 8)
  store i64 %x, ptr %e
  %two = and i64 %x, 2
  %int = icmp eq i64 %two, 0
  %t = select i1 %int, ptr @_ZTIi, ptr @_ZTIl
  call void @__cxa_throw(ptr %e, ptr %t, ptr null)
  unreachable
give:
  %y = mul i64 %x, 10
  ret i64 %y
}

define i64 @caller(i64 %x, ptr addrspace(1) %p) gc "statepoint-example" personality ptr @__gxx_personality_v0 {
entry:
  %big = add i64 %x, 1000
  %s = invoke token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 1, i32 0, ptr elementtype(i64 (i64)) @thrower, i32 1, i32 0, i64 %x, i32 0, i32 0) [ "deopt"(i64 %x, i64 %big), "gc-live"(ptr addrspace(1) %p) ]
          to label %normal unwind label %pad
normal:
  %r = call i64 @llvm.experimental.gc.result.i64(token %s)
  %q = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %s, i32 0, i32 0)
  %v = load i64, ptr addrspace(1) %q
  %n = add i64 %r, %v
  ret i64 %n
pad:
  %l = landingpad token cleanup catch ptr null
  %h = call ptr addrspace(1) @llvm.experimental.gc.relocate.p1(token %l, i32 0, i32 0)
  %w = load i64, ptr addrspace(1) %h
  %m = sub i64 %w, %big
  ret i64 %m
}

define i64 @typed(i64 %x) personality ptr @__gxx_personality_v0 {
entry:
  %a = invoke i64 @passes(i64 %x) to label %more unwind label %pad
more:
  %y = add i64 %x, 1
  %b = invoke i64 @passes(i64 %y) to label %out unwind label %pad
out:
  %sum = add i64 %a, %b
  ret i64 %sum
pad:
  %at = phi i64 [ 100, %entry ], [ %a, %more ]
  %l = landingpad { ptr, i32 } cleanup catch ptr @_ZTIi catch ptr @_ZTIl
  %ex = extractvalue { ptr, i32 } %l, 0
  %sel = extractvalue { ptr, i32 } %l, 1
  %int = call i32 @llvm.eh.typeid.for(ptr @_ZTIi)
  %is = icmp eq i32 %sel, %int
  %ob = call ptr @__cxa_begin_catch(ptr %ex)
  %v = load i64, ptr %ob
  call void @__cxa_end_catch()
  %f = select i1 %is, i64 1, i64 -1
  %vf = mul i64 %v, %f
  %r = add i64 %vf, %at
  ret i64 %r
}

define i64 @passes(i64 %x) personality ptr @__gxx_personality_v0 {
entry:
  %r = invoke i64 @thrower(i64 %x) to label %out unwind label %pad
out:
  ret i64 %r
pad:
  %l = landingpad { ptr, i32 } cleanup
  %old = load i64, ptr @cell
  %new = add i64 %old, 1
  store i64 %new, ptr @cell
  resume { ptr, i32 } %l
}

define i32 @main() {
entry:
  br label %loop
loop:
  %k = phi i64 [ 0, %entry ], [ %next, %loop ]
  %t = call i64 @typed(i64 %k)
  %c = call i64 @caller(i64 %k, ptr addrspace(1) addrspacecast (ptr @cell to ptr addrspace(1)))
  %i = trunc i64 %t to i32
  %p = call i32 (ptr, ...) @printf(ptr @said, i64 %k, i32 %i, i64 %c)
  %next = add i64 %k, 1
  %more = icmp ult i64 %next, 9
  br i1 %more, label %loop, label %out
out:
  %last = load i64, ptr @cell
  %status = trunc i64 %last to i32
  ret i32 %status
}
