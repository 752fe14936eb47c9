; Typed pointers, as LLVM 14 prints them.
source_filename = "typed.ll"
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"

%struct.node = type { i64, %struct.node*, void (%struct.node*)* }
%forward = type { %defined*, [2 x %defined] }
%defined = type { i8 }
%alias.like = type { i32 (i8*, ...)** }

@g = global i32 7
@p = global i32* @g
@pp = global i32** @p
@s = global %struct.node { i64 1, %struct.node* @s, void (%struct.node*)* @visit }
@str = private unnamed_addr constant [3 x i8] c"%d\00"
@first = global i8* getelementptr inbounds ([3 x i8], [3 x i8]* @str, i32 0, i32 0)
@cast = global i64* bitcast (i32* @g to i64*)
@fptr = global void ()* null
@space = addrspace(1) global i32 0
@pspace = global i32 addrspace(1)* @space
@fwd = external global %forward
@table = global [1 x i8*] [i8* blockaddress(@indirect, %one)]
@al = alias i32, i32* @g
@al2 = alias i64, bitcast (i32* @g to i64*)

declare i32 @printf(i8* nocapture, ...)

define void @visit(%struct.node* %n) {
  %next.p = getelementptr inbounds %struct.node, %struct.node* %n, i64 0, i32 1
  %next = load %struct.node*, %struct.node** %next.p, align 8
  %f.p = getelementptr %struct.node, %struct.node* %next, i32 0, i32 2
  %f = load void (%struct.node*)*, void (%struct.node*)** %f.p
  call void %f(%struct.node* %next)
  call void (%struct.node*) %f(%struct.node* %n)
  %r = call i32 (i8*, ...) @printf(i8* getelementptr inbounds ([3 x i8], [3 x i8]* @str, i64 0, i64 0), i64 1)
  store void (%struct.node*)* @visit, void (%struct.node*)** %f.p
  ret void
}

define i32 addrspace(1)* @pointers(i32 addrspace(1)* %p, i8*** %q, [2 x i32]* %a, <2 x i32*> %v, i64 %i) {
  %x = getelementptr i32, i32 addrspace(1)* %p, i64 %i
  %y = bitcast i32 addrspace(1)* %x to i8 addrspace(1)*
  %z = addrspacecast i8 addrspace(1)* %y to i8*
  %e = getelementptr [2 x i32], [2 x i32]* %a, i64 0, i64 %i
  %ve = getelementptr i32, <2 x i32*> %v, <2 x i64> <i64 1, i64 2>
  %w = inttoptr i64 %i to i32**
  %n = ptrtoint i32** %w to i64
  %c = icmp eq i8* %z, null
  %sel = select i1 %c, i32* %e, i32* @g
  %slot = alloca i8*, align 8
  store i8* %z, i8** %slot
  %l = load volatile i32, i32* %sel
  %rmw = atomicrmw xchg i32* %sel, i32 1 seq_cst
  %cx = cmpxchg i32* %sel, i32 1, i32 2 seq_cst seq_cst
  call void bitcast (void (%struct.node*)* @visit to void (i8*)*)(i8* %z)
  call void asm sideeffect "", "*m"(i32* elementtype(i32) %sel)
  ret i32 addrspace(1)* %x
}

define void @indirect(i8* %p) {
  indirectbr i8* %p, [label %one]
one:
  ret void
}
