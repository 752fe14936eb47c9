; An optimized function, @plain_opt, that leaves for the runtime, @resumed, where a number is large, and its baseline, @plain, in which
; baseline.layout.json says that the exit resumes. The tests plant faults in it: in the values of its record, in the code, in the runtime.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare i32 @printf(ptr, ...)
@numbers = constant [16 x i64] [i64 6, i64 18, i64 3, i64 5, i64 40, i64 12, i64 8, i64 27, i64 2, i64 34, i64 21, i64 16, i64 9, i64 50, i64 4, i64 11]
@line = constant [5 x i8] c"%ld\0A\00"
@last = global i64 0
define i64 @plain(i64 %n, i64 %start) noinline {
entry:
  %p0 = call i32 (ptr, ...) @printf(ptr @line, i64 %n)
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %i1, %next ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %next ]
  %k = and i64 %i, 15
  %p = getelementptr [16 x i64], ptr @numbers, i64 0, i64 %k
  %v = load i64, ptr %p
  %large = icmp ugt i64 %v, 30
  br i1 %large, label %slow, label %fast
fast:
  %f = mul i64 %v, %i
  %facc = add i64 %acc, %f
  br label %next
slow:
  %sacc = xor i64 %acc, %v
  br label %next
next:
  %acc1 = phi i64 [ %facc, %fast ], [ %sacc, %slow ]
  store i64 %acc1, ptr @last
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
define i64 @plain_opt(i64 %n, i64 %start) noinline {
entry:
  %p0 = call i32 (ptr, ...) @printf(ptr @line, i64 %n)
  br label %loop
loop:
  %i = phi i64 [ %start, %entry ], [ %i1, %usual ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %usual ]
  %k = and i64 %i, 15
  %p = getelementptr [16 x i64], ptr @numbers, i64 0, i64 %k
  %v = load i64, ptr %p
  %large = icmp ugt i64 %v, 30
  br i1 %large, label %exit, label %usual
usual:
  %f = mul i64 %v, %i
  %acc1 = add i64 %acc, %f
  store i64 %acc1, ptr @last
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
exit:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 95, i32 0, i64 %n, i64 %i, i64 %acc)
  %r = call i64 @resumed(i64 %n, i64 %i, i64 %acc)
  ret i64 %r
done:
  ret i64 %acc1
}
; What the runtime makes of an exit.
define i64 @resumed(i64 %n, i64 %i0, i64 %acc0) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ %i0, %entry ], [ %i1, %next ]
  %acc = phi i64 [ %acc0, %entry ], [ %acc1, %next ]
  %k = and i64 %i, 15
  %p = getelementptr [16 x i64], ptr @numbers, i64 0, i64 %k
  %v = load i64, ptr %p
  %large = icmp ugt i64 %v, 30
  %f = mul i64 %v, %i
  %facc = add i64 %acc, %f
  %sacc = xor i64 %acc, %v
  br label %next
next:
  %acc1 = select i1 %large, i64 %sacc, i64 %facc
  store i64 %acc1, ptr @last
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret i64 %acc1
}
define i64 @entry(i64 %n) {
  %m = and i64 %n, 7
  %m1 = add i64 %m, 6
  %r = call i64 @plain_opt(i64 %m1, i64 1)
  ret i64 %r
}
