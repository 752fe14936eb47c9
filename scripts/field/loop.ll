; lli, whatever release: a loop that does not end.
@text = private constant [6 x i8] c"ready\00"

declare i32 @puts(i8*)
declare i32 @fflush(i8*)

define i64 @spin(i64 %n) noinline {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %next, %loop ]
  %x = mul i64 %i, %n
  %next = add i64 %x, 1
  %on = icmp ne i64 %n, 0
  br i1 %on, label %loop, label %exit
exit:
  ret i64 %i
}

define i32 @main() {
  %p = getelementptr [6 x i8], [6 x i8]* @text, i64 0, i64 0
  call i32 @puts(i8* %p)
  call i32 @fflush(i8* null)
  %r = call i64 @spin(i64 3)
  %t = trunc i64 %r to i32
  ret i32 %t
}
