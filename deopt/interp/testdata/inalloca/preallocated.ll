; The successor of inalloca (LangRef, "Preallocated Calls"), one call within another's arguments.
target triple = "i686-linux-gnu"
declare token @llvm.call.preallocated.setup(i32)
declare ptr @llvm.call.preallocated.arg(token, i32)
declare void @llvm.call.preallocated.teardown(token)
declare i32 @printf(ptr, ...)
@f = private constant [10 x i8] c"%d %d %d\0A\00"
%pair = type { i32, i32 }
define void @make(ptr %p, i32 %v) noinline {
  store i32 %v, ptr %p
  %q = getelementptr %pair, ptr %p, i32 0, i32 1
  %d = mul i32 %v, 2
  store i32 %d, ptr %q
  ret void
}
define i32 @sum(ptr preallocated(%pair) %a, i32 %x, ptr preallocated(%pair) %b) noinline {
  %1 = load i32, ptr %a
  %q = getelementptr %pair, ptr %b, i32 0, i32 1
  %2 = load i32, ptr %q
  %n = call i32 (ptr, ...) @printf(ptr @f, i32 %1, i32 %x, i32 %2)
  %s = add i32 %2, %x
  %r = add i32 %s, %1
  store i32 9, ptr %a
  ret i32 %r
}
define i32 @work(i32 %n) noinline {
  %t = call token @llvm.call.preallocated.setup(i32 2)
  %a = call ptr @llvm.call.preallocated.arg(token %t, i32 0) preallocated(%pair)
  call void @make(ptr %a, i32 %n)
  %b = call ptr @llvm.call.preallocated.arg(token %t, i32 1) preallocated(%pair)
  call void @make(ptr %b, i32 100)
  %r = call i32 @sum(ptr preallocated(%pair) %a, i32 10, ptr preallocated(%pair) %b) [ "preallocated"(token %t) ]
  ret i32 %r
}
define i32 @nested(i32 %n) noinline {
  %t = call token @llvm.call.preallocated.setup(i32 2)
  %a = call ptr @llvm.call.preallocated.arg(token %t, i32 0) preallocated(%pair)
  %i = call i32 @work(i32 5)
  call void @make(ptr %a, i32 %i)
  %b = call ptr @llvm.call.preallocated.arg(token %t, i32 1) preallocated(%pair)
  %t2 = call token @llvm.call.preallocated.setup(i32 2)
  %a2 = call ptr @llvm.call.preallocated.arg(token %t2, i32 0) preallocated(%pair)
  %b2 = call ptr @llvm.call.preallocated.arg(token %t2, i32 1) preallocated(%pair)
  call void @make(ptr %b2, i32 %n)
  call void @make(ptr %a2, i32 7)
  %j = call i32 @sum(ptr preallocated(%pair) %a2, i32 11, ptr preallocated(%pair) %b2) [ "preallocated"(token %t2) ]
  call void @make(ptr %b, i32 %j)
  %r = call i32 @sum(ptr preallocated(%pair) %a, i32 12, ptr preallocated(%pair) %b) [ "preallocated"(token %t) ]
  ret i32 %r
}
define i32 @main() {
  %r = call i32 @work(i32 3)
  %s = call i32 @nested(i32 4)
  %q = add i32 %r, %s
  ret i32 %q
}
