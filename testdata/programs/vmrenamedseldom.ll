target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; A method that is renamed after every 7th of its exits. The method is a constant of the record: the address of a page that main maps. The page holds a
; pointer to the name. Right after the last exit the process ends. The operands of an exit are the method, the position and a local.
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @_exit(i32)
declare i8* @mmap(i8*, i64, i32, i32, i32, i64)
@even = global [5 x i8] c"even\00"
@odd = global [4 x i8] c"odd\00"

define void @compiled(i64 %n) noinline {
entry:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i64 23456248795136, i32 7, i64 %n)
  ret void
}

define i32 @main() {
entry:
  %page = call i8* @mmap(i8* inttoptr (i64 23456248795136 to i8*), i64 4096, i32 3, i32 50, i32 -1, i64 0)
  %slot = bitcast i8* %page to i8**
  store volatile i8* getelementptr ([5 x i8], [5 x i8]* @even, i64 0, i64 0), i8** %slot
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  call void @compiled(i64 %n)
  %next = add i64 %n, 1
  %group = udiv i64 %next, 7
  %bit = and i64 %group, 1
  %is.odd = icmp eq i64 %bit, 1
  %name = select i1 %is.odd, i8* getelementptr ([4 x i8], [4 x i8]* @odd, i64 0, i64 0), i8* getelementptr ([5 x i8], [5 x i8]* @even, i64 0, i64 0)
  store volatile i8* %name, i8** %slot
  %more = icmp ult i64 %next, 200
  br i1 %more, label %loop, label %done
done:
  call void @_exit(i32 0)
  ret i32 0
}
