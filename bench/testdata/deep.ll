; A recursion of 90 frames: main, @down, then pause. Each frame holds values across its call.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@ready = private constant [6 x i8] c"ready\00"
@depth = global i64 88

declare i32 @puts(ptr)
declare i32 @pause()

define i64 @down(i64 %n, i64 %a, i64 %b) noinline #0 {
  %c = xor i64 %a, %n
  %d = mul i64 %b, %c
  %last = icmp eq i64 %n, 0
  br i1 %last, label %bottom, label %further
further:
  %m = sub i64 %n, 1
  %r = call i64 @down(i64 %m, i64 %c, i64 %d)
  %s = add i64 %r, %c
  %t = xor i64 %s, %d
  ret i64 %t
bottom:
  %x = call i32 @puts(ptr @ready)
  br label %wait
wait:
  %y = call i32 @pause()
  br label %wait
}

define i32 @main(i32 %argc, ptr %argv) #0 {
  %n = load volatile i64, ptr @depth
  %r = call i64 @down(i64 %n, i64 5, i64 7)
  %s = trunc i64 %r to i32
  ret i32 %s
}

attributes #0 = { uwtable }
