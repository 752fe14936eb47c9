; getelementptr over structs and arrays, odd widths in memory, globals with
; initializers that point to each other, byval, dynamic alloca, the heap, atomics.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-i128:128-f80:128-n8:16:32:64-S128"
%pair = type { i8, i64 }
%deep = type { i16, [3 x %pair], <{ i8, i32 }>, double }
@deep = global %deep { i16 -2, [3 x %pair] [%pair { i8 1, i64 10 }, %pair { i8 2, i64 20 }, %pair { i8 3, i64 -30 }], <{ i8, i32 }> <{ i8 9, i32 305419896 }>, double 2.5 }
@chain = global { ptr, i64 } { ptr getelementptr (%deep, ptr @deep, i64 0, i32 1, i64 2, i32 1), i64 5 }
@chain2 = global ptr @chain
@words = global [4 x i16] [i16 1, i16 2, i16 3, i16 4]
@text = private constant [6 x i8] c"hel\00o\00"
@copy = internal alias i64, getelementptr (i8, ptr @chain, i64 8)
@odd = global i24 -5
@big = global i128 -170141183460469231731687303715884105727
@distance = global i64 sub (i64 ptrtoint (ptr getelementptr ([4 x i16], ptr @words, i64 0, i64 3) to i64), i64 ptrtoint (ptr @words to i64))
@fmt = private constant [5 x i8] c"%ld\0A\00"
declare i32 @printf(ptr, ...)
declare ptr @malloc(i64)
declare ptr @calloc(i64, i64)
declare ptr @realloc(ptr, i64)
declare void @free(ptr)
declare void @llvm.memcpy.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memmove.p0.p0.i64(ptr, ptr, i64, i1)
declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)
declare ptr @llvm.stacksave.p0()
declare void @llvm.stackrestore.p0(ptr)

