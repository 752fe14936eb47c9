; The functions of vmtables.c, each with one site: the records have the live values, and the ids by which the descriptions in memory are found. It is compiled for
; LLVM 14, 19 and 22.
target datalayout = "e-m:e-p270:32:32-p271:32:32-p272:64:64-i64:64-f80:128-n8:16:32:64-S128"
target triple = "x86_64-pc-linux-gnu"
declare i64 @take_over()
declare i64 @tables(i32, ptr, ptr)
%given = type { i64, i64, i32, i32, double, ptr, i64, i64, i64, i64 }

define i64 @ftl(ptr %given) {
  %a.at = getelementptr %given, ptr %given, i32 0, i32 0
  %a = load volatile i64, ptr %a.at
  %b.at = getelementptr %given, ptr %given, i32 0, i32 1
  %b = load volatile i64, ptr %b.at
  %i.at = getelementptr %given, ptr %given, i32 0, i32 2
  %i = load volatile i32, ptr %i.at
  %j.at = getelementptr %given, ptr %given, i32 0, i32 3
  %j = load volatile i32, ptr %j.at
  %d.at = getelementptr %given, ptr %given, i32 0, i32 4
  %d = load volatile double, ptr %d.at
  %p.at = getelementptr %given, ptr %given, i32 0, i32 5
  %p = load volatile ptr, ptr %p.at
  %boxed.at = getelementptr %given, ptr %given, i32 0, i32 6
  %boxed = load volatile i64, ptr %boxed.at
  %small.at = getelementptr %given, ptr %given, i32 0, i32 7
  %small = load volatile i64, ptr %small.at
  %tag.at = getelementptr %given, ptr %given, i32 0, i32 8
  %tag = load volatile i64, ptr %tag.at
  %payload.at = getelementptr %given, ptr %given, i32 0, i32 9
  %payload = load volatile i64, ptr %payload.at
  %r = call i64 @hotspot(ptr %given) #0 [ "deopt"(i64 %a, i64 %b, i32 %i, i32 %j, double %d, ptr %p, i64 %boxed, i64 %small, i64 %tag, i64 %payload) ]
  %s = add i64 %r, %a
  ret i64 %s
}

define i64 @hotspot(ptr %given) {
  %a.at = getelementptr %given, ptr %given, i32 0, i32 0
  %a = load volatile i64, ptr %a.at
  %b.at = getelementptr %given, ptr %given, i32 0, i32 1
  %b = load volatile i64, ptr %b.at
  %i.at = getelementptr %given, ptr %given, i32 0, i32 2
  %i = load volatile i32, ptr %i.at
  %j.at = getelementptr %given, ptr %given, i32 0, i32 3
  %j = load volatile i32, ptr %j.at
  %d.at = getelementptr %given, ptr %given, i32 0, i32 4
  %d = load volatile double, ptr %d.at
  %p.at = getelementptr %given, ptr %given, i32 0, i32 5
  %p = load volatile ptr, ptr %p.at
  %boxed.at = getelementptr %given, ptr %given, i32 0, i32 6
  %boxed = load volatile i64, ptr %boxed.at
  %small.at = getelementptr %given, ptr %given, i32 0, i32 7
  %small = load volatile i64, ptr %small.at
  %tag.at = getelementptr %given, ptr %given, i32 0, i32 8
  %tag = load volatile i64, ptr %tag.at
  %payload.at = getelementptr %given, ptr %given, i32 0, i32 9
  %payload = load volatile i64, ptr %payload.at
  %r = call i64 @v8(ptr %given) #1 [ "deopt"(i64 %a, i64 %b, i32 %i, i32 %j, double %d, ptr %p, i64 %boxed, i64 %small, i64 %tag, i64 %payload) ]
  %s = add i64 %r, %a
  ret i64 %s
}

define i64 @v8(ptr %given) {
  %a.at = getelementptr %given, ptr %given, i32 0, i32 0
  %a = load volatile i64, ptr %a.at
  %b.at = getelementptr %given, ptr %given, i32 0, i32 1
  %b = load volatile i64, ptr %b.at
  %i.at = getelementptr %given, ptr %given, i32 0, i32 2
  %i = load volatile i32, ptr %i.at
  %j.at = getelementptr %given, ptr %given, i32 0, i32 3
  %j = load volatile i32, ptr %j.at
  %d.at = getelementptr %given, ptr %given, i32 0, i32 4
  %d = load volatile double, ptr %d.at
  %p.at = getelementptr %given, ptr %given, i32 0, i32 5
  %p = load volatile ptr, ptr %p.at
  %boxed.at = getelementptr %given, ptr %given, i32 0, i32 6
  %boxed = load volatile i64, ptr %boxed.at
  %small.at = getelementptr %given, ptr %given, i32 0, i32 7
  %small = load volatile i64, ptr %small.at
  %tag.at = getelementptr %given, ptr %given, i32 0, i32 8
  %tag = load volatile i64, ptr %tag.at
  %payload.at = getelementptr %given, ptr %given, i32 0, i32 9
  %payload = load volatile i64, ptr %payload.at
  %r = call i64 @yk(ptr %given) #2 [ "deopt"(i64 %a, i64 %b, i32 %i, i32 %j, double %d, ptr %p, i64 %boxed, i64 %small, i64 %tag, i64 %payload) ]
  %s = add i64 %r, %a
  ret i64 %s
}

define i64 @yk(ptr %given) {
  %a.at = getelementptr %given, ptr %given, i32 0, i32 0
  %a = load volatile i64, ptr %a.at
  %b.at = getelementptr %given, ptr %given, i32 0, i32 1
  %b = load volatile i64, ptr %b.at
  %i.at = getelementptr %given, ptr %given, i32 0, i32 2
  %i = load volatile i32, ptr %i.at
  %j.at = getelementptr %given, ptr %given, i32 0, i32 3
  %j = load volatile i32, ptr %j.at
  %d.at = getelementptr %given, ptr %given, i32 0, i32 4
  %d = load volatile double, ptr %d.at
  %p.at = getelementptr %given, ptr %given, i32 0, i32 5
  %p = load volatile ptr, ptr %p.at
  %boxed.at = getelementptr %given, ptr %given, i32 0, i32 6
  %boxed = load volatile i64, ptr %boxed.at
  %small.at = getelementptr %given, ptr %given, i32 0, i32 7
  %small = load volatile i64, ptr %small.at
  %tag.at = getelementptr %given, ptr %given, i32 0, i32 8
  %tag = load volatile i64, ptr %tag.at
  %payload.at = getelementptr %given, ptr %given, i32 0, i32 9
  %payload = load volatile i64, ptr %payload.at
  %r = call i64 @take_over() #3 [ "deopt"(i64 %a, i64 %b, i32 %i, i32 %j, double %d, ptr %p, i64 %boxed, i64 %small, i64 %tag, i64 %payload) ]
  %s = add i64 %r, %a
  ret i64 %s
}

define i32 @main(i32 %argc, ptr %argv) {
  %r = call i64 @tables(i32 %argc, ptr %argv, ptr @ftl)
  ret i32 0
}

attributes #0 = { "statepoint-id"="1" }
attributes #1 = { "statepoint-id"="2" }
attributes #2 = { "statepoint-id"="3" }
attributes #3 = { "statepoint-id"="4" }
