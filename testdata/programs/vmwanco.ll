target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; A stack of wanco (doc/user/layouts.md): func_3 has called func_4, which has called func_5, which saves the program's state at its entry. Locals are in allocas; the
; callers' operand stacks have neither the arguments nor the results of their calls.
declare i32 @pause()
declare i32 @puts(ptr)
declare void @llvm.experimental.stackmap(i64, i32, ...)
@msg = private constant [6 x i8] c"ready\00"
@work.given = global [3 x i64] [i64 41, i64 4615063718147915776, i64 700]

define void @start_checkpoint(ptr %env) noinline {
  %x = call i32 @puts(ptr @msg)
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}

define i32 @func_5(ptr %env, i32 %n) noinline {
  %l0 = alloca i32
  store i32 %n, ptr %l0
  call void @start_checkpoint(ptr %env)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 25769803775, i32 0, i32 1, i32 0, ptr %l0) ; 5 << 32 | 0xffffffff
  ret i32 0
}

define i32 @func_4(ptr %env, i32 %n, i64 %fuel, double %d) noinline {
  %l0 = alloca i32
  %l1 = alloca i64
  %l2 = alloca float
  %l3 = alloca double
  %f = fptrunc double %d to float
  store i32 %n, ptr %l0
  store i64 %fuel, ptr %l1
  store float %f, ptr %l2
  store double %d, ptr %l3
  %n1 = sub i32 %n, 100
  %fuel1 = sub i64 0, %fuel
  %f1 = fneg float %f
  %d1 = fadd double %d, 1.0
  %r = call i32 @func_5(ptr %env, i32 %n)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 17179869196, i32 0, i32 4, i32 0, ptr %l0, i32 1, ptr %l1, i32 2, ptr %l2, i32 3, ptr %l3, i32 0, i32 %n1, i32 1, i64 %fuel1, i32 2, float %f1, i32 3, double %d1) ; 4 << 32 | 12
  ret i32 %r
}

define i32 @func_3(ptr %env, i32 %n, i64 %fuel, double %d) noinline {
  %r = call i32 @func_4(ptr %env, i32 %n, i64 %fuel, double %d)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 12884901888, i32 0, i32 0) ; 3 << 32: no locals and nothing on the stack
  ret i32 %r
}

define i32 @main() {
  %p0 = getelementptr [3 x i64], ptr @work.given, i64 0, i64 0
  %v0 = load volatile i64, ptr %p0
  %p1 = getelementptr [3 x i64], ptr @work.given, i64 0, i64 1
  %v1 = load volatile i64, ptr %p1
  %p2 = getelementptr [3 x i64], ptr @work.given, i64 0, i64 2
  %v2 = load volatile i64, ptr %p2
  %n = trunc i64 %v0 to i32
  %d = bitcast i64 %v1 to double
  %r = call i32 @func_3(ptr null, i32 %n, i64 %v2, double %d)
  ret i32 0
}
