; Operations whose results depend on the floating-point environment. The functions after the line "; x87" are for x86-64 only.
declare double @llvm.sqrt.f64(double)
declare float @llvm.sqrt.f32(float)
declare double @llvm.fma.f64(double, double, double)
declare double @llvm.fmuladd.f64(double, double, double)
declare double @llvm.minnum.f64(double, double)
declare double @llvm.maxnum.f64(double, double)
declare double @llvm.rint.f64(double)
declare i64 @llvm.lrint.i64.f64(double)
declare i32 @llvm.get.rounding()
declare double @llvm.experimental.constrained.fadd.f64(double, double, metadata, metadata)

define i64 @add64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = fadd double %x, %y
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @sub64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = fsub double %x, %y
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @mul64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = fmul double %x, %y
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @div64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = fdiv double %x, %y
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @sqrt64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = call double @llvm.sqrt.f64(double %x)
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @fma64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = call double @llvm.fma.f64(double %x, double %y, double %z)
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @muladd64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %m = fmul double %x, %y
  %r = fadd double %m, %z
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @less64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %t = fcmp olt double %x, %y
  %w = zext i1 %t to i64
  ret i64 %w
}
define i64 @equal64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %t = fcmp oeq double %x, %y
  %w = zext i1 %t to i64
  ret i64 %w
}
define i64 @min64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = call double @llvm.minnum.f64(double %x, double %y)
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @max64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = call double @llvm.maxnum.f64(double %x, double %y)
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @rint64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = call double @llvm.rint.f64(double %x)
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @trunc32(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %f = fptrunc double %x to float
  %i = bitcast float %f to i32
  %w = zext i32 %i to i64
  ret i64 %w
}
define i64 @ext64(i64 %a, i64 %b, i64 %c) {
  %l = trunc i64 %a to i32
  %x = bitcast i32 %l to float
  %r = fpext float %x to double
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @sint64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = sitofp i64 %a to double
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @uint64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = uitofp i64 %a to double
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @toint(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %t = fptosi double %x to i32
  %w = sext i32 %t to i64
  ret i64 %w
}
define i64 @lrint64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %w = call i64 @llvm.lrint.i64.f64(double %x)
  ret i64 %w
}
define i64 @vec64(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %v = insertelement <2 x double> zeroinitializer, double %x, i32 0
  %u = insertelement <2 x double> %v, double %y, i32 1
  %m = fmul <2 x double> %u, %u
  %e = extractelement <2 x double> %m, i32 1
  %w = bitcast double %e to i64
  ret i64 %w
}
define i64 @add32(i64 %a, i64 %b, i64 %c) {
  %la = trunc i64 %a to i32
  %lb = trunc i64 %b to i32
  %x = bitcast i32 %la to float
  %y = bitcast i32 %lb to float
  %r = fadd float %x, %y
  %i = bitcast float %r to i32
  %w = zext i32 %i to i64
  ret i64 %w
}
define i64 @mul32(i64 %a, i64 %b, i64 %c) {
  %la = trunc i64 %a to i32
  %lb = trunc i64 %b to i32
  %x = bitcast i32 %la to float
  %y = bitcast i32 %lb to float
  %r = fmul float %x, %y
  %i = bitcast float %r to i32
  %w = zext i32 %i to i64
  ret i64 %w
}
define i64 @div32(i64 %a, i64 %b, i64 %c) {
  %la = trunc i64 %a to i32
  %lb = trunc i64 %b to i32
  %x = bitcast i32 %la to float
  %y = bitcast i32 %lb to float
  %r = fdiv float %x, %y
  %i = bitcast float %r to i32
  %w = zext i32 %i to i64
  ret i64 %w
}
define i64 @sqrt32(i64 %a, i64 %b, i64 %c) {
  %la = trunc i64 %a to i32
  %lb = trunc i64 %b to i32
  %x = bitcast i32 %la to float
  %y = bitcast i32 %lb to float
  %r = call float @llvm.sqrt.f32(float %x)
  %i = bitcast float %r to i32
  %w = zext i32 %i to i64
  ret i64 %w
}
define i64 @sint32(i64 %a, i64 %b, i64 %c) {
  %la = trunc i64 %a to i32
  %lb = trunc i64 %b to i32
  %x = bitcast i32 %la to float
  %y = bitcast i32 %lb to float
  %r = sitofp i64 %a to float
  %i = bitcast float %r to i32
  %w = zext i32 %i to i64
  ret i64 %w
}
define i64 @dyn64(i64 %a, i64 %b, i64 %c) strictfp {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %z = bitcast i64 %c to double
  %r = call double @llvm.experimental.constrained.fadd.f64(double %x, double %y, metadata !"round.dynamic", metadata !"fpexcept.ignore") strictfp
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @get(i64 %a, i64 %b, i64 %c) {
  %x = bitcast i64 %a to double
  %y = bitcast i64 %b to double
  %t = call i32 @llvm.get.rounding()
  %w = zext i32 %t to i64
  ret i64 %w
}
; x87
declare x86_fp80 @llvm.sqrt.f80(x86_fp80)
define i64 @xadd(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %r = fadd x86_fp80 %x, %y
  %q = bitcast x86_fp80 %r to i80
  %w = trunc i80 %q to i64
  ret i64 %w
}
define i64 @xsub(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %r = fsub x86_fp80 %x, %y
  %q = bitcast x86_fp80 %r to i80
  %w = trunc i80 %q to i64
  ret i64 %w
}
define i64 @xmul(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %r = fmul x86_fp80 %x, %y
  %q = bitcast x86_fp80 %r to i80
  %w = trunc i80 %q to i64
  ret i64 %w
}
define i64 @xdiv(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %r = fdiv x86_fp80 %x, %y
  %q = bitcast x86_fp80 %r to i80
  %w = trunc i80 %q to i64
  ret i64 %w
}
define i64 @xsqrt(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %r = call x86_fp80 @llvm.sqrt.f80(x86_fp80 %x)
  %q = bitcast x86_fp80 %r to i80
  %w = trunc i80 %q to i64
  ret i64 %w
}
define i64 @xexp(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %t = fmul x86_fp80 %x, %x
  %u = fmul x86_fp80 %t, %t
  %v = fmul x86_fp80 %u, %u
  %v2 = fmul x86_fp80 %v, %v
  %r = fmul x86_fp80 %v2, %v2
  %q = bitcast x86_fp80 %r to i80
  %s = lshr i80 %q, 64
  %w = trunc i80 %s to i64
  ret i64 %w
}
define i64 @xtrunc(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q to x86_fp80
  %s = fdiv x86_fp80 %x, %y
  %r = fptrunc x86_fp80 %s to double
  %i = bitcast double %r to i64
  ret i64 %i
}
define i64 @xuint(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %r = uitofp i64 %a to x86_fp80
  %q = bitcast x86_fp80 %r to i80
  %w = trunc i80 %q to i64
  ret i64 %w
}
define i64 @xsmall(i64 %a, i64 %b, i64 %c) {
  %p = bitcast i64 %a to double
  %q0 = bitcast i64 %b to double
  %x = fpext double %p to x86_fp80
  %y = fpext double %q0 to x86_fp80
  %t = fmul x86_fp80 %x, %x
  %u = fmul x86_fp80 %t, %t
  %v = fmul x86_fp80 %u, %u
  %v2 = fmul x86_fp80 %v, %v
  %r = fmul x86_fp80 %v2, %v2
  %q = bitcast x86_fp80 %r to i80
  %w = trunc i80 %q to i64
  ret i64 %w
}
