; Sites that a program patches while it runs: shadows of stackmaps, sleds of patchpoints, regions of statepoints.
; patches.c has the main function, which @main calls with the table of sites; it patches them, has threads run through, and logs
; what each thread that comes to a patched site has for values. Every function takes two numbers, and returns the sum of all that it
; recorded and of what @ordinary returned. Typed pointers, as LLVM 14 wants them for statepoints.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.stackmap(i64, i32, ...)
declare void @llvm.experimental.patchpoint.void(i64, i32, i8*, i32, ...)
declare i64 @llvm.experimental.patchpoint.i64(i64, i32, i8*, i32, ...)
declare i64 @ordinary(i64)
declare void @nobody()
; No shadow: nothing can be patched.
define i64 @s0(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 100, i32 0, i64 %v0, i64 %v1, i64 %v2)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  ret i64 %s2
}
; Room for one call.
define i64 @s5(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 105, i32 5, i64 %v0, i64 %v1, i64 %v2)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  ret i64 %s2
}
; Room for a call through memory.
define i64 @s8(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 108, i32 8, i64 %v0, i64 %v1, i64 %v2)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  ret i64 %s2
}
; A shadow that holds the epilogue.
define i64 @s16(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 116, i32 16, i64 %v0, i64 %v1, i64 %v2)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  ret i64 %s2
}
; More values than registers.
define i64 @s32(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %v4 = add i64 %a, %b
  %v5 = mul i64 %a, %b
  %v6 = or i64 %a, %b
  %v7 = and i64 %a, %b
  %v8 = shl i64 %a, 3
  %v9 = xor i64 %a, 21845
  %v10 = mul i64 %b, 7
  %v11 = lshr i64 %a, 2
  %v12 = sub i64 %b, %a
  %v13 = shl i64 %b, 1
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 132, i32 32, i64 %v0, i64 %v1, i64 %v2, i64 %v3, i64 %v4, i64 %v5, i64 %v6, i64 %v7, i64 %v8, i64 %v9, i64 %v10, i64 %v11, i64 %v12, i64 %v13)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  %s4 = add i64 %s3, %v4
  %s5 = add i64 %s4, %v5
  %s6 = add i64 %s5, %v6
  %s7 = add i64 %s6, %v7
  %s8 = add i64 %s7, %v8
  %s9 = add i64 %s8, %v9
  %s10 = add i64 %s9, %v10
  %s11 = add i64 %s10, %v11
  %s12 = add i64 %s11, %v12
  %s13 = add i64 %s12, %v13
  ret i64 %s13
}
; A shadow far longer than what is left of the function.
define i64 @s48(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %v4 = add i64 %a, %b
  %v5 = mul i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 148, i32 48, i64 %v0, i64 %v1, i64 %v2, i64 %v3, i64 %v4, i64 %v5)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  %s4 = add i64 %s3, %v4
  %s5 = add i64 %s4, %v5
  ret i64 %s5
}
; Callee-saved registers hold the values, and the shadow restores them.
define i64 @kept(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %v4 = add i64 %a, %b
  %r = call i64 @ordinary(i64 %v1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 140, i32 24, i64 %v0, i64 %v1, i64 %v2, i64 %v3, i64 %v4)
  %s0 = add i64 %v0, %r
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  %s4 = add i64 %s3, %v4
  ret i64 %s4
}
; LLVM's own call ends the shadow.
define i64 @call_in(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 141, i32 32, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %r = call i64 @ordinary(i64 %v1)
  %s0 = add i64 %v0, %r
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; And fills it.
define i64 @call_fits(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 142, i32 6, i64 %v0, i64 %v1, i64 %v2)
  %r = call i64 @ordinary(i64 %v1)
  %s0 = add i64 %v0, %r
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  ret i64 %s2
}
; The return address of a call is the record's own.
define i64 @call_before(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %r = call i64 @ordinary(i64 %v1)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 143, i32 16, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s0 = add i64 %v0, %r
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; The return address of a call is a sled's start.
define i64 @false_match(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %r = call i64 @ordinary(i64 %v1)
  call void (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.void(i64 144, i32 16, i8* null, i32 0, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s0 = add i64 %v0, %r
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; Two shadows, one behind the other.
define i64 @two(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 145, i32 8, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 146, i32 8, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; The shadow ends its block, and other code jumps behind it.
define i64 @block_end(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %odd = trunc i64 %a to i1
  br i1 %odd, label %site, label %join
site:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 147, i32 16, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  br label %join
join:
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; Values of other types, and a variable on the stack.
define i64 @types(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %slot = alloca i64
  store i64 4242, i64* %slot
  %t = trunc i64 %v0 to i32
  %d = sitofp i64 %a to double
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 149, i32 24, i64 %v0, i64 %v1, i64 %v2, i32 %t, double %d, i64* %slot, i64 -5)
  %l = load volatile i64, i64* %slot
  %l0 = sub i64 %l, 4242
  %s0 = add i64 %v0, %l0
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  ret i64 %s2
}
; A frame whose size nobody knows before it runs.
define i64 @dynamic(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %n = and i64 %a, 255
  %p = alloca i64, i64 %n
  store volatile i64 0, i64* %p
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 150, i32 16, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %l = load volatile i64, i64* %p
  %s0 = add i64 %v0, %l
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A frame that is realigned.
define i64 @aligned(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %p = alloca i64, align 64
  store volatile i64 0, i64* %p
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 151, i32 16, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %l = load volatile i64, i64* %p
  %s0 = add i64 %v0, %l
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A sled of 8 bytes.
define i64 @p8(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.void(i64 208, i32 8, i8* null, i32 0, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A sled of 16 bytes.
define i64 @p16(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.void(i64 216, i32 16, i8* null, i32 0, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A sled of 32 bytes.
define i64 @p32(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.void(i64 232, i32 32, i8* null, i32 0, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; More values than registers at a sled.
define i64 @p48(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %v4 = add i64 %a, %b
  %v5 = mul i64 %a, %b
  %v6 = or i64 %a, %b
  %v7 = and i64 %a, %b
  %v8 = shl i64 %a, 3
  %v9 = xor i64 %a, 21845
  %v10 = mul i64 %b, 7
  %v11 = lshr i64 %a, 2
  %v12 = sub i64 %b, %a
  %v13 = shl i64 %b, 1
  call void (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.void(i64 248, i32 48, i8* null, i32 0, i64 %v0, i64 %v1, i64 %v2, i64 %v3, i64 %v4, i64 %v5, i64 %v6, i64 %v7, i64 %v8, i64 %v9, i64 %v10, i64 %v11, i64 %v12, i64 %v13)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  %s4 = add i64 %s3, %v4
  %s5 = add i64 %s4, %v5
  %s6 = add i64 %s5, %v6
  %s7 = add i64 %s6, %v7
  %s8 = add i64 %s7, %v8
  %s9 = add i64 %s8, %v9
  %s10 = add i64 %s9, %v10
  %s11 = add i64 %s10, %v11
  %s12 = add i64 %s11, %v12
  %s13 = add i64 %s12, %v13
  ret i64 %s13
}
; A patchpoint that calls something as it comes.
define i64 @target(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %r = call i64 (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.i64(i64 260, i32 24, i8* bitcast (i64 (i64)* @ordinary to i8*), i32 1, i64 %v1, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s0 = add i64 %v0, %r
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A shadow, and a sled right behind it.
define i64 @both(i64 %a, i64 %b) noinline {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 152, i32 8, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  call void (i64, i32, i8*, i32, ...) @llvm.experimental.patchpoint.void(i64 261, i32 16, i8* null, i32 0, i64 %v0, i64 %v1, i64 %v2, i64 %v3)
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A statepoint of 5 bytes to be patched.
define i64 @g5(i64 %a, i64 %b) noinline gc "statepoint-example" {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void @nobody() "statepoint-id"="305" "statepoint-num-patch-bytes"="5" [ "deopt"(i64 %v0, i64 %v1, i64 %v2, i64 %v3) ]
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A statepoint of 16 bytes to be patched.
define i64 @g16(i64 %a, i64 %b) noinline gc "statepoint-example" {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void @nobody() "statepoint-id"="316" "statepoint-num-patch-bytes"="16" [ "deopt"(i64 %v0, i64 %v1, i64 %v2, i64 %v3) ]
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A statepoint of 32 bytes to be patched.
define i64 @g32(i64 %a, i64 %b) noinline gc "statepoint-example" {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void @nobody() "statepoint-id"="332" "statepoint-num-patch-bytes"="32" [ "deopt"(i64 %v0, i64 %v1, i64 %v2, i64 %v3) ]
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; Two regions, one behind the other.
define i64 @g_two(i64 %a, i64 %b) noinline gc "statepoint-example" {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  call void @nobody() "statepoint-id"="340" "statepoint-num-patch-bytes"="8" [ "deopt"(i64 %v0, i64 %v1, i64 %v2, i64 %v3) ]
  call void @nobody() "statepoint-id"="341" "statepoint-num-patch-bytes"="16" [ "deopt"(i64 %v0, i64 %v1, i64 %v2, i64 %v3) ]
  %s1 = add i64 %v0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
; A statepoint as it comes.
define i64 @g_call(i64 %a, i64 %b) noinline gc "statepoint-example" {
  %v0 = add i64 %a, 77
  %v1 = add i64 %b, -13
  %v2 = xor i64 %a, %b
  %v3 = sub i64 %a, %b
  %r = call i64 @ordinary(i64 %v1) "statepoint-id"="300" [ "deopt"(i64 %v0, i64 %v1, i64 %v2, i64 %v3) ]
  %s0 = add i64 %v0, %r
  %s1 = add i64 %s0, %v1
  %s2 = add i64 %s1, %v2
  %s3 = add i64 %s2, %v3
  ret i64 %s3
}
@.s0 = private constant [3 x i8] c"s0\00"
@.s5 = private constant [3 x i8] c"s5\00"
@.s8 = private constant [3 x i8] c"s8\00"
@.s16 = private constant [4 x i8] c"s16\00"
@.s32 = private constant [4 x i8] c"s32\00"
@.s48 = private constant [4 x i8] c"s48\00"
@.kept = private constant [5 x i8] c"kept\00"
@.call_in = private constant [8 x i8] c"call_in\00"
@.call_fits = private constant [10 x i8] c"call_fits\00"
@.call_before = private constant [12 x i8] c"call_before\00"
@.false_match = private constant [12 x i8] c"false_match\00"
@.two = private constant [4 x i8] c"two\00"
@.block_end = private constant [10 x i8] c"block_end\00"
@.types = private constant [6 x i8] c"types\00"
@.dynamic = private constant [8 x i8] c"dynamic\00"
@.aligned = private constant [8 x i8] c"aligned\00"
@.p8 = private constant [3 x i8] c"p8\00"
@.p16 = private constant [4 x i8] c"p16\00"
@.p32 = private constant [4 x i8] c"p32\00"
@.p48 = private constant [4 x i8] c"p48\00"
@.target = private constant [7 x i8] c"target\00"
@.both = private constant [5 x i8] c"both\00"
@.g5 = private constant [3 x i8] c"g5\00"
@.g16 = private constant [4 x i8] c"g16\00"
@.g32 = private constant [4 x i8] c"g32\00"
@.g_two = private constant [6 x i8] c"g_two\00"
@.g_call = private constant [7 x i8] c"g_call\00"
; Its function and name, the record's id, 0 for a stackmap, 1 for a patchpoint, 2 for a statepoint, the bytes that may be patched, how many of the
; values there are, and whether it calls @ordinary.
%site = type { i64 (i64, i64)*, i8*, i64, i64, i64, i64, i64 }
@sites = constant [30 x %site] [
  %site { i64 (i64, i64)* @s0, i8* getelementptr ([3 x i8], [3 x i8]* @.s0, i64 0, i64 0), i64 100, i64 0, i64 0, i64 3, i64 0 },
  %site { i64 (i64, i64)* @s5, i8* getelementptr ([3 x i8], [3 x i8]* @.s5, i64 0, i64 0), i64 105, i64 0, i64 5, i64 3, i64 0 },
  %site { i64 (i64, i64)* @s8, i8* getelementptr ([3 x i8], [3 x i8]* @.s8, i64 0, i64 0), i64 108, i64 0, i64 8, i64 3, i64 0 },
  %site { i64 (i64, i64)* @s16, i8* getelementptr ([4 x i8], [4 x i8]* @.s16, i64 0, i64 0), i64 116, i64 0, i64 16, i64 3, i64 0 },
  %site { i64 (i64, i64)* @s32, i8* getelementptr ([4 x i8], [4 x i8]* @.s32, i64 0, i64 0), i64 132, i64 0, i64 32, i64 14, i64 0 },
  %site { i64 (i64, i64)* @s48, i8* getelementptr ([4 x i8], [4 x i8]* @.s48, i64 0, i64 0), i64 148, i64 0, i64 48, i64 6, i64 0 },
  %site { i64 (i64, i64)* @kept, i8* getelementptr ([5 x i8], [5 x i8]* @.kept, i64 0, i64 0), i64 140, i64 0, i64 24, i64 5, i64 1 },
  %site { i64 (i64, i64)* @call_in, i8* getelementptr ([8 x i8], [8 x i8]* @.call_in, i64 0, i64 0), i64 141, i64 0, i64 32, i64 4, i64 1 },
  %site { i64 (i64, i64)* @call_fits, i8* getelementptr ([10 x i8], [10 x i8]* @.call_fits, i64 0, i64 0), i64 142, i64 0, i64 6, i64 3, i64 1 },
  %site { i64 (i64, i64)* @call_before, i8* getelementptr ([12 x i8], [12 x i8]* @.call_before, i64 0, i64 0), i64 143, i64 0, i64 16, i64 4, i64 1 },
  %site { i64 (i64, i64)* @false_match, i8* getelementptr ([12 x i8], [12 x i8]* @.false_match, i64 0, i64 0), i64 144, i64 1, i64 16, i64 4, i64 1 },
  %site { i64 (i64, i64)* @two, i8* getelementptr ([4 x i8], [4 x i8]* @.two, i64 0, i64 0), i64 145, i64 0, i64 8, i64 4, i64 0 },
  %site { i64 (i64, i64)* @two, i8* getelementptr ([4 x i8], [4 x i8]* @.two, i64 0, i64 0), i64 146, i64 0, i64 8, i64 4, i64 0 },
  %site { i64 (i64, i64)* @block_end, i8* getelementptr ([10 x i8], [10 x i8]* @.block_end, i64 0, i64 0), i64 147, i64 0, i64 16, i64 4, i64 0 },
  %site { i64 (i64, i64)* @types, i8* getelementptr ([6 x i8], [6 x i8]* @.types, i64 0, i64 0), i64 149, i64 0, i64 24, i64 3, i64 0 },
  %site { i64 (i64, i64)* @dynamic, i8* getelementptr ([8 x i8], [8 x i8]* @.dynamic, i64 0, i64 0), i64 150, i64 0, i64 16, i64 4, i64 0 },
  %site { i64 (i64, i64)* @aligned, i8* getelementptr ([8 x i8], [8 x i8]* @.aligned, i64 0, i64 0), i64 151, i64 0, i64 16, i64 4, i64 0 },
  %site { i64 (i64, i64)* @p8, i8* getelementptr ([3 x i8], [3 x i8]* @.p8, i64 0, i64 0), i64 208, i64 1, i64 8, i64 4, i64 0 },
  %site { i64 (i64, i64)* @p16, i8* getelementptr ([4 x i8], [4 x i8]* @.p16, i64 0, i64 0), i64 216, i64 1, i64 16, i64 4, i64 0 },
  %site { i64 (i64, i64)* @p32, i8* getelementptr ([4 x i8], [4 x i8]* @.p32, i64 0, i64 0), i64 232, i64 1, i64 32, i64 4, i64 0 },
  %site { i64 (i64, i64)* @p48, i8* getelementptr ([4 x i8], [4 x i8]* @.p48, i64 0, i64 0), i64 248, i64 1, i64 48, i64 14, i64 0 },
  %site { i64 (i64, i64)* @target, i8* getelementptr ([7 x i8], [7 x i8]* @.target, i64 0, i64 0), i64 260, i64 1, i64 24, i64 4, i64 1 },
  %site { i64 (i64, i64)* @both, i8* getelementptr ([5 x i8], [5 x i8]* @.both, i64 0, i64 0), i64 152, i64 0, i64 8, i64 4, i64 0 },
  %site { i64 (i64, i64)* @both, i8* getelementptr ([5 x i8], [5 x i8]* @.both, i64 0, i64 0), i64 261, i64 1, i64 16, i64 4, i64 0 },
  %site { i64 (i64, i64)* @g5, i8* getelementptr ([3 x i8], [3 x i8]* @.g5, i64 0, i64 0), i64 305, i64 2, i64 5, i64 4, i64 0 },
  %site { i64 (i64, i64)* @g16, i8* getelementptr ([4 x i8], [4 x i8]* @.g16, i64 0, i64 0), i64 316, i64 2, i64 16, i64 4, i64 0 },
  %site { i64 (i64, i64)* @g32, i8* getelementptr ([4 x i8], [4 x i8]* @.g32, i64 0, i64 0), i64 332, i64 2, i64 32, i64 4, i64 0 },
  %site { i64 (i64, i64)* @g_two, i8* getelementptr ([6 x i8], [6 x i8]* @.g_two, i64 0, i64 0), i64 340, i64 2, i64 8, i64 4, i64 0 },
  %site { i64 (i64, i64)* @g_two, i8* getelementptr ([6 x i8], [6 x i8]* @.g_two, i64 0, i64 0), i64 341, i64 2, i64 16, i64 4, i64 0 },
  %site { i64 (i64, i64)* @g_call, i8* getelementptr ([7 x i8], [7 x i8]* @.g_call, i64 0, i64 0), i64 300, i64 2, i64 0, i64 4, i64 1 }
]
declare i32 @patches(%site*, i64, i32, i8**)
define i32 @main(i32 %argc, i8** %argv) {
  %r = call i32 @patches(%site* getelementptr ([30 x %site], [30 x %site]* @sites, i64 0, i64 0), i64 30, i32 %argc, i8** %argv)
  ret i32 %r
}
