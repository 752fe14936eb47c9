; What every release reads with opaque pointers (LLVM 14 with -opaque-pointers).
source_filename = "common.ll"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

module asm ".globl dummy_symbol"
module asm "dummy_symbol: # { ( \22"

%struct.pair = type { i32, double }
%"odd name" = type <{ i8, [3 x i16], %struct.pair }>
%list = type { ptr, %list.next }
%list.next = type { i64, ptr }
%opaque = type opaque
%0 = type { i8, i8 }

$any = comdat any
$"odd comdat" = comdat largest

@g = global i32 7, align 4
@h = dso_local local_unnamed_addr constant [4 x i8] c"a\22\00\FF", section ".rodata.x", align 1
@0 = private unnamed_addr constant [2 x i8] c"x\00", align 1
@1 = internal global ptr @h
@"quoted @ name" = internal global %struct.pair { i32 -1, double 2.5 }
@packed = global %"odd name" <{ i8 1, [3 x i16] [i16 1, i16 2, i16 -3], %struct.pair zeroinitializer }>
@vec = global <4 x float> <float 1.0, float -0.0, float 0x3FF8000000000000, float undef>
@ext = external global i64
@weak = extern_weak global i8
@tls = thread_local(initialexec) global i32 0
@tls2 = thread_local global i32 0
@comm = common global [16 x i32] zeroinitializer, align 16
@any = linkonce_odr global i32 3, comdat
@any2 = linkonce_odr global i32 3, comdat($"odd comdat"), align 8
@space = addrspace(3) global i16 -2
@init = externally_initialized global i32 1
@hidden = hidden global i32 1
@prot = weak_odr protected unnamed_addr constant i32 1
@addr = global i64 ptrtoint (ptr getelementptr inbounds (%struct.pair, ptr @"quoted @ name", i64 0, i32 1) to i64)
@diff = global i64 sub (i64 ptrtoint (ptr @h to i64), i64 ptrtoint (ptr @g to i64))
@later = global ptr @defined_later
@blocks = internal constant [2 x ptr] [ptr blockaddress(@indirect, %one), ptr blockaddress(@indirect, %two)]
@nested = global { i32, { i8, [2 x <2 x i1>] } } { i32 1, { i8, [2 x <2 x i1>] } { i8 2, [2 x <2 x i1>] [<2 x i1> <i1 true, i1 false>, <2 x i1> zeroinitializer] } }
@big = global i128 -170141183460469231731687303715884105728
@wide = global i1025 1
@empty = global {} zeroinitializer
@emptya = global [0 x i32] zeroinitializer
@floats = global { half, bfloat, float, double, x86_fp80, fp128 } { half 0xH3C00, bfloat 0xR3F80, float 0x36A0000000000000, double 0x7FF8000000000001, x86_fp80 0xK3FFF8000000000000000, fp128 0xL00000000000000003FFF000000000000 }
@halves = global [4 x half] [half 1.0, half 6.103515625e-05, half 0xH7E01, half -2.5e-01]
@decimals = global [4 x double] [double 1.0e10, double 1., double -1.25E-3, double 4.9406564584124654e-324]
@nans = global [3 x float] [float 0x7FF8000000000000, float 0x7FF4000000000000, float 0xFFF0000000000000]
@llvm.used = appending global [1 x ptr] [ptr @g], section "llvm.metadata"

@alias = alias i32, ptr @g
@alias2 = weak hidden alias i32, getelementptr inbounds ([16 x i32], ptr @comm, i64 0, i64 3)
@ifun = ifunc i32 (i32), ptr @resolver

declare i32 @printf(ptr nocapture noundef readonly, ...) #0
declare extern_weak void @maybe()
declare void @llvm.memcpy.p0.p0.i64(ptr noalias nocapture writeonly, ptr noalias nocapture readonly, i64, i1 immarg)
declare dso_local i32 @__gxx_personality_v0(...)
declare x86_fp80 @ld(x86_fp80)

define internal ptr @resolver() {
  ret ptr @defined_later
}

define dso_local fastcc i32 @defined_later(i32 noundef signext %0) unnamed_addr #1 section ".text.hot" align 32 prefix i32 5 prologue i8 1 {
  %2 = add nsw i32 %0, 1
  br label %3

3:                                                ; preds = %1
  %4 = icmp eq i32 %2, 0
  br i1 %4, label %5, label %6

5:
  ret i32 0

6:
  ret i32 %2
}

