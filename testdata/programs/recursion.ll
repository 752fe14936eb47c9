; Sites in a recursive function: on the way in, and between its two calls of itself.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @tree(i64 %n, i64 %seed) noinline {
entry:
  %x = mul i64 %seed, 17
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 61, i32 0, i64 %n, i64 %seed, i64 %x)
  %small = icmp ult i64 %n, 2
  br i1 %small, label %leaf, label %inner
leaf:
  %l = add i64 %x, %n
  ret i64 %l
inner:
  %n1 = sub i64 %n, 1
  %s1 = add i64 %x, 1
  %a = call i64 @tree(i64 %n1, i64 %s1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 62, i32 0, i64 %n, i64 %a, i64 %x, i64 %seed)
  %n2 = sub i64 %n, 2
  %s2 = xor i64 %a, %seed
  %b = call i64 @tree(i64 %n2, i64 %s2)
  %m = mul i64 %b, 3
  %r = add i64 %a, %m
  ret i64 %r
}
define i64 @entry(i64 %n) {
  %k = and i64 %n, 7
  %d = add i64 %k, 2
  %r = call i64 @tree(i64 %d, i64 %n)
  ret i64 %r
}
