target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; A method that is renamed after each of its exits: @method holds a pointer to its name. Right after the last exit the process ends. The operands of
; an exit are the method, the position and a local.
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @_exit(i32)
@even = private constant [5 x i8] c"even\00"
@odd = private constant [4 x i8] c"odd\00"
@method = global [2 x i8*] [i8* getelementptr ([5 x i8], [5 x i8]* @even, i64 0, i64 0), i8* null]

define void @compiled(i8** %method, i64 %n) noinline {
entry:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 4, i32 0, i8** %method, i32 7, i64 %n)
  ret void
}

define i32 @main() {
entry:
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  %slot = getelementptr [2 x i8*], [2 x i8*]* @method, i64 0, i64 0
  call void @compiled(i8** %slot, i64 %n)
  %next = add i64 %n, 1
  %bit = and i64 %next, 1
  %is.odd = icmp eq i64 %bit, 1
  %name = select i1 %is.odd, i8* getelementptr ([4 x i8], [4 x i8]* @odd, i64 0, i64 0), i8* getelementptr ([5 x i8], [5 x i8]* @even, i64 0, i64 0)
  store volatile i8* %name, i8** %slot
  %more = icmp ult i64 %next, 200
  br i1 %more, label %loop, label %done
done:
  call void @_exit(i32 0)
  ret i32 0
}
