declare void @llvm.experimental.stackmap(i64, i32, ...)

define i64 @levels(i64 %n) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, i64 %n)
  %end = icmp eq i64 %n, 0
  br i1 %end, label %done, label %more
more:
  %m = sub i64 %n, 1
  %r = call i64 @levels(i64 %m)
  %s = add i64 %r, 1
  ret i64 %s
done:
  ret i64 0
}
define i64 @ping(i64 %n) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, i64 %n)
  %r = call i64 @pong(i64 %n)
  %s = add i64 %r, 1
  ret i64 %s
}
define i64 @pong(i64 %n) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 8, i64 %n)
  %end = icmp eq i64 %n, 0
  br i1 %end, label %done, label %more
more:
  %m = sub i64 %n, 1
  %r = call i64 @ping(i64 %m)
  %s = add i64 %r, 1
  ret i64 %s
done:
  ret i64 0
}
