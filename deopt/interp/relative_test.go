package interp_test

import "testing"

// TestRelativeLoadIsAsNative uses the table that clang 19 emits for a constant array of strings at -O2.
func TestRelativeLoadIsAsNative(t *testing.T) {
	sameAsJIT(t, `
@a = private unnamed_addr constant [4 x i8] c"one\00"
@b = private unnamed_addr constant [4 x i8] c"two\00"
@table = private unnamed_addr constant [2 x i32] [
  i32 trunc (i64 sub (i64 ptrtoint (ptr @a to i64), i64 ptrtoint (ptr @table to i64)) to i32),
  i32 trunc (i64 sub (i64 ptrtoint (ptr @b to i64), i64 ptrtoint (ptr @table to i64)) to i32)]
declare i32 @puts(ptr)
declare ptr @llvm.load.relative.i64(ptr, i64)
declare ptr @llvm.load.relative.i32(ptr, i32)
define void @show(i64 %n) noinline {
  %offset = shl i64 %n, 2
  %p = call ptr @llvm.load.relative.i64(ptr @table, i64 %offset)
  %r = call i32 @puts(ptr %p)
  ret void
}
define void @before(i32 %n) noinline {
  %end = getelementptr i8, ptr @table, i64 4
  %p = call ptr @llvm.load.relative.i32(ptr %end, i32 %n)
  %q = getelementptr i8, ptr %p, i64 -4
  %r = call i32 @puts(ptr %q)
  ret void
}
define i32 @main() {
  call void @show(i64 0)
  call void @show(i64 1)
  call void @before(i32 -4)
  ret i32 0
}
`, "19", "22")
}
