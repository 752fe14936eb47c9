; What llc writes for functions with stack map records, and for others.
target triple = "x86_64-unknown-linux-gnu"

declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i64 @sink(ptr, i64)

define i64 @mapped(i64 %a, i64 %b) {
  %x = call i64 @sink(ptr null, i64 %a)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, i64 %a, i64 %x)
  %y = call i64 @sink(ptr null, i64 %b)
  %z = add i64 %x, %y
  %r = mul i64 %z, %a
  ret i64 %r
}

define i64 @realigned(i64 %n) {
  %big = alloca [256 x i8], align 64
  %p = alloca i8, i64 %n
  %x = call i64 @sink(ptr %big, i64 %n)
  %y = call i64 @sink(ptr %p, i64 %x)
  ret i64 %y
}

define i64 @branches(i64 %a, i64 %b, i64 %c) uwtable {
entry:
  %t = icmp sgt i64 %a, %b
  br i1 %t, label %left, label %right
left:
  %x = call i64 @sink(ptr null, i64 %c)
  %s = add i64 %x, %a
  ret i64 %s
right:
  %y = call i64 @sink(ptr null, i64 %b)
  %z = call i64 @sink(ptr null, i64 %y)
  %u = sub i64 %z, %c
  ret i64 %u
}
