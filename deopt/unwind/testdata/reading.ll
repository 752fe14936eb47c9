; The same for llc: functions that frame their stacks in all the ways that LLVM has. Opaque
; pointers, which llc 14 knows behind a flag.

define i64 @llvm_leaf(i64 %a) noinline {
  %r = mul i64 %a, 3
  ret i64 %r
}

define i64 @llvm_saves(i64 %a, i64 %b) noinline {
  %c = call i64 @llvm_leaf(i64 %a)
  %d = call i64 @llvm_leaf(i64 %b)
  %e = call i64 @llvm_leaf(i64 %c)
  %f = call i64 @llvm_leaf(i64 %d)
  %g = call i64 @llvm_leaf(i64 %e)
  %s = add i64 %a, %b
  %t = add i64 %s, %c
  %u = add i64 %t, %d
  %v = add i64 %u, %e
  %w = add i64 %v, %f
  %x = add i64 %w, %g
  ret i64 %x
}

define i64 @llvm_pushes(i64 %a) noinline {
  %r = call i64 @llvm_many(i64 %a, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 8, i64 9)
  %s = call i64 @llvm_many(i64 %r, i64 2, i64 3, i64 4, i64 5, i64 6, i64 7, i64 %a, i64 9)
  %t = add i64 %r, %s
  ret i64 %t
}

define i64 @llvm_many(i64 %a, i64 %b, i64 %c, i64 %d, i64 %e, i64 %f, i64 %g, i64 %h, i64 %i) noinline {
  %x = add i64 %a, %g
  %y = add i64 %h, %i
  %z = mul i64 %x, %y
  ret i64 %z
}

define i64 @llvm_frame_pointer(i64 %a) noinline "frame-pointer"="all" {
  %s = alloca [4 x i64]
  %p = getelementptr [4 x i64], ptr %s, i64 0, i64 1
  store volatile i64 %a, ptr %p
  %v = load volatile i64, ptr %p
  %r = call i64 @llvm_leaf(i64 %v)
  %t = add i64 %r, %a
  ret i64 %t
}

define i64 @llvm_runtime_size(i64 %n) noinline {
  %m = add i64 %n, 9
  %p = alloca i8, i64 %m
  store volatile i8 7, ptr %p
  %v = load volatile i8, ptr %p
  %w = zext i8 %v to i64
  %r = call i64 @llvm_leaf(i64 %w)
  ret i64 %r
}

define i64 @llvm_realigned(i64 %n) noinline {
  %s = alloca [8 x i64], align 64
  %q = getelementptr [8 x i64], ptr %s, i64 0, i64 %n
  store volatile i64 %n, ptr %q
  %v = load volatile i64, ptr %q
  %r = call i64 @llvm_leaf(i64 %v)
  %t = add i64 %r, %n
  ret i64 %t
}

; Realigned and of run-time size: a base pointer, too.
define i64 @llvm_based(i64 %n) noinline {
  %s = alloca [8 x i64], align 64
  %m = add i64 %n, 9
  %p = alloca i8, i64 %m
  %q = getelementptr [8 x i64], ptr %s, i64 0, i64 %n
  store volatile i64 %n, ptr %q
  store volatile i8 7, ptr %p
  %v = load volatile i64, ptr %q
  %r = call i64 @llvm_leaf(i64 %v)
  %t = add i64 %r, %n
  ret i64 %t
}

define i64 @llvm_probed(i64 %n) noinline "probe-stack"="inline-asm" {
  %s = alloca [9000 x i64]
  %q = getelementptr [9000 x i64], ptr %s, i64 0, i64 %n
  store volatile i64 %n, ptr %q
  %v = load volatile i64, ptr %q
  %r = call i64 @llvm_leaf(i64 %v)
  ret i64 %r
}

define i64 @llvm_early(i64 %a) noinline {
  %small = icmp slt i64 %a, 3
  br i1 %small, label %out, label %on
on:
  %b = call i64 @llvm_leaf(i64 %a)
  %c = call i64 @llvm_saves(i64 %a, i64 %b)
  %d = add i64 %b, %c
  br label %out
out:
  %r = phi i64 [ 1, %0 ], [ %d, %on ]
  ret i64 %r
}

define i64 @llvm_tail(i64 %a) noinline {
  %b = add i64 %a, 1
  %r = tail call i64 @llvm_saves(i64 %b, i64 %a)
  ret i64 %r
}

define i64 @llvm_all(i64 %a) noinline {
  %b = call i64 @llvm_saves(i64 %a, i64 5)
  %c = call i64 @llvm_pushes(i64 %b)
  %d = call i64 @llvm_frame_pointer(i64 %c)
  %e = call i64 @llvm_runtime_size(i64 %a)
  %f = call i64 @llvm_realigned(i64 %a)
  %g = call i64 @llvm_based(i64 %a)
  %h = call i64 @llvm_probed(i64 %a)
  %i = call i64 @llvm_early(i64 1)
  %j = call i64 @llvm_early(i64 7)
  %k = call i64 @llvm_tail(i64 %a)
  %x1 = add i64 %d, %e
  %x2 = add i64 %f, %g
  %x3 = add i64 %h, %i
  %x4 = add i64 %j, %k
  %y1 = add i64 %x1, %x2
  %y2 = add i64 %x3, %x4
  %r = add i64 %y1, %y2
  ret i64 %r
}
