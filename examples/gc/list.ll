; Builds and sums lists of objects { header, value, next } of collector.c. @program has a planted bug.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128-ni:1"
target triple = "x86_64-pc-linux-gnu"

@__LLVM_StackMaps = external global i8
@maps = constant ptr @__LLVM_StackMaps ; the section, whose name is local to this object

declare ptr addrspace(1) @gc_alloc()

define ptr addrspace(1) @build(i64 %n) "frame-pointer"="all" gc "statepoint-example" {
entry:
  br label %loop
loop:
  %i = phi i64 [ %n, %entry ], [ %i1, %loop ]
  %list = phi ptr addrspace(1) [ null, %entry ], [ %node, %loop ]
  %node = call ptr addrspace(1) @gc_alloc()
  %value = getelementptr i64, ptr addrspace(1) %node, i64 1
  store i64 %i, ptr addrspace(1) %value
  %next = getelementptr i64, ptr addrspace(1) %node, i64 2
  store ptr addrspace(1) %list, ptr addrspace(1) %next
  %i1 = sub i64 %i, 1
  %more = icmp ne i64 %i1, 0
  br i1 %more, label %loop, label %out
out:
  ret ptr addrspace(1) %node
}

define i64 @sum(ptr addrspace(1) %list) "frame-pointer"="all" gc "statepoint-example" {
entry:
  br label %loop
loop:
  %node = phi ptr addrspace(1) [ %list, %entry ], [ %rest, %loop ]
  %acc = phi i64 [ 0, %entry ], [ %acc1, %loop ]
  %value = getelementptr i64, ptr addrspace(1) %node, i64 1
  %x = load i64, ptr addrspace(1) %value
  %acc1 = add i64 %acc, %x
  %next = getelementptr i64, ptr addrspace(1) %node, i64 2
  %rest = load ptr addrspace(1), ptr addrspace(1) %next
  %end = icmp eq ptr addrspace(1) %rest, null
  br i1 %end, label %out, label %loop
out:
  ret i64 %acc1
}

define i64 @program(i64 %n) "frame-pointer"="all" gc "statepoint-example" {
entry:
  %first = call ptr addrspace(1) @build(i64 %n)
  %bits = ptrtoint ptr addrspace(1) %first to i64
  %second = call ptr addrspace(1) @build(i64 %n)
  %again = inttoptr i64 %bits to ptr addrspace(1) ; the bug: %first has moved since, and %bits has not
  %a = call i64 @sum(ptr addrspace(1) %second)
  %b = call i64 @sum(ptr addrspace(1) %again)
  %value = getelementptr i64, ptr addrspace(1) %again, i64 1
  %c = load i64, ptr addrspace(1) %value
  %ab = add i64 %a, %b
  %abc = add i64 %ab, %c
  ret i64 %abc
}
