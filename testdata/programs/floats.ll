; Functions with a site that return what is not one integer: double, float, structures, vectors.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
define double @real(double %a, double %b, i64 %n) noinline {
  %x = fmul double %a, %b
  %y = fsub double %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 41, i32 0, double %x, double %y, i64 %n)
  %d = sitofp i64 %n to double
  %s = fsub double %x, %y
  %r = fdiv double %s, %d
  ret double %r
}
define float @single(float %a, float %b) noinline {
  %x = fmul float %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 42, i32 0, float %a, float %x)
  %r = fsub float %x, %a
  ret float %r
}
define { i64, double } @both(i64 %n, double %d) noinline {
  %m = mul i64 %n, 11
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 43, i32 0, i64 %m, double %d)
  %e = fadd double %d, 0.125
  %r1 = insertvalue { i64, double } undef, i64 %m, 0
  %r = insertvalue { i64, double } %r1, double %e, 1
  ret { i64, double } %r
}
define { i64, i32, i8 } @three(i64 %n) noinline {
  %m = mul i64 %n, 13
  %w = trunc i64 %m to i32
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 44, i32 0, i64 %n, i64 %m, i32 %w)
  %x = xor i32 %w, 255
  %b = trunc i64 %n to i8
  %r1 = insertvalue { i64, i32, i8 } undef, i64 %m, 0
  %r2 = insertvalue { i64, i32, i8 } %r1, i32 %x, 1
  %r = insertvalue { i64, i32, i8 } %r2, i8 %b, 2
  ret { i64, i32, i8 } %r
}
define <4 x float> @quad(<4 x float> %v, float %k) noinline {
  %w = fmul <4 x float> %v, <float 1.0, float 2.0, float 4.0, float 8.0>
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 45, i32 0, <4 x float> %w, float %k)
  %r = insertelement <4 x float> %w, float %k, i32 2
  ret <4 x float> %r
}
define <2 x i64> @pair(<2 x i64> %v, i64 %n) noinline {
  %w = add <2 x i64> %v, <i64 5, i64 9>
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 46, i32 0, <2 x i64> %w, i64 %n)
  %e = extractelement <2 x i64> %w, i32 0
  %m = xor i64 %e, %n
  %r = insertelement <2 x i64> %w, i64 %m, i32 1
  ret <2 x i64> %r
}
define i64 @entry(i64 %n) {
  %m = or i64 %n, 1
  %d = sitofp i64 %n to double
  %e = fmul double %d, 0.3
  %f = fptrunc double %d to float
  %r1 = call double @real(double %d, double %e, i64 %m)
  %b1 = bitcast double %r1 to i64
  %r2 = call float @single(float %f, float 1.5)
  %b2 = bitcast float %r2 to i32
  %w2 = zext i32 %b2 to i64
  %r3 = call { i64, double } @both(i64 %n, double %e)
  %a3 = extractvalue { i64, double } %r3, 0
  %d3 = extractvalue { i64, double } %r3, 1
  %b3 = bitcast double %d3 to i64
  %r4 = call { i64, i32, i8 } @three(i64 %n)
  %a4 = extractvalue { i64, i32, i8 } %r4, 0
  %c4 = extractvalue { i64, i32, i8 } %r4, 1
  %w4 = zext i32 %c4 to i64
  %e4 = extractvalue { i64, i32, i8 } %r4, 2
  %x4 = sext i8 %e4 to i64
  %v = insertelement <4 x float> <float 0.5, float 0.5, float 0.5, float 0.5>, float %f, i32 1
  %r5 = call <4 x float> @quad(<4 x float> %v, float %r2)
  %b5 = bitcast <4 x float> %r5 to <2 x i64>
  %r6 = call <2 x i64> @pair(<2 x i64> %b5, i64 %n)
  %x6 = extractelement <2 x i64> %r6, i32 0
  %y6 = extractelement <2 x i64> %r6, i32 1
  %s1 = add i64 %b1, %w2
  %s2 = xor i64 %s1, %a3
  %s3 = add i64 %s2, %b3
  %s4 = xor i64 %s3, %a4
  %s5 = add i64 %s4, %w4
  %s6 = xor i64 %s5, %x4
  %s7 = add i64 %s6, %x6
  %s8 = xor i64 %s7, %y6
  ret i64 %s8
}
