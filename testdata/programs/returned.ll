; Functions with a record at a call, of which testdata/returned.c has one wait: @f calls @old, which returns; @near calls @deep directly, and
; @far what it is given. What they record is what they were given.
declare token @llvm.experimental.gc.statepoint.p0(i64, i32, ptr, i32, i32, ...)
declare void @old()
declare void @deep(i64)

define i64 @f(i64 %x, i64 %y) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 7, i32 0, ptr elementtype(void ()) @old, i32 0, i32 0, i32 0, i32 0) [ "deopt"(i64 %x, i64 %y) ]
  %s = add i64 %x, %y
  ret i64 %s
}

define i64 @near(i64 %x, i64 %by) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 8, i32 0, ptr elementtype(void (i64)) @deep, i32 1, i32 0, i64 %by, i32 0, i32 0) [ "deopt"(i64 %x) ]
  %s = add i64 %x, 1
  ret i64 %s
}

define i64 @far(i64 %x, i64 %by, ptr %to) gc "statepoint-example" {
  %t = call token (i64, i32, ptr, i32, i32, ...) @llvm.experimental.gc.statepoint.p0(i64 9, i32 0, ptr elementtype(void (i64)) %to, i32 1, i32 0, i64 %by, i32 0, i32 0) [ "deopt"(i64 %x) ]
  %s = add i64 %x, 2
  ret i64 %s
}
