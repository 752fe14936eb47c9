target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @finish()
@heap = external global ptr
@touched = external global i64
; The store is what the handler makes possible, and counts.
define i64 @barrier(i64 %n) noinline {
  %p = load ptr, ptr @heap
  %at = getelementptr i64, ptr %p, i64 %n
  store volatile i64 %n, ptr %at
  %d = load volatile i64, ptr @touched
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 0, i64 %n, i64 %d)
  %r = add i64 %d, %n
  ret i64 %r
}
; The load is, and the exit before it is of a run that comes to the fault.
define i64 @reads(i64 %n) noinline {
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 2, i32 0, i64 %n)
  %p = load ptr, ptr @heap
  %at = getelementptr i64, ptr %p, i64 %n
  %v = load volatile i64, ptr %at
  %r = add i64 %v, %n
  ret i64 %r
}
define i64 @loop(i64 %n) noinline {
entry:
  %p = load ptr, ptr @heap
  br label %l
l:
  %i = phi i64 [ 0, %entry ], [ %j, %l ]
  %s = phi i64 [ 0, %entry ], [ %t, %l ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 3, i32 0, i64 %n, i64 %i, i64 %s, ptr %p)
  %o = mul i64 %i, 512
  %at = getelementptr i64, ptr %p, i64 %o
  %v = load volatile i64, ptr %at
  %t = add i64 %s, %v
  store volatile i64 %t, ptr %at
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %l, label %done
done:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 %t)
  ret i64 %t
}
; It does not return: each exit is compared with the next.
define void @serve(i64 %n) noinline {
entry:
  %p = load ptr, ptr @heap
  br label %l
l:
  %i = phi i64 [ 0, %entry ], [ %j, %l ]
  %d = phi i64 [ 0, %entry ], [ %e, %l ]
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 5, i32 0, i64 %n, i64 %i, i64 %d, ptr %p)
  %o = mul i64 %i, 512
  %at = getelementptr i64, ptr %p, i64 %o
  store volatile i64 7, ptr %at
  %e = load volatile i64, ptr @touched
  %j = add i64 %i, 1
  %c = icmp slt i64 %j, %n
  br i1 %c, label %l, label %done
done:
  call void @finish()
  unreachable
}