define i32 @implicit(i32, i32 %named, i32) {
  %3 = add i32 %0, %1
  br label %next
next:
  %4 = sub i32 %3, %named
  ret i32 %4
}

define void @arith(i64 %a, i64 %b, double %x, double %y, <4 x i32> %v) {
entry:
  %add = add nuw nsw i64 %a, %b
  %sub = sub i64 %a, -9223372036854775808
  %mul = mul nsw i64 %a, %b
  %ud = udiv exact i64 %a, %b
  %sd = sdiv i64 %a, %b
  %ur = urem i64 %a, %b
  %sr = srem i64 %a, %b
  %shl = shl nuw i64 %a, 3
  %lshr = lshr exact i64 %a, 3
  %ashr = ashr i64 %a, 3
  %and = and i64 %a, %b
  %or = or i64 %a, %b
  %xor = xor i64 %a, -1
  %vadd = add <4 x i32> %v, <i32 1, i32 undef, i32 poison, i32 -4>
  %fneg = fneg fast double %x
  %fadd = fadd nnan ninf nsz arcp contract afn reassoc double %x, %y
  %fsub = fsub double %x, 1.0
  %fmul = fmul double %x, 0x400921FB54442D18
  %fdiv = fdiv double %x, %y
  %frem = frem double %x, %y
  %t = trunc i64 %a to i8
  %z = zext i8 %t to i32
  %s = sext i8 %t to i128
  %fi = fptosi double %x to i64
  %fu = fptoui double %x to i32
  %if = sitofp i64 %a to float
  %uf = uitofp i1 true to half
  %ft = fptrunc double %x to float
  %fe = fpext float %ft to fp128
  %bc = bitcast double %x to i64
  %bv = bitcast <4 x i32> %v to <2 x i64>
  %ip = inttoptr i64 %a to ptr
  %pi = ptrtoint ptr %ip to i32
  %as = addrspacecast ptr %ip to ptr addrspace(5)
  %c1 = icmp ult i64 %a, %b
  %c2 = icmp sge <4 x i32> %v, zeroinitializer
  %c3 = fcmp uno double %x, %y
  %c4 = fcmp fast oeq double %x, %y
  %sel = select i1 %c1, i64 %a, i64 %b
  %sel2 = select <4 x i1> %c2, <4 x i32> %v, <4 x i32> zeroinitializer
  %sel3 = select nnan i1 %c3, double %x, double %y
  %fr = freeze i64 %sel
  ret void
}

define i64 @memory(ptr %p, ptr byval(%struct.pair) align 8 %bv, ptr addrspace(3) %q, i64 %n) {
  %z = trunc i64 %n to i32
  %slot = alloca %struct.pair, align 16
  %vla = alloca i8, i64 %n, align 1
  %ina = alloca inalloca i32
  %l = load i64, ptr %p, align 8
  %lv = load volatile i64, ptr %p
  %la = load atomic volatile i64, ptr %p syncscope("singlethread") acquire, align 8
  store i64 %l, ptr %p, align 8
  store volatile i64 %l, ptr %p
  store atomic i64 %l, ptr %p release, align 8
  store i16 1, ptr addrspace(3) %q
  fence syncscope("singlethread") seq_cst
  fence acquire
  %cx = cmpxchg weak volatile ptr %p, i64 0, i64 1 acq_rel monotonic, align 8
  %cp = cmpxchg ptr %p, i32 0, i32 1 seq_cst seq_cst
  %old = extractvalue { i64, i1 } %cx, 0
  %rmw = atomicrmw add ptr %p, i64 %n monotonic
  %rmw2 = atomicrmw volatile umax ptr %p, i64 %n syncscope("agent") seq_cst, align 8
  %rmw3 = atomicrmw fadd ptr %p, double 1.0 seq_cst
  %g1 = getelementptr inbounds %struct.pair, ptr %slot, i64 0, i32 1
  %g2 = getelementptr [4 x { i8, [2 x i32] }], ptr %p, i64 %n, i64 2, i32 1, i32 %z
  %g3 = getelementptr i32, <2 x ptr> <ptr @g, ptr null>, i64 1
  %g4 = getelementptr i32, ptr %p, <2 x i64> <i64 1, i64 2>
  call void @llvm.memcpy.p0.p0.i64(ptr align 8 dereferenceable(16) %slot, ptr nonnull align 4 %bv, i64 16, i1 false)
  %va = va_arg ptr %p, i32
  ret i64 %l
}

