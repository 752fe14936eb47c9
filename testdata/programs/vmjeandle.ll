target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
; An exit in Jeandle's encoding (doc/user/layouts.md): Main.run @ 9 with two methods inlined, wide values, dead ones, two objects that point at each other, an array,
; a lock and one that was eliminated; its caller Main.start stands in the call.
declare i32 @pause()
declare i32 @puts(i8*)
declare i64 @llvm.experimental.deoptimize.i64(...)
@msg = private constant [6 x i8] c"ready\00"
@work.given = global [5 x i64] [i64 41, i64 4615063718147915776, i64 700, i64 20480, i64 -3]

define i64 @__llvm_deoptimize(i32 %why) noinline {
  %x = call i32 @puts(i8* getelementptr ([6 x i8], [6 x i8]* @msg, i64 0, i64 0))
  br label %l
l:
  %r = call i32 @pause()
  br label %l
}

define i64 @Main.run(i32 %n, double %d, i64 %fuel, i64 addrspace(1)* %o, i8 %c, i8 addrspace(2)* %narrow) noinline gc "statepoint-example" {
entry:
  %lock = alloca i64
  %lock2 = alloca i64
  %pc = alloca i64
  %f = fptrunc double %d to float
  %fits = icmp slt i32 %n, 40
  br i1 %fits, label %done, label %exit
exit:
  %r = call i64 (...) @llvm.experimental.deoptimize.i64(i32 -34) [ "deopt"(
    i64 0, i32 9, i32 9, ; Main.run @ 9, whose method the record does not name
    i64 262156, i64 139637976731648, i32 3, ; object 0 has three fields
    i64 51539607562, i32 %n,
    i64 68720001036, i32 1, ; object 1
    i64 103079215115, i64 %fuel,
    i64 4295229452, i64 139637976735744, i32 1, ; object 1
    i64 68720001036, i32 0, ; points back
    i64 8590196749, i64 139637976739840, i32 2, ; object 2 is an array
    i64 68719476743, double %d,
    i64 103079215111, double 0.5,
    i64 11, i64 %fuel, ; locals 0 and 1
    i64 8589934599, double %d, ; locals 2 and 3
    i64 17179869283, i32 0, ; a wide value that is dead
    i64 21474836579, i32 0,
    i64 4295491596, i32 1, ; local 6 is object 1
    i64 30064771082, i8 %c,
    i64 65546, i32 7,
    i64 589836, i32 0, ; stack 1 is object 0
    i64 8590000139, i64 -5,
    i64 196620, i64 addrspace(1)* %o, i64* %lock, ; a lock
    i64 4295163916, i32 1, i64* %lock2, ; a lock of object 1, eliminated
    i64 327695, i64* %pc, ; the original pc
    i64 393233, i64 139637976743936, ; inlined
    i64 0, i32 17, i32 17, ; at 17
    i64 12, i64 addrspace(1)* %o,
    i64 4294967302, float %f,
    i64 65542, float %f,
    i64 393233, i64 139637976748032, ; and inlined into that
    i64 1, i32 3, i32 3, ; at 3
    i64 10, i32 %n,
    i64 4294967308, i64 addrspace(1)* null,
    i64 65543, double %d,
    i64 8590524428, i32 2, ; stack 2 is object 2
    i64 458768, i8 addrspace(2)* %narrow ; a compressed reference, for the collector
  ) ]
  ret i64 %r
done:
  store i64 %fuel, i64* %lock
  ret i64 %fuel
}

; Its first operand says that the bytecode is not run again: the frame stands in the call.
define i64 @Main.start(i32 %n, double %d, i64 %fuel, i64 addrspace(1)* %o, i8 %c, i8 addrspace(2)* %narrow) noinline gc "statepoint-example" {
  %r = call i64 @Main.run(i32 %n, double %d, i64 %fuel, i64 addrspace(1)* %o, i8 %c, i8 addrspace(2)* %narrow) [ "deopt"(
    i64 0, i32 4, i32 4,
    i64 10, i32 %n,
    i64 4294967303, double %d, ; locals 1 and 2
    i64 12884901900, i64 addrspace(1)* %o
  ) ]
  ret i64 %r
}

define i32 @main() {
  %p0 = getelementptr [5 x i64], [5 x i64]* @work.given, i64 0, i64 0
  %v0 = load volatile i64, i64* %p0
  %p1 = getelementptr [5 x i64], [5 x i64]* @work.given, i64 0, i64 1
  %v1 = load volatile i64, i64* %p1
  %p2 = getelementptr [5 x i64], [5 x i64]* @work.given, i64 0, i64 2
  %v2 = load volatile i64, i64* %p2
  %p3 = getelementptr [5 x i64], [5 x i64]* @work.given, i64 0, i64 3
  %v3 = load volatile i64, i64* %p3
  %p4 = getelementptr [5 x i64], [5 x i64]* @work.given, i64 0, i64 4
  %v4 = load volatile i64, i64* %p4
  %n = trunc i64 %v0 to i32
  %d = bitcast i64 %v1 to double
  %o = inttoptr i64 %v3 to i64 addrspace(1)*
  %c = trunc i64 %v4 to i8
  %narrow = inttoptr i64 %v3 to i8 addrspace(2)*
  %r = call i64 @Main.start(i32 %n, double %d, i64 %v2, i64 addrspace(1)* %o, i8 %c, i8 addrspace(2)* %narrow)
  ret i32 0
}