define internal void @show(i64 %v) {
  %n = call i32 (ptr, ...) @printf(ptr @fmt, i64 %v)
  ret void
}
define internal i64 @byval(ptr byval(%pair) %p) {
  %f = getelementptr %pair, ptr %p, i32 0, i32 1
  %v = load i64, ptr %f
  store i64 0, ptr %f
  ret i64 %v
}
define internal void @geps(i32 %k) {
  %w = sext i32 %k to i64
  %p = getelementptr inbounds %deep, ptr @deep, i64 0, i32 1, i64 %w, i32 1
  %v = load i64, ptr %p
  call void @show(i64 %v)
  %q = getelementptr inbounds %deep, ptr @deep, i32 0, i32 2, i32 1
  %v2 = load i32, ptr %q, align 1
  %v3 = sext i32 %v2 to i64
  call void @show(i64 %v3)
  %e = getelementptr [4 x i16], ptr @words, i64 1
  %back = getelementptr i16, ptr %e, i32 -2
  %v4 = load i16, ptr %back
  %v5 = zext i16 %v4 to i64
  call void @show(i64 %v5)
  %d = ptrtoint ptr %back to i64
  %d0 = ptrtoint ptr @words to i64
  %diff = sub i64 %d, %d0
  call void @show(i64 %diff)
  ret void
}
define internal void @globals() {
  %c = load ptr, ptr @chain2
  %t = load ptr, ptr %c
  %v = load i64, ptr %t
  call void @show(i64 %v)
  %a = load i64, ptr @copy
  call void @show(i64 %a)
  %o = load i24, ptr @odd
  %o1 = sub i24 %o, 3
  store i24 %o1, ptr @odd
  %o2 = load i24, ptr @odd
  %o3 = sext i24 %o2 to i64
  call void @show(i64 %o3)
  %b = load i128, ptr @big
  %b1 = lshr i128 %b, 64
  %b2 = trunc i128 %b1 to i64
  call void @show(i64 %b2)
  %dist = load i64, ptr @distance
  call void @show(i64 %dist)
  ret void
}
define internal void @aggregates() {
  %s = alloca { i32, [2 x i16], double }
  store { i32, [2 x i16], double } { i32 7, [2 x i16] [i16 8, i16 9], double 1.5 }, ptr %s
  %v = load { i32, [2 x i16], double }, ptr %s
  %x = extractvalue { i32, [2 x i16], double } %v, 1, 1
  %y = insertvalue { i32, [2 x i16], double } %v, i16 100, 1, 0
  %z = extractvalue { i32, [2 x i16], double } %y, 1, 0
  %d = extractvalue { i32, [2 x i16], double } %y, 2
  %di = fptosi double %d to i64
  %xi = zext i16 %x to i64
  %zi = zext i16 %z to i64
  call void @show(i64 %xi)
  call void @show(i64 %zi)
  call void @show(i64 %di)
  ret void
}
define internal void @heap(i64 %n) {
  %m = call ptr @malloc(i64 16)
  call void @llvm.memset.p0.i64(ptr %m, i8 3, i64 16, i1 false)
  %r = call ptr @realloc(ptr %m, i64 100000)
  %v = load i64, ptr %r
  call void @show(i64 %v)
  %c = call ptr @calloc(i64 %n, i64 8)
  %last = getelementptr i64, ptr %c, i64 9
  %lv = load i64, ptr %last
  call void @show(i64 %lv)
  call void @llvm.memcpy.p0.p0.i64(ptr %c, ptr @words, i64 8, i1 false)
  %up = getelementptr i8, ptr %c, i64 3
  call void @llvm.memmove.p0.p0.i64(ptr %up, ptr %c, i64 8, i1 false)
  %mv = load i64, ptr %c
  call void @show(i64 %mv)
  %save = call ptr @llvm.stacksave.p0()
  %dyn = alloca i32, i64 %n
  %de = getelementptr i32, ptr %dyn, i64 7
  store i32 55, ptr %de
  %dv = load i32, ptr %de
  %dw = zext i32 %dv to i64
  call void @llvm.stackrestore.p0(ptr %save)
  call void @show(i64 %dw)
  %far = getelementptr i8, ptr %r, i64 4093
  store i64 81985529216486895, ptr %far, align 1
  %fv = load i64, ptr %far, align 1
  call void @show(i64 %fv)
  call void @free(ptr %c)
  call void @free(ptr %r)
  call void @free(ptr null)
  ret void
}
define internal void @atomics() {
  %p = alloca i32
  store atomic i32 40, ptr %p seq_cst, align 4
  %a = atomicrmw add ptr %p, i32 2 seq_cst
  %b = atomicrmw umax ptr %p, i32 50 monotonic
  %c = atomicrmw nand ptr %p, i32 15 acquire
  %d = atomicrmw min ptr %p, i32 -100 release
  %e = atomicrmw xchg ptr %p, i32 9 acq_rel
  %x = cmpxchg ptr %p, i32 9, i32 11 seq_cst monotonic
  %x0 = extractvalue { i32, i1 } %x, 0
  %x1 = extractvalue { i32, i1 } %x, 1
  %y = cmpxchg ptr %p, i32 9, i32 12 seq_cst monotonic
  %y0 = extractvalue { i32, i1 } %y, 0
  %y1 = extractvalue { i32, i1 } %y, 1
  fence seq_cst
  %l = load atomic i32, ptr %p acquire, align 4
  %s1 = add i32 %a, %b
  %s2 = add i32 %s1, %c
  %s3 = add i32 %s2, %d
  %s4 = add i32 %s3, %e
  %s5 = add i32 %s4, %x0
  %s6 = add i32 %s5, %y0
  %s7 = add i32 %s6, %l
  %s8 = sext i32 %s7 to i64
  call void @show(i64 %s8)
  %f1 = zext i1 %x1 to i64
  %f2 = zext i1 %y1 to i64
  %f3 = shl i64 %f1, 1
  %f4 = or i64 %f3, %f2
  call void @show(i64 %f4)
  ret void
}
define i32 @main() {
  call void @geps(i32 2)
  call void @globals()
  call void @aggregates()
  call void @heap(i64 10)
  call void @atomics()
  %p = alloca %pair
  %f = getelementptr %pair, ptr %p, i32 0, i32 1
  store i64 33, ptr %f
  %b = call i64 @byval(ptr byval(%pair) %p)
  call void @show(i64 %b)
  %k = load i64, ptr %f
  call void @show(i64 %k)
  ret i32 3
}
