; Branches, switch, phis that swap, select, recursion, function pointers, indirectbr, invoke.
@fmt = private constant [6 x i8] c"%ld \0A\00"
@table = private constant [3 x ptr] [ptr @twice, ptr @square, ptr @fib]
@places = private constant [2 x ptr] [ptr blockaddress(@jump, %even), ptr blockaddress(@jump, %odd)]
declare i32 @printf(ptr, ...)
declare i32 @__gxx_personality_v0(...)

define internal i64 @twice(i64 %x) {
  %r = shl i64 %x, 1
  ret i64 %r
}
define internal i64 @square(i64 %x) {
  %r = mul i64 %x, %x
  ret i64 %r
}
define internal i64 @fib(i64 %n) {
entry:
  %small = icmp ult i64 %n, 2
  br i1 %small, label %done, label %more
more:
  %a = sub i64 %n, 1
  %b = sub i64 %n, 2
  %x = call i64 @fib(i64 %a)
  %y = call i64 @fib(i64 %b)
  %s = add i64 %x, %y
  ret i64 %s
done:
  ret i64 %n
}
define internal i64 @swap(i64 %n) {
entry:
  br label %loop
loop:
  %a = phi i64 [ 1, %entry ], [ %b, %loop ]
  %b = phi i64 [ 2, %entry ], [ %a, %loop ]
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %old = phi i64 [ 7, %entry ], [ %i, %loop ]
  %i1 = add i64 %i, 1
  %c = icmp ult i64 %i1, %n
  br i1 %c, label %loop, label %done
done:
  %r = mul i64 %a, 1000
  %r1 = add i64 %r, %b
  %r2 = mul i64 %old, 100000
  %r3 = add i64 %r2, %r1
  ret i64 %r3
}
define internal i64 @choose(i32 %k) {
entry:
  switch i32 %k, label %other [
    i32 0, label %zero
    i32 -1, label %minus
    i32 7, label %zero
  ]
zero:
  %z = phi i64 [ 10, %entry ], [ 10, %entry ]
  br label %out
minus:
  br label %out
other:
  br label %out
out:
  %r = phi i64 [ %z, %zero ], [ 20, %minus ], [ 30, %other ]
  ret i64 %r
}
define internal i64 @wide(i65 %k) {
  switch i65 %k, label %other [
    i65 18446744073709551616, label %big
    i65 -3, label %minus
  ]
big:
  ret i64 1
minus:
  ret i64 2
other:
  ret i64 3
}
define internal i64 @jump(i64 %k) {
  %low = and i64 %k, 1
  %p = getelementptr [2 x ptr], ptr @places, i64 0, i64 %low
  %to = load ptr, ptr %p
  indirectbr ptr %to, [label %even, label %odd]
even:
  ret i64 100
odd:
  ret i64 101
}
define internal i64 @invoked(i64 %k) personality ptr @__gxx_personality_v0 {
  %r = invoke i64 @square(i64 %k) to label %ok unwind label %bad
ok:
  ret i64 %r
bad:
  %l = landingpad { ptr, i32 } cleanup
  ret i64 0
}
define internal void @show(i64 %v) {
  %n = call i32 (ptr, ...) @printf(ptr @fmt, i64 %v)
  ret void
}
define i32 @main() {
entry:
  br label %loop
loop:
  %i = phi i64 [ 0, %entry ], [ %i1, %loop ]
  %p = getelementptr [3 x ptr], ptr @table, i64 0, i64 %i
  %f = load ptr, ptr %p
  %r = call i64 %f(i64 15)
  call void @show(i64 %r)
  %i1 = add i64 %i, 1
  %c = icmp ne i64 %i1, 3
  br i1 %c, label %loop, label %next
next:
  %s4 = call i64 @swap(i64 4)
  call void @show(i64 %s4)
  %s5 = call i64 @swap(i64 5)
  call void @show(i64 %s5)
  %c0 = call i64 @choose(i32 0)
  call void @show(i64 %c0)
  %c1 = call i64 @choose(i32 -1)
  call void @show(i64 %c1)
  %c7 = call i64 @choose(i32 7)
  call void @show(i64 %c7)
  %c9 = call i64 @choose(i32 9)
  call void @show(i64 %c9)
  %w0 = call i64 @wide(i65 18446744073709551616)
  call void @show(i64 %w0)
  %w1 = call i64 @wide(i65 -3)
  call void @show(i64 %w1)
  %w2 = call i64 @wide(i65 0)
  call void @show(i64 %w2)
  %j0 = call i64 @jump(i64 4)
  call void @show(i64 %j0)
  %j1 = call i64 @jump(i64 5)
  call void @show(i64 %j1)
  %v = call i64 @invoked(i64 12)
  call void @show(i64 %v)
  %sel = select i1 %c, i64 5, i64 6
  call void @show(i64 %sel)
  ret i32 77
}
