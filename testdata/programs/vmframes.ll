; A function that a compiler of bytecode has made, with another one inlined into it, at a call that its virtual machine may have to take over at. doc/user/layouts.md
; reads its frames. For each frame the bundle has: the name of the method, the position in its code, how many locals there are and these, how many
; operands are on its stack and these. LLVM's inliner puts a caller's operands in front, so the innermost frame is the last.
target triple = "x86_64-pc-linux-gnu"
declare i32 @getpid()
declare i32 @printf(ptr, ...)
declare i32 @fflush(ptr)
declare i32 @sleep(i32)
@text = private constant [30 x i8] c"pid %d stopped in Point.norm\0A\00"
@main.name = private constant [5 x i8] c"main\00"
@norm.name = private constant [11 x i8] c"Point.norm\00"
@given = global i32 7
@half = global double 0.5

; The runtime of the virtual machine: here a frame would be handed to its interpreter.
define void @take_over() noinline {
  %pid = call i32 @getpid()
  %n = call i32 (ptr, ...) @printf(ptr @text, i32 %pid)
  %f = call i32 @fflush(ptr null)
  br label %again
again:
  %left = call i32 @sleep(i32 1000)
  br label %again
}

define i32 @compiled(i32 %n, double %x) noinline {
  %sum = add i32 %n, 1
  %scaled = fmul double %x, 7.0
  %bits = bitcast double %scaled to i64
  %boxed = add i64 %bits, 281474976710656 ; 1 << 48
  call void @take_over() [ "deopt"(
    ptr @main.name, i32 4, i32 2, i32 %n, i32 %sum, i32 0,
    ptr @norm.name, i32 17, i32 1, i32 %sum, i32 2, i32 %n, i64 %boxed) ]
  ret i32 %sum
}

define i32 @main() {
  %n = load volatile i32, ptr @given
  %x = load volatile double, ptr @half
  %r = call i32 @compiled(i32 %n, double %x)
  ret i32 0
}
