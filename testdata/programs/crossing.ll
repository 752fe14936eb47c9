; A stackmap in a loop whose rounds call what exists only as native code, of the C library: it prints, allocates, stores to memory that it is
; given and to its own, returns pointers to that, and calls the module's own function back, in which there is a stackmap too.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare ptr @malloc(i64)
declare void @free(ptr)
declare i32 @printf(ptr, ...)
declare i64 @strlen(ptr)
declare void @swab(ptr, ptr, i64)
declare ptr @memfrob(ptr, i64)
declare ptr @l64a(i64)
declare i32 @argz_create_sep(ptr, i32, ptr, ptr)
declare ptr @lfind(ptr, ptr, ptr, i64, ptr)
@line = constant [19 x i8] c"%d %ld %.3f %s %s\0A\00"
@words = constant [20 x i8] c"a stack map is true\00"
@numbers = constant [5 x i64] [i64 11, i64 22, i64 33, i64 44, i64 55]
@kept = global ptr null
@scaled = global double 0.0
define i32 @compare(ptr %a, ptr %b) {
  %x = load i64, ptr %a
  %y = load i64, ptr %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 91, i32 0, i64 %x, i64 %y)
  %different = icmp ne i64 %x, %y
  %r = zext i1 %different to i32
  ret i32 %r
}
; What it hands over lies in its own frame.
define i64 @spell(i64 %i, i64 %acc) noinline {
  %room = alloca [4 x i64]
  %count = alloca i64
  %list = alloca ptr
  %size = alloca i64
  %key = alloca i64
  %second = getelementptr i64, ptr %room, i64 1
  store i64 %acc, ptr %room
  call void @swab(ptr %room, ptr %second, i64 8)
  %frobbed = call ptr @memfrob(ptr %second, i64 3)
  %swapped = load i64, ptr %frobbed
  store i64 5, ptr %count
  %eleven = mul i64 %i, 11
  store i64 %eleven, ptr %key
  %found = call ptr @lfind(ptr %key, ptr @numbers, ptr %count, i64 8, ptr @compare)
  %none = icmp eq ptr %found, null
  %e = call i32 @argz_create_sep(ptr @words, i32 32, ptr %list, ptr %size)
  %text = load ptr, ptr %list
  store ptr %text, ptr @kept
  %length = load i64, ptr %size
  %first = call i64 @strlen(ptr %text)
  %d = sitofp i64 %acc to double
  %s = fmul double %d, 1.25
  store double %s, ptr @scaled
  %narrow = trunc i64 %i to i32
  %spelled = call ptr @l64a(i64 %acc)
  %w = call i32 (ptr, ...) @printf(ptr @line, i32 %narrow, i64 %swapped, double %s, ptr %spelled, ptr %text)
  %copy = call ptr @malloc(i64 24)
  store i64 %swapped, ptr %copy
  call void @free(ptr %text)
  %again = load i64, ptr %copy
  call void @free(ptr %copy)
  %1 = select i1 %none, i64 %again, i64 %length
  %2 = sext i32 %w to i64
  %3 = add i64 %1, %2
  %4 = add i64 %3, %first
  ret i64 %4
}
define i64 @entry(i64 %n) {
entry:
  %cell = alloca [2 x i64]
  store i64 %n, ptr %cell
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %acc = phi i64 [ %n, %entry ], [ %acc2, %loop ]
  %before = getelementptr i64, ptr %cell, i64 1
  store i64 %acc, ptr %before
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 90, i32 0, i64 %i, i64 %acc, i64 %n, ptr %cell)
  %r = call i64 @spell(i64 %i, i64 %acc)
  %at = getelementptr i64, ptr %cell, i64 1
  %f = call ptr @memfrob(ptr %at, i64 8)
  %x = load i64, ptr %at
  %acc1 = add i64 %r, %x
  %acc2 = and i64 %acc1, 1048575
  %i1 = add i64 %i, 1
  %more = icmp ult i64 %i1, 3
  br i1 %more, label %loop, label %done
done:
  ret i64 %acc2
}
