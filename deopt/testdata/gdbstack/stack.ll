; A stack of JIT frames of several shapes, all of which hold values across their calls: main, six of @deep, @dynamic,
; @big, @bottom. With no argument @bottom calls pause; with two it computes for ever, in itself and in @leaf. Neither
; ends, as long as @seed is not 0.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

@ready = private constant [6 x i8] c"ready\00"
@seed = global i64 6
@spins = global i1 false

declare i32 @puts(ptr)
declare i32 @fflush(ptr)
declare i32 @pause()

define i64 @leaf(i64 %a, i64 %b) noinline {
  %m = mul i64 %a, %b
  %s = load volatile i64, ptr @seed
  %r = add i64 %m, %s
  ret i64 %r
}

define i64 @bottom(i64 %n) noinline {
entry:
  %x = call i32 @puts(ptr @ready)
  %y = call i32 @fflush(ptr null)
  %c = load volatile i1, ptr @spins
  br i1 %c, label %spin, label %wait
wait:
  %p = call i32 @pause()
  %on = load volatile i64, ptr @seed
  %more = icmp ne i64 %on, 0
  br i1 %more, label %wait, label %out
spin:
  %i = phi i64 [ %n, %entry ], [ %k, %spin ]
  %j = call i64 @leaf(i64 %i, i64 %n)
  %k = xor i64 %j, %i
  %go = load volatile i64, ptr @seed
  %again = icmp ne i64 %go, 0
  br i1 %again, label %spin, label %out
out:
  ret i64 0
}

; A frame of more than a page.
define i64 @big(i64 %n) noinline {
  %space = alloca [1000 x i64]
  %at = getelementptr [1000 x i64], ptr %space, i64 0, i64 %n
  store volatile i64 %n, ptr %at
  %r = call i64 @bottom(i64 %n)
  %v = load volatile i64, ptr %at
  %s = add i64 %r, %v
  ret i64 %s
}

; A frame whose size is known at run time alone.
define i64 @dynamic(i64 %n) noinline {
  %space = alloca i64, i64 %n
  store volatile i64 %n, ptr %space
  %r = call i64 @big(i64 %n)
  %v = load volatile i64, ptr %space
  %s = add i64 %r, %v
  ret i64 %s
}

define i64 @deep(i64 %n, i64 %a, i64 %b, i64 %c) noinline {
entry:
  %last = icmp eq i64 %n, 1
  br i1 %last, label %out, label %down
down:
  %m = sub i64 %n, 1
  %a1 = add i64 %a, %n
  %b1 = mul i64 %b, %n
  %c1 = xor i64 %c, %n
  %r = call i64 @deep(i64 %m, i64 %a1, i64 %b1, i64 %c1)
  %s1 = add i64 %r, %a
  %s2 = add i64 %s1, %b
  %s3 = add i64 %s2, %c
  %s4 = add i64 %s3, %n
  ret i64 %s4
out:
  %d = call i64 @dynamic(i64 %a)
  %d1 = add i64 %d, %b
  %d2 = add i64 %d1, %c
  ret i64 %d2
}

define i32 @main(i32 %argc, ptr %argv) {
  %two = icmp sgt i32 %argc, 1
  store volatile i1 %two, ptr @spins
  %n = load volatile i64, ptr @seed
  %r = call i64 @deep(i64 %n, i64 3, i64 5, i64 7)
  %q = trunc i64 %r to i32
  ret i32 %q
}
