; Stackmaps behind which the function writes through its pointer, to globals, to a stack object that a callee and intrinsics
; write too, and calls what has no effect (strlen). For every 64th argument it calls puts.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare i64 @strlen(ptr)
declare i32 @puts(ptr)
declare noalias ptr @calloc(i64, i64)
declare void @free(ptr)
@text = constant [24 x i8] c"a stack map is a promise"
@line = constant [10 x i8] c"sixtyfour\00"
@last = global i64 0
@lastbyte = global i8 0
@kept = global [4 x i64] [i64 11, i64 22, i64 33, i64 44]
define void @fill(ptr %p, i64 %n, i64 %seed) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %x = phi i64 [ %seed, %entry ], [ %x1, %loop ]
  %at = getelementptr i64, ptr %p, i64 %i
  store i64 %x, ptr %at
  %y = mul i64 %x, 6364136223846793005
  %x1 = add i64 %y, 1442695040888963407
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  ret void
}
define i64 @rewrite(ptr %heap, i64 %n, ptr %string) noinline {
entry:
  %buffer = alloca [8 x i64], align 16
  call void @fill(ptr %buffer, i64 8, i64 %n)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 31, i32 0, ptr %heap, i64 %n, ptr %string, ptr %buffer)
  store i64 %n, ptr %heap
  store i64 %n, ptr @last
  %b = trunc i64 %n to i8
  store i8 %b, ptr @lastbyte
  %p3 = getelementptr i64, ptr %buffer, i64 3
  call void @fill(ptr %p3, i64 2, i64 7)
  %size = and i64 %n, 31
  %heap1 = getelementptr i8, ptr %heap, i64 9
  call void @llvm.memset.p0.i64(ptr %heap1, i8 %b, i64 %size, i1 false)
  %heap2 = getelementptr i64, ptr %heap, i64 6
  call void @llvm.memcpy.p0.p0.i64(ptr %heap2, ptr %buffer, i64 64, i1 false)
  %length = call i64 @strlen(ptr %string)
  %p5 = getelementptr i64, ptr %buffer, i64 5
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 32, i32 8, ptr %heap, i64 %n, ptr %buffer, i64 %length, ptr %p5, ptr %heap1)
  %last = getelementptr i64, ptr %heap, i64 13
  %v1 = load i64, ptr %last
  %middle = getelementptr i64, ptr %heap, i64 2
  %v2 = load i64, ptr %middle
  %v3 = load i64, ptr %p5
  %v4 = load i64, ptr getelementptr ([4 x i64], ptr @kept, i64 0, i64 2)
  %s1 = xor i64 %v1, %v2
  %s2 = add i64 %s1, %v3
  %s3 = xor i64 %s2, %length
  %s4 = add i64 %s3, %v4
  %s5 = add i64 %s4, %n
  store i64 %s5, ptr %p5
  %k = and i64 %n, 63
  %print = icmp eq i64 %k, 63
  br i1 %print, label %loud, label %done
loud:
  %ignored = call i32 @puts(ptr @line)
  br label %done
done:
  %v5 = load i64, ptr %p5
  store i64 %v5, ptr %heap1, align 1
  ret i64 %v5
}
define i64 @entry(i64 %n) {
  %heap = call ptr @calloc(i64 16, i64 8)
  %string = call ptr @calloc(i64 1, i64 32)
  %length = and i64 %n, 15
  call void @llvm.memcpy.p0.p0.i64(ptr %string, ptr @text, i64 %length, i1 false)
  %r = call i64 @rewrite(ptr %heap, i64 %n, ptr %string)
  %at = getelementptr i64, ptr %heap, i64 1
  %v = load i64, ptr %at
  %w = getelementptr i64, ptr %heap, i64 9
  %x = load i64, ptr %w
  %s = xor i64 %r, %v
  %t = add i64 %s, %x
  call void @free(ptr %heap)
  call void @free(ptr %string)
  ret i64 %t
}
