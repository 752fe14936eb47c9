; Stores 0 to a word and waits for another process to answer, for at most so many rounds.
declare void @llvm.experimental.stackmap(i64, i32, ...)
define i64 @answered(ptr %page, ptr %own, i64 %rounds) noinline {
entry:
  call void (i64, i32, ...) @llvm.experimental.stackmap(i64 1, i32 8, ptr %page, ptr %own, i64 %rounds)
  store volatile i64 0, ptr %page
  store i64 5, ptr %own
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %j, %more ]
  %a = load volatile i64, ptr %page
  %there = icmp ne i64 %a, 0
  br i1 %there, label %done, label %more
more:
  %j = add i64 %i, 1
  %c = icmp ult i64 %j, %rounds
  br i1 %c, label %loop, label %done
done:
  ret i64 7
}
