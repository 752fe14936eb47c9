; Functions whose sites patchexit.c overwrites with a call: the shadow of a stackmap, the sled of a patchpoint. Each adds up
; numbers and stores what it has come to; in the middle of the loop it comes to its site once. @shadow and @sled have their values in
; registers that callees keep, as they call @tick; @leaf has none of them there.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, ptr, i32, ...)
declare i32 @patchexit(ptr, ptr, ptr, ptr, ptr, i32, ptr)
@__LLVM_StackMaps = external hidden constant i8
@seen = global i64 1 ; of .bss JITLink of LLVM 19 does not say where it lies
@step = global i64 3

define i64 @tick(i64 %x) noinline {
  %s = load volatile i64, ptr @step
  %r = mul i64 %x, %s
  ret i64 %r
}

define i64 @shadow(i64 %n, i64 %m) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %acc = phi i64 [ %m, %entry ], [ %sum, %on ]
  %half = lshr i64 %n, 1
  %here = icmp eq i64 %i, %half
  br i1 %here, label %exit, label %on
exit:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 31, i32 16, i64 %i, i64 %acc, i64 %n, i64 %m)
  br label %on
on:
  %t = call i64 @tick(i64 %i)
  %sum = add i64 %acc, %t
  store i64 %sum, ptr @seen
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %r = add i64 %sum, %m
  ret i64 %r
}

define i64 @sled(i64 %n, i64 %m) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %acc = phi i64 [ %m, %entry ], [ %sum, %on ]
  %half = lshr i64 %n, 1
  %here = icmp eq i64 %i, %half
  br i1 %here, label %exit, label %on
exit:
  call void (i64, i32, ptr, i32, ...) @llvm.experimental.patchpoint.void(i64 32, i32 16, ptr null, i32 0, i64 %i, i64 %acc, i64 %n, i64 %m)
  br label %on
on:
  %t = call i64 @tick(i64 %i)
  %sum = sub i64 %acc, %t
  store i64 %sum, ptr @seen
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %r = sub i64 %sum, %m
  ret i64 %r
}

define i64 @leaf(i64 %n, i64 %m) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %on ]
  %acc = phi i64 [ %m, %entry ], [ %sum, %on ]
  %half = lshr i64 %n, 1
  %here = icmp eq i64 %i, %half
  br i1 %here, label %exit, label %on
exit:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 33, i32 16, i64 %i, i64 %acc, i64 %n, i64 %m)
  br label %on
on:
  %s = load volatile i64, ptr @step
  %t = mul i64 %i, %s
  %sum = add i64 %acc, %t
  store i64 %sum, ptr @seen
  %next = add i64 %i, 1
  %more = icmp slt i64 %next, %n
  br i1 %more, label %loop, label %done
done:
  %r = add i64 %sum, %m
  ret i64 %r
}

define i32 @main(i32 %argc, ptr %argv) {
  %r = call i32 @patchexit(ptr @__LLVM_StackMaps, ptr @shadow, ptr @sled, ptr @leaf, ptr @seen, i32 %argc, ptr %argv)
  ret i32 %r
}
