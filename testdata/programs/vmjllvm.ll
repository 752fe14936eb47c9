target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; A stack of JLLVM (doc/user/layouts.md): compiled Main.run, where no handler covers the call and nothing but the position is recorded, has called compiled Main.sum, in a
; handler, with floats that are passed as integers, a reference and a local that was never stored; that has called a method which is interpreted.
declare i32 @pause()
declare i32 @puts(i8*)
@msg = private constant [6 x i8] c"ready\00"
@name = private constant [4 x i8] c"step"
@descriptor = private constant [4 x i8] c"(I)V"
%method = type { i8*, i64, i8*, i16, i16, i16, i8* }
@step = global %method { i8* getelementptr ([4 x i8], [4 x i8]* @name, i64 0, i64 0), i64 4, i8* getelementptr ([4 x i8], [4 x i8]* @descriptor, i64 0, i64 0), i16 4, i16 1, i16 3, i8* null }
@work.given = global [4 x i64] [i64 41, i64 4615063718147915776, i64 700, i64 20480]
@work.method = global %method* @step

define i64 @jllvm_interpreter(%method* %m, i16* %at, i16* %top, i64* %stack, i64* %stackmask, i64* %locals, i64* %localsmask) noinline {
  %x = call i32 @puts(i8* getelementptr ([6 x i8], [6 x i8]* @msg, i64 0, i64 0))
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}

; The state of the interpreter lies in memory; the deopt operands say where.
define i64 @interpreted(i64 %o) noinline {
  %at = alloca i16
  %top = alloca i16
  %stack = alloca i64, i32 4
  %stackmask = alloca i64
  %locals = alloca i64, i32 2
  %localsmask = alloca i64
  store i16 35, i16* %at
  store i16 3, i16* %top
  store i64 5, i64* %stack
  %s1 = getelementptr i64, i64* %stack, i64 1
  store i64 %o, i64* %s1
  %s2 = getelementptr i64, i64* %stack, i64 2
  store i64 -1, i64* %s2
  store i64 2, i64* %stackmask
  store i64 %o, i64* %locals
  store i64 1, i64* %localsmask
  %m = load volatile %method*, %method** @work.method
  %r = call i64 @jllvm_interpreter(%method* %m, i16* %at, i16* %top, i64* %stack, i64* %stackmask, i64* %locals, i64* %localsmask) [ "deopt"(
    %method* %m, i16* %at, i16* %top, i64* %stack, i64* %stackmask, i64* %locals, i64* %localsmask) ]
  ret i64 %r
}

define i64 @Main.sum(i32 %n, double %d, i64 %fuel, i64 addrspace(1)* %o) noinline gc "statepoint-example" {
  %dbits = bitcast double %d to i64
  %f = fptrunc double %d to float
  %fbits = bitcast float %f to i32
  %plain = addrspacecast i64 addrspace(1)* %o to i64*
  %address = ptrtoint i64* %plain to i64
  %r = call i64 @interpreted(i64 %address) [ "deopt"(
    i16 17, i16 6, ; at 17, six locals
    i32 %n,
    i64 %fuel,
    i8 undef, ; never stored
    i64 %dbits, ; a double
    i64 addrspace(1)* %o,
    i32 %fbits, ; a float
    i64 16) ] ; local 4 is a reference
  ret i64 %r
}

define i64 @Main.run(i32 %n, double %d, i64 %fuel, i64 addrspace(1)* %o) noinline gc "statepoint-example" {
  %r = call i64 @Main.sum(i32 %n, double %d, i64 %fuel, i64 addrspace(1)* %o) [ "deopt"(i16 4, i16 0) ]
  ret i64 %r
}

define i32 @main() {
  %p0 = getelementptr [4 x i64], [4 x i64]* @work.given, i64 0, i64 0
  %v0 = load volatile i64, i64* %p0
  %p1 = getelementptr [4 x i64], [4 x i64]* @work.given, i64 0, i64 1
  %v1 = load volatile i64, i64* %p1
  %p2 = getelementptr [4 x i64], [4 x i64]* @work.given, i64 0, i64 2
  %v2 = load volatile i64, i64* %p2
  %p3 = getelementptr [4 x i64], [4 x i64]* @work.given, i64 0, i64 3
  %v3 = load volatile i64, i64* %p3
  %n = trunc i64 %v0 to i32
  %d = bitcast i64 %v1 to double
  %o = inttoptr i64 %v3 to i64 addrspace(1)*
  %r = call i64 @Main.run(i32 %n, double %d, i64 %v2, i64 addrspace(1)* %o)
  ret i32 0
}
