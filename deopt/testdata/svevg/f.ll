target triple = "aarch64-unknown-linux-gnu"
define i64 @f(<vscale x 4 x i32> %z, i64 %x) noinline uwtable "frame-pointer"="none" {
  call void @stop()
  call void asm sideeffect "", "w"(<vscale x 4 x i32> %z)
  ret i64 %x
}
define i64 @entry() noinline uwtable {
  %r = call i64 @f(<vscale x 4 x i32> zeroinitializer, i64 77)
  %s = add i64 %r, 1
  ret i64 %s
}
declare void @stop()
