target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; An exit in Ark's encoding (doc/user/layouts.md): a check of a function that was inlined two deep has failed; its caller stands in the call. All values are boxed.
declare i32 @pause()
declare i32 @puts(i8*)
declare i64 addrspace(1)* @llvm.experimental.deoptimize.p1i64(...)
@msg = private constant [6 x i8] c"ready\00"
@work.given = global [4 x i64] [i64 41, i64 4615063718147915776, i64 20480, i64 -2251799813685248]

define i64 addrspace(1)* @__llvm_deoptimize(i64 %glue, i32 %type, i64 addrspace(1)* %acc) noinline {
  %x = call i32 @puts(i8* getelementptr ([6 x i8], [6 x i8]* @msg, i64 0, i64 0))
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}

; An integer is extended with its sign and has the upper 16 bits set; a double is its bits and 1 << 48.
define i64 addrspace(1)* @optimized(i64 %glue, i32 %n, double %d, i64 addrspace(1)* %o, i64 %base, double %notanumber) noinline gc "statepoint-example" {
entry:
  %wide = sext i32 %n to i64
  %smallbits = or i64 %wide, -281474976710656
  %small = inttoptr i64 %smallbits to i64 addrspace(1)*
  %less = sub i32 %n, 50
  %lesswide = sext i32 %less to i64
  %negbits = or i64 %lesswide, -281474976710656
  %neg = inttoptr i64 %negbits to i64 addrspace(1)*
  %dbits = bitcast double %d to i64
  %halfbits = add i64 %dbits, 281474976710656
  %half = inttoptr i64 %halfbits to i64 addrspace(1)*
  %nanraw = bitcast double %notanumber to i64
  %nanbits = add i64 %nanraw, 281474976710656
  %nan = inttoptr i64 %nanbits to i64 addrspace(1)*
  %fn0bits = add i64 %base, 128
  %fn0 = inttoptr i64 %fn0bits to i64 addrspace(1)*
  %fn1bits = add i64 %base, 256
  %fn1 = inttoptr i64 %fn1bits to i64 addrspace(1)*
  %fn2bits = add i64 %base, 384
  %fn2 = inttoptr i64 %fn2bits to i64 addrspace(1)*
  %fits = icmp slt i32 %n, 40
  br i1 %fits, label %done, label %exit
exit:
  %r = call i64 addrspace(1)* (...) @llvm.experimental.deoptimize.p1i64(i64 %glue, i32 3, i64 addrspace(1)* %o) [ "deopt"(
    i32 -1, i32 2, ; inlined two deep: keys are shifted by 2
    i32 2, i64 addrspace(1)* %small, ; depth 2, the innermost; registers 1 and 2 are optimized out
    i32 14, i64 addrspace(1)* %half,
    i32 -18, i64 addrspace(1)* %o, ; env
    i32 -14, i64 addrspace(1)* %neg, ; acc
    i32 -10, i32 35, ; pc
    i32 -22, i64 addrspace(1)* %fn2, ; function
    i32 -26, i64 addrspace(1)* inttoptr (i64 2 to i64 addrspace(1)*), ; new.target
    i32 -30, i64 addrspace(1)* %o, ; this
    i32 -34, i64 addrspace(1)* inttoptr (i64 -281474976710655 to i64 addrspace(1)*), ; argc
    i32 5, i64 addrspace(1)* inttoptr (i64 7 to i64 addrspace(1)*), ; depth 1: true, null, a hole
    i32 9, i64 addrspace(1)* inttoptr (i64 3 to i64 addrspace(1)*),
    i32 13, i64 addrspace(1)* inttoptr (i64 5 to i64 addrspace(1)*),
    i32 -9, i32 17, ; pc
    i32 -21, i64 addrspace(1)* %fn1, ; function
    i32 -25, i64 addrspace(1)* inttoptr (i64 2 to i64 addrspace(1)*), ; new.target
    i32 -29, i64 addrspace(1)* inttoptr (i64 2 to i64 addrspace(1)*), ; this
    i32 -33, i64 addrspace(1)* inttoptr (i64 -281474976710656 to i64 addrspace(1)*), ; argc
    i32 0, i64 addrspace(1)* %nan, ; depth 0
    i32 4, i64 addrspace(1)* inttoptr (i64 -9 to i64 addrspace(1)*),
    i32 -16, i64 addrspace(1)* %o, ; env
    i32 -8, i32 4, ; pc
    i32 -20, i64 addrspace(1)* %fn0, ; function
    i32 -24, i64 addrspace(1)* inttoptr (i64 2 to i64 addrspace(1)*), ; new.target
    i32 -28, i64 addrspace(1)* %o, ; this
    i32 -32, i64 addrspace(1)* inttoptr (i64 -281474976710654 to i64 addrspace(1)*) ; argc
  ) ]
  ret i64 addrspace(1)* %r
done:
  ret i64 addrspace(1)* %small
}

define i64 addrspace(1)* @caller(i64 %glue, i32 %n, double %d, i64 addrspace(1)* %o, i64 %base, double %notanumber) noinline gc "statepoint-example" {
  %wide = sext i32 %n to i64
  %smallbits = or i64 %wide, -281474976710656
  %small = inttoptr i64 %smallbits to i64 addrspace(1)*
  %dbits = bitcast double %d to i64
  %halfbits = add i64 %dbits, 281474976710656
  %half = inttoptr i64 %halfbits to i64 addrspace(1)*
  %fn0bits = add i64 %base, 512
  %fn0 = inttoptr i64 %fn0bits to i64 addrspace(1)*
  %r = call i64 addrspace(1)* @optimized(i64 %glue, i32 %n, double %d, i64 addrspace(1)* %o, i64 %base, double %notanumber) [ "deopt"(
    i32 -1, i32 0, ; nothing is inlined: keys are not shifted
    i32 0, i64 addrspace(1)* %small,
    i32 1, i64 addrspace(1)* %half,
    i32 -2, i32 9, ; pc
    i32 -5, i64 addrspace(1)* %fn0, ; function
    i32 -6, i64 addrspace(1)* inttoptr (i64 2 to i64 addrspace(1)*), ; new.target
    i32 -7, i64 addrspace(1)* inttoptr (i64 2 to i64 addrspace(1)*), ; this
    i32 -8, i64 addrspace(1)* inttoptr (i64 -281474976710654 to i64 addrspace(1)*) ; argc
  ) ]
  ret i64 addrspace(1)* %r
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
  %o = inttoptr i64 %v2 to i64 addrspace(1)*
  %notanumber = bitcast i64 %v3 to double
  %r = call i64 addrspace(1)* @caller(i64 1, i32 %n, double %d, i64 addrspace(1)* %o, i64 %v2, double %notanumber)
  ret i32 0
}
