target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; An exit of a virtual machine in the convention `simple`: Foo.bar @ 17, which was inlined into Foo.main @ 9, with boxed values, an operand stack, a
; dead local, a lock that was left out, and an object that exists only as its fields, one of which is the object itself.
declare i32 @pause()
declare i32 @puts(i8*)
declare i64 @llvm.experimental.deoptimize.i64(...)
@msg = private constant [6 x i8] c"ready\00"
@name.main = private constant [9 x i8] c"Foo.main\00"
@name.bar = private constant [8 x i8] c"Foo.bar\00"
@name.Point = private constant [6 x i8] c"Point\00"
@heap = global [4 x i64] [i64 1, i64 2, i64 3, i64 4]
@work.given = global [3 x i64] [i64 41, i64 4615063718147915776, i64 700]

define i64 @__llvm_deoptimize() noinline {
  %x = call i32 @puts(i8* getelementptr ([6 x i8], [6 x i8]* @msg, i64 0, i64 0))
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}

; %n + 1 and its like keep the values from being constants. boxed is 3.5: its bits and 1 << 48.
define i64 @compiled(i32 %n, double %d, i64 %fuel) noinline gc "statepoint-example" {
entry:
  %bits = bitcast double %d to i64
  %boxed = add i64 %bits, 281474976710656
  %wide = zext i32 %n to i64
  %small = or i64 %wide, -281474976710656
  %fits = icmp slt i32 %n, 40
  br i1 %fits, label %done, label %exit
exit:
  %r = call i64 (...) @llvm.experimental.deoptimize.i64(i32 1) [ "deopt"(i64 4294967298,
    [9 x i8]* @name.main,
    i32 9,
    i64 8589934592,
    i32 %n,
    i64 8657043457,
    i64 0,
    i64 4294967296,
    [8 x i8]* @name.bar,
    i32 17,
    i64 8606711808,
    i64 %boxed,
    i64 8640266241,
    i32 4,
    i64 8589934594,
    double %d,
    i64 12918456320,
    [4 x i64]* @heap,
    i64 12901679105,
    i64 %small,
    i64 17230200833,
    i32 4,
    i64 30064771073,
    i64 %fuel,
    i64 21474836484,
    [6 x i8]* @name.Point,
    i32 2,
    i64 25786581000,
    i64 %small,
    i64 25820135440,
    i32 4) ]
  ret i64 %r
done:
  ret i64 %boxed
}

define i32 @main() {
  %n64 = load volatile i64, i64* getelementptr ([3 x i64], [3 x i64]* @work.given, i64 0, i64 0)
  %n = trunc i64 %n64 to i32
  %dp = getelementptr [3 x i64], [3 x i64]* @work.given, i64 0, i64 1
  %dp2 = bitcast i64* %dp to double*
  %d = load volatile double, double* %dp2
  %fp = getelementptr [3 x i64], [3 x i64]* @work.given, i64 0, i64 2
  %fuel = load volatile i64, i64* %fp
  %r = call i64 @compiled(i32 %n, double %d, i64 %fuel)
  ret i32 0
}