define i32 @aggregates({ i32, [2 x i64] } %agg, <4 x i32> %v, <4 x i32> %w, i32 %i) {
  %e = extractvalue { i32, [2 x i64] } %agg, 1, 1
  %ins = insertvalue { i32, [2 x i64] } %agg, i64 %e, 1, 0
  %ins2 = insertvalue { i32, i32 } { i32 1, i32 undef }, i32 %i, 1
  %x = extractelement <4 x i32> %v, i64 2
  %y = insertelement <4 x i32> poison, i32 %x, i32 %i
  %s = shufflevector <4 x i32> %v, <4 x i32> %w, <4 x i32> <i32 0, i32 5, i32 undef, i32 3>
  %s2 = shufflevector <4 x i32> %v, <4 x i32> poison, <2 x i32> zeroinitializer
  %s3 = shufflevector <4 x i32> %y, <4 x i32> undef, <8 x i32> undef
  ret i32 %x
}

define i32 @control(i32 %x, i1 %c) {
entry:
  switch i32 %x, label %"other block" [
    i32 0, label %zero
    i32 -1, label %zero
    i32 2147483647, label %loop
  ]
zero:
  br i1 %c, label %loop, label %"other block"
loop:
  %i = phi i32 [ 0, %entry ], [ 1, %zero ], [ %next, %loop ]
  %f = phi fast float [ 0.0, %entry ], [ 1.0, %zero ], [ %f, %loop ]
  %next = add i32 %i, 1
  %later = call i32 @defined_later(i32 %next)
  %done = icmp sgt i32 %next, %later
  br i1 %done, label %"other block", label %loop
"other block":
  %r = phi i32 [ undef, %entry ], [ 3, %zero ], [ %i, %loop ]
  switch i32 %r, label %dead []
dead:
  unreachable
}

define void @indirect(ptr %p) {
  indirectbr ptr %p, [label %one, label %two]
one:
  ret void
two:
  ret void
}

define void @calls(ptr %fp, i32 %n) personality ptr @__gxx_personality_v0 {
  %r = call i32 (ptr, ...) @printf(ptr @h, i32 %n, double 1.5)
  %r2 = tail call fastcc i32 @defined_later(i32 signext 3) #2
  %r3 = call zeroext i8 %fp(i32 %n)
  call void %fp(ptr byval(%struct.pair) align 8 %fp, ptr sret({ i32 }) %fp)
  notail call void @maybe()
  call cc 11 void %fp()
  call cc99 void %fp()
  call coldcc void %fp() nounwind readnone
  call void asm sideeffect "nop # $0 \22quoted\22", "r,~{dirflag},~{fpsr},~{flags}"(i32 %n) #3
  %a = call { i32, i32 } asm alignstack inteldialect "cpuid", "={ax},={bx}"()
  call void inttoptr (i64 4096 to ptr)(i32 1)
  call void null()
  %b = call i32 @printf(ptr @h) [ "deopt"(i32 1, ptr %fp, double 2.0), "other"() ]
  %inv = invoke i32 @defined_later(i32 5)
          to label %ok unwind label %bad
ok:
  invoke void %fp(i32 %inv) [ "deopt"() ]
          to label %fine unwind label %bad
fine:
  ret void
bad:
  %lp = landingpad { ptr, i32 }
          cleanup
          catch ptr @g
          catch ptr null
          filter [1 x ptr] [ptr @h]
  resume { ptr, i32 } %lp
}

define void @tailcaller(ptr %this, ...) {
  musttail call void (ptr, ...) @tailcaller(ptr %this, ...)
  ret void
}

define weak_odr void @"name with \22 quote and \5C"() comdat($any) gc "statepoint-example" {
  %"a b" = add i32 1, 2
  %"7" = add i32 %"a b", 1
  %1 = add i32 %"7", 2
  %-x.$y_ = add i32 %1, 2
  ret void
}

attributes #0 = { nofree nounwind "frame-pointer"="all" "no-builtins" }
attributes #1 = { noinline optnone uwtable "stack-protector-buffer-size"="8" }
attributes #2 = { nounwind allocsize(0) "statepoint-id"="77" }
attributes #3 = { alignstack=16 }
attributes #4 = { cold }

!llvm.module.flags = !{!0, !1}
!llvm.ident = !{!2}
!named\2Dwith\20escape = !{}

!0 = !{i32 1, !"wchar_size", i32 4}
!1 = !{i32 7, !"brackets } ) \22", i32 2}
!2 = !{!"clang"}
