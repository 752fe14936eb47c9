; A guard, and the two ways out that it and a deoptimize are: by guard.layout.json they carry on in @slow.
target triple = "x86_64-pc-linux-gnu"
declare void @llvm.experimental.guard(i1, ...)
declare i64 @llvm.experimental.deoptimize.i64(...)
define i64 @fast(i64 %a, i64 %b, i1 %c) {
entry:
  call void (i1, ...) @llvm.experimental.guard(i1 %c) [ "deopt"(i32 1, i64 %a, i64 %b) ]
  %d = icmp eq i64 %a, 0
  br i1 %d, label %out, label %stay
out:
  %r = call i64 (...) @llvm.experimental.deoptimize.i64() [ "deopt"(i32 2, i64 %a, i64 undef) ]
  ret i64 %r
stay:
  ret i64 %b
}
define i64 @slow(i64 %a, i64 %b) {
entry:
  %s = add i64 %a, %b
  br label %end
end:
  %t = phi i64 [ %s, %entry ]
  %u = mul i64 %t, %b
  ret i64 %u
}
