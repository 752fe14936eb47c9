; A function that llc -basic-block-sections=all makes several of.
declare void @stops(i64)

define i64 @split(i64 %n) {
  %c = icmp sgt i64 %n, 2
  br i1 %c, label %a, label %b

a:
  call void @stops(i64 %n)
  br label %b

b:
  %r = phi i64 [1, %0], [2, %a]
  call void @stops(i64 %r)
  ret i64 %r
}
