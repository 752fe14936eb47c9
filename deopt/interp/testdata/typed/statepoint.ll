; Typed pointers, as LLVM 14 prints them, with calls that rewrite-statepoints-for-gc
; turns into statepoints, gc.result and gc.relocate.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128-ni:1"
target triple = "x86_64-pc-linux-gnu"
%node = type { i64, %node* }
@fmt = private constant [5 x i8] c"%ld\0A\00"
@first = global %node { i64 5, %node* @second }
@second = global %node { i64 6, %node* null }
@funcs = global [2 x i64 (i64)*] [i64 (i64)* @plus, i64 (i64)* bitcast (i64 (i32)* @narrow to i64 (i64)*)]
declare i32 @printf(i8*, ...)
declare i8* @calloc(i64, i64)
define internal i64 @plus(i64 %x) noinline {
  %r = add i64 %x, 1
  ret i64 %r
}
define internal i64 @narrow(i32 %x) noinline {
  %r = sext i32 %x to i64
  ret i64 %r
}
define i64 @walk(i64 addrspace(1)* %o, i64 %a) noinline gc "statepoint-example" {
entry:
  %der = getelementptr i64, i64 addrspace(1)* %o, i64 %a
  store i64 77, i64 addrspace(1)* %der
  %r = call i64 @plus(i64 %a) [ "deopt"(i64 %a, i64 addrspace(1)* %der) ]
  %l = load i64, i64 addrspace(1)* %der
  %c = icmp ugt i64 %l, %r
  br i1 %c, label %more, label %out
more:
  %r2 = call i64 @plus(i64 %l) [ "deopt"(i64 %r) ]
  store i64 %r2, i64 addrspace(1)* %o
  br label %out
out:
  %l2 = load i64, i64 addrspace(1)* %o
  %l3 = load i64, i64 addrspace(1)* %der
  %s = add i64 %l2, %l3
  %s2 = add i64 %s, %r
  ret i64 %s2
}
define i32 @main() {
entry:
  %m = call i8* @calloc(i64 64, i64 1)
  %p = bitcast i8* %m to i64*
  %g = addrspacecast i64* %p to i64 addrspace(1)*
  %w = call i64 @walk(i64 addrspace(1)* %g, i64 3)
  %n1 = call i32 (i8*, ...) @printf(i8* getelementptr inbounds ([5 x i8], [5 x i8]* @fmt, i64 0, i64 0), i64 %w)
  %np = getelementptr %node, %node* @first, i64 0, i32 1
  %n = load %node*, %node** %np
  %vp = getelementptr %node, %node* %n, i64 0, i32 0
  %v = load i64, i64* %vp
  %n2 = call i32 (i8*, ...) @printf(i8* getelementptr inbounds ([5 x i8], [5 x i8]* @fmt, i64 0, i64 0), i64 %v)
  %fp = getelementptr [2 x i64 (i64)*], [2 x i64 (i64)*]* @funcs, i64 0, i64 0
  %f = load i64 (i64)*, i64 (i64)** %fp
  %fr = call i64 %f(i64 41)
  %n3 = call i32 (i8*, ...) @printf(i8* getelementptr inbounds ([5 x i8], [5 x i8]* @fmt, i64 0, i64 0), i64 %fr)
  ret i32 9
}
