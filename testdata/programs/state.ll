; Statepoints with deopt values of many types, all of them used after the call: spilled, constant, a stack object, a gc pointer
; and one derived from it. What follows writes to the heap, to globals and to the stack.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128-ni:1"
target triple = "x86_64-pc-linux-gnu"
declare noalias i8* @calloc(i64, i64)
declare void @free(i8*)
@polls = global i64 0
@last = global i64 0
@lastreal = global double 0.0
define void @poll() noinline {
  %old = atomicrmw add i64* @polls, i64 1 monotonic
  ret void
}
define i64 @next(i64 %x) noinline {
  %s = mul i64 %x, %x
  %r = add i64 %s, 1
  ret i64 %r
}
define i64 @mixed(i64* %heap, i64 addrspace(1)* %object, i64 %n, double %d, i8 %small) noinline gc "statepoint-example" {
entry:
  %slot = alloca i64
  %derived = getelementptr i64, i64 addrspace(1)* %object, i64 2
  %odd = trunc i64 %n to i1
  %b = add i8 %small, 3
  %h = trunc i64 %n to i16
  %n32 = trunc i64 %n to i32
  %w = mul i32 %n32, 1000003
  %x = mul i64 %n, 3
  store i64 %x, i64* %slot
  %single = fptrunc double %d to float
  %f = fmul float %single, 0.75
  %e = fadd double %d, 1.5
  %v0 = insertelement <4 x i32> <i32 1, i32 2, i32 3, i32 4>, i32 %w, i32 1
  %v = add <4 x i32> %v0, <i32 10, i32 20, i32 30, i32 40>
  %u0 = insertelement <2 x double> <double 0.5, double 0.25>, double %d, i32 0
  %u = fadd <2 x double> %u0, <double 2.0, double 4.0>
  call void @poll() "statepoint-id"="51" [ "deopt"(i32 1, i1 %odd, i8 %b, i16 %h, i32 %w, i64 %x, float %f, double %e, <4 x i32> %v, <2 x double> %u, i64* %heap, i64* %slot, i64 addrspace(1)* %object, i64 addrspace(1)* %derived, i64 %n, i64 -9, i64 81985529216486895, i64 1311768467463790320, i64* null, i1 true) ]
  %odd64 = zext i1 %odd to i64
  %b64 = sext i8 %b to i64
  %h64 = zext i16 %h to i64
  %w64 = sext i32 %w to i64
  %fd = fpext float %f to double
  %real = fadd double %fd, %e
  %u1 = extractelement <2 x double> %u, i32 0
  %u2 = extractelement <2 x double> %u, i32 1
  %us = fadd double %u1, %u2
  %reals = fadd double %real, %us
  %real64 = fptosi double %reals to i64
  %v1 = extractelement <4 x i32> %v, i32 1
  %v3 = extractelement <4 x i32> %v, i32 3
  %vs = xor i32 %v1, %v3
  %v64 = sext i32 %vs to i64
  %s1 = add i64 %odd64, %b64
  %s2 = xor i64 %s1, %h64
  %s3 = add i64 %s2, %w64
  %s4 = xor i64 %s3, %real64
  %s5 = add i64 %s4, %v64
  %s6 = xor i64 %s5, %x
  store i64 %s6, i64* %heap
  store i64 %s1, i64 addrspace(1)* %derived
  store double %reals, double* @lastreal
  %y = call i64 @next(i64 %s6) "statepoint-id"="52" [ "deopt"(i64 %n, i64 %s6, i64* %heap, i64* %slot, i64 addrspace(1)* %object) ]
  %first = load i64, i64* %slot
  %o2 = getelementptr i64, i64 addrspace(1)* %object, i64 2
  %second = load i64, i64 addrspace(1)* %o2
  %third = load i64, i64* %heap
  %t1 = add i64 %y, %first
  %t2 = xor i64 %t1, %second
  %t3 = add i64 %t2, %third
  store i64 %t3, i64* @last
  store i64 %t3, i64 addrspace(1)* %object
  store i64 %t3, i64* %slot
  %again = load i64, i64* %slot
  %t4 = mul i64 %again, %n
  ret i64 %t4
}
define double @real(i64* %heap, double %a, float %b) noinline gc "statepoint-example" {
entry:
  %c = fmul double %a, 1.25
  call void @poll() "statepoint-id"="53" [ "deopt"(double %a, float %b, double %c, i64* %heap, float 1.5) ]
  %bd = fpext float %b to double
  %s = fadd double %c, %bd
  %t = fsub double %s, %a
  %h = load i64, i64* %heap
  %hd = sitofp i64 %h to double
  %u = fadd double %t, %hd
  ret double %u
}
define i64 @entry(i64 %n) {
  %m = call i8* @calloc(i64 8, i64 8)
  %heap = bitcast i8* %m to i64*
  %behind = getelementptr i64, i64* %heap, i64 4
  %object = addrspacecast i64* %behind to i64 addrspace(1)*
  %d = sitofp i64 %n to double
  %h = fmul double %d, 0.5
  %small = trunc i64 %n to i8
  %r = call i64 @mixed(i64* %heap, i64 addrspace(1)* %object, i64 %n, double %h, i8 %small)
  store i64 %n, i64* %heap
  %f = fptrunc double %d to float
  %q = call double @real(i64* %heap, double %h, float %f)
  %q1 = bitcast double %q to i64
  %s = xor i64 %r, %q1
  %first = load i64, i64* %behind
  %t = add i64 %s, %first
  call void @free(i8* %m)
  ret i64 %t
}
