; Each round of @work comes to three exits and hands over to another coroutine twice, in @pass.
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @pass(i64)

define i64 @inner(i64 %i) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 8, i64 %i)
  %r = call i64 @pass(i64 %i)
  %s = xor i64 %r, 5
  ret i64 %s
}

define i64 @work(i64 %k) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %loop ]
  %s = phi i64 [ %k, %entry ], [ %u, %loop ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, i64 %k, i64 %i, i64 %s)
  %m = mul i64 %s, 3
  %r = call i64 @pass(i64 %i)
  %t = add i64 %m, %r
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 8, i64 %k, i64 %i, i64 %t)
  %n = call i64 @inner(i64 %i)
  %u = sub i64 %t, %n
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %k
  br i1 %c, label %loop, label %done
done:
  ret i64 %u
}
