declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.trap()
declare i64 @native(ptr)

define i64 @load(ptr %p, i64 %i) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, ptr %p, i64 %i)
  %q = getelementptr i64, ptr %p, i64 %i
  %r = load volatile i64, ptr %q
  ret i64 %r
}
define i64 @divide(i64 %a, i64 %b) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, i64 %a, i64 %b)
  %r = sdiv i64 %a, %b
  ret i64 %r
}
define i64 @trap(i64 %a) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 8, i64 %a)
  call void @llvm.trap()
  unreachable
}
define i64 @call(ptr %p) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 8, ptr %p)
  %r = call i64 @native(ptr %p)
  %s = add i64 %r, 1
  ret i64 %s
}
define i64 @down(i64 %n) noinline {
  %room = alloca [4096 x i8]
  store volatile i8 1, ptr %room
  %end = icmp eq i64 %n, 0
  br i1 %end, label %done, label %more
more:
  %m = sub i64 %n, 1
  %r = call i64 @down(i64 %m)
  %s = add i64 %r, 1
  ret i64 %s
done:
  ret i64 0
}
define i64 @deep(i64 %n) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 8, i64 %n)
  %r = call i64 @down(i64 %n)
  ret i64 %r
}
